"""inventory.yaml: each host in one place, each knob in its range, each error with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from opsconsole.config.errors import ConfigError
from opsconsole.config.inventory import find_inventory, read_inventory
from opsconsole.config.knobs import KNOBS, LATER
from scheduler_core.policy import Policy
from scheduler_core.units import HOUR, WEIGHT
from tests.config.test_reading import GOOD, problems, read


def said(tmp_path: Path, text: str) -> str:
    return "\n".join(problems(tmp_path, text))


def test_the_example_at_the_top_is_good() -> None:
    assert read_inventory(str(Path(__file__).parents[2] / "inventory.yaml")).clusters


def test_hosts_become_hosts_of_the_core(tmp_path: Path) -> None:
    text = GOOD.replace("gpus: 8}", "gpus: 8, labels: {model: h100, rack: no, mac: 00:11:22}}")
    (cluster,) = read(tmp_path, text).clusters
    first = cluster.core_hosts()[0]
    assert (first.name, first.gpus) == ("gpu01", 8)
    assert first.labels == (("mac", "00:11:22"), ("model", "h100"), ("rack", "no"))


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("{name: gpu01, gpus: eight}", "hosts[0].gpus: expected a whole number, got 'eight'"),
        ("{name: gpu01, gpus: -1}", "outside 1 to 64"),
        ("{name: gpu01, gpus: 8, port: 70000}", "outside 1 to 65535"),
        ("{name: gpu01, gpus: 8, address: ops@10.0.0.1}", "write address: 10.0.0.1 and user: ops"),
        ("{name: gpu01, gpus: 8, address: -oProxyCommand=x}", "is no address"),
        ("{name: gpu one, gpus: 8}", "give the host an address"),
        ('{name: "gpu[01-04]", gpus: 8, address: "10.0.0.[1-3]"}', "4 names, but 3 addresses"),
        ('{name: "gpu[01-03,02-04]", gpus: 8}', "names 'gpu02' twice"),
        ('{name: "gpu[08-100]", gpus: 8}', "two widths"),
        ("{name: gpu01, gpus: 8, user: '-x'}", "is no user name"),
        ("{name: gpu01, gpus: 8, jump: 'a b@'}", "is no jump host"),
        ("{name: gpu01, gpus: 8, jump: gpu01}", "its own jump host"),
        ("{name: gpu01, gpus: 8, jump: 'ops@gate:99999'}", "is no jump host"),
        ("{name: gpu01, gpus: 8, identity: ~nosuchuser/key}", "whole path"),
        ("{name: gpu01, gpus: 8, cluster: other}", "names 'other'"),
        ("{name: a/b, gpus: 8}", "is no name"),
        ("{name: -rf, gpus: 8}", "is no name"),
        ("{name: , gpus: 8}", "has no value"),
        ("{gpus: 8}", "hosts[0].name: is missing"),
        ("gpu01", "expected keys and values, got 'gpu01'"),
        ("{name: gpu01, gpus: 8, labels: [a]}", "expected keys and values, got a list"),
        ("{name: gpu01, gpus: 8, labels: }", "labels: has no value"),
    ],
)
def test_a_wrong_host_says_what_to_write(tmp_path: Path, host: str, words: str) -> None:
    text = f"hosts:\n  - {host}\nbudgets: [{{name: a}}]\n"
    found = problems(tmp_path, text)
    assert any(words in p and ":2:" in p for p in found), found


def test_names_and_addresses_stand_once(tmp_path: Path) -> None:
    text = """\
hosts:
  - {name: "gpu[01-04]", gpus: 8, address: "10.0.0.[1-4]"}
  - {name: gpu03, gpus: 8, address: 10.0.0.9}
  - {name: other, gpus: 8, address: 10.0.0.2}
  - {name: here, gpus: 1, address: local}
  - {name: again, gpus: 1, address: local}
budgets: [{name: a}]
"""
    found = said(tmp_path, text)
    assert ":3: hosts[1].name: the host 'gpu03' stands twice; first in line 2" in found
    assert ":4: hosts[2].address: gpu02 and other have the same address 10.0.0.2" in found
    assert ":6: hosts[4].address: here and again" in found


def test_one_machine_may_have_several_ports(tmp_path: Path) -> None:
    text = """\
hosts:
  - {name: a, gpus: 8, address: 127.0.0.1, port: 2201}
  - {name: b, gpus: 8, address: 127.0.0.1, port: 2202}
budgets: [{name: a}]
"""
    assert len(read(tmp_path, text).clusters[0].hosts) == 2


CLUSTERS = """\
clusters:
  - name: h100
    budgets: [{name: olmo}]
    hosts: [{name: a1, gpus: 8}]
  - name: l40
    budgets: [{name: olmo}]
    policy: {lookback: 1d}
policy: {lookback: 3d}
hosts:
  - {name: "b[1-2]", gpus: 4, cluster: l40}
"""


def test_each_host_belongs_to_one_cluster(tmp_path: Path) -> None:
    inventory = read(tmp_path, CLUSTERS)
    assert {c.name: [h.name for h in c.hosts] for c in inventory.clusters} == {"h100": ["a1"], "l40": ["b1", "b2"]}
    assert [c.policy.lookback_ms // HOUR for c in inventory.clusters] == [72, 24]
    with pytest.raises(ConfigError, match="choose with --cluster: h100, l40"):
        inventory.cluster(None)
    assert "no cluster 'l4'; did you mean 'l40'?" in said(tmp_path, CLUSTERS.replace("cluster: l40", "cluster: l4"))
    assert "cluster: is missing" in said(tmp_path, CLUSTERS.replace(", cluster: l40", ""))
    assert "'b1' stands twice" in said(tmp_path, CLUSTERS.replace("name: a1", "name: b1"))
    assert "the cluster 'h100' stands twice" in said(tmp_path, CLUSTERS.replace("name: l40", "name: h100"))
    assert "stands beside clusters" in said(tmp_path, CLUSTERS + "budgets: [{name: x}]\n")


@pytest.mark.parametrize(
    ("budgets", "words"),
    [
        ("[{name: a, weight: 1e3}]", "expected a number"),
        ("[{name: a, weight: .nan}]", "expected a number"),
        ("[{name: a, weight: 99999999999999999999}]", "expected a number"),
        ("[{name: a, weight: 0.1234567}]", "6 digits"),
        ("[{name: a, over_budget_weight: 0}]", "may not be 0"),
        ("[{name: a, max_gpus: 9223372036854775808}]", "outside 0 to 1000000"),
        ("[{name: a, min_runtime_default: 9h}]", "9h is outside min_runtime_bounds, 0 to 8h"),
        ("[{name: a, children: [{name: b, min_runtime_default: 540m}]}]", "children[0].min_runtime_default: 540m is"),
        ("[{name: a}, {name: a}]", "stands twice among its siblings"),
        ("[{name: a, id: b}, {name: b}]", "the id 'b' is taken"),
        ("[{name: a, id: ''}]", "is no name"),
        ("[{name: a/b}]", "is no name"),
        ('[{name: "a\\tb"}]', "control characters"),
        ("[{name: 2026-11-30, wieght: 1}]", "did you mean 'weight'?"),
        ("[]", "holds no budget"),
        ("", "has no value"),
        ("[{name: a, children: [{name: b, weight: -1}]}, {children: [{weight: x}]}]", "children[0].weight"),
    ],
)
def test_a_wrong_budget_says_what_to_write(tmp_path: Path, budgets: str, words: str) -> None:
    assert words in said(tmp_path, f"hosts: [{{name: a, gpus: 1}}]\nbudgets: {budgets}\n")


def test_errors_below_a_wrong_budget_are_told_too(tmp_path: Path) -> None:
    found = said(tmp_path, "hosts: [{name: a, gpus: 1}]\nbudgets: [{name: x/y, children: [{name: b, max_gpus: x}]}]\n")
    assert "is no name" in found
    assert "budgets[0].children[0].max_gpus" in found


def test_an_absent_limit_is_none_and_zero_is_zero(tmp_path: Path) -> None:
    """G1-15."""
    text = "hosts: [{name: a, gpus: 1}]\nbudgets: [{name: a}, {name: b, max_gpus: 0, weight: 0.000001}]\n"
    tree = read(tmp_path, text).clusters[0].budgets
    assert [b.max_gpus for b in tree.budgets] == [None, 0]
    assert [b.weight for b in tree.budgets] == [WEIGHT, 1]


def test_every_knob_of_the_policy_can_be_written(tmp_path: Path) -> None:
    fields = {target for target, _ in KNOBS.values()} | {"min_runtime_min_ms", "min_runtime_max_ms"}
    fields |= {"serving_floor", "serving_floor_ppm"}  # health.floor of the cluster
    assert fields == set(Policy.__dataclass_fields__)
    text = GOOD + "policy: {preemption_margin: 12.5%, max_blast: 1.5, pack: tight, min_runtime_bounds: [1m, 4h]}\n"
    policy = read(tmp_path, text).clusters[0].policy
    assert (policy.preemption_margin_ppm, policy.max_blast_ppm, policy.pack) == (125_000, 1_500_000, "tight")
    assert (policy.min_runtime_min_ms, policy.min_runtime_max_ms) == (60_000, 4 * HOUR)


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("{preemption_margin: 0.05}", "0.05% or 5%"),
        ("{preemption_margin: 200%}", "more than 100%"),
        ("{lookback: 31d}", "outside 1m to 30d"),
        ("{lookback: 168}", "has no unit"),
        ("{min_runtime_bounds: 8h}", "expected a list"),
        ("{min_runtime_bounds: [8h, 1h]}", "8h is more than 1h; write [1h, 8h]"),
        ("{min_runtime_bounds: [0, 8:00]}", "8h00m or 8m00s"),
        ("{resources: drf}", "not supported yet"),
        ("{pack: loose}", "none of aligned, tight"),
        ("{count_commitments: on}", "write true"),
        ("{suspect_failures: 2, suspect_owners: 3}", "cannot come from"),
        ("{max_reservation: 4}", "did you mean 'max_reservations'?"),
        *((f"{{{name}: 1}}", "not supported yet") for name in LATER),
    ],
)
def test_a_wrong_knob_says_what_to_write(tmp_path: Path, policy: str, words: str) -> None:
    found = problems(tmp_path, GOOD + f"policy: {policy}\n")
    assert any(words in p and ":6:" in p for p in found), found


def test_paths_begin_where_the_file_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two consoles started in different directories open the same store."""
    monkeypatch.chdir("/")
    inventory = read(tmp_path, GOOD + "state_dir: state\nssh: {known_hosts: kh, identity: [~/key, /abs]}\n")
    assert inventory.state_dir == tmp_path / "state"
    assert inventory.ssh.known_hosts == (str(tmp_path / "kh"),)
    assert inventory.ssh.identity[1] == "/abs"


def test_a_missing_key_is_only_a_warning(tmp_path: Path) -> None:
    inventory = read(tmp_path, GOOD + "ssh:\n  identity: missing_key\n")
    (warning,) = inventory.warnings
    assert (warning.line, warning.warning) == (7, True)
    assert "there is no file" in str(warning)


def test_jump_hosts_have_defaults_and_a_way_out(tmp_path: Path) -> None:
    text = """\
ssh: {jump: ops@gate}
hosts:
  - {name: a, gpus: 1}
  - {name: gate, gpus: 1, jump: []}
budgets: [{name: x}]
"""
    assert [h.jump for h in read(tmp_path, text).clusters[0].hosts] == [("ops@gate",), ()]
    assert "its own jump host" in said(tmp_path, text.replace(", jump: []", ""))


def test_the_inventory_is_looked_for_in_four_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("OPSCONSOLE_INVENTORY", raising=False)
    with pytest.raises(ConfigError, match=r"is neither in .* nor at") as caught:
        find_inventory(None)
    assert caught.value.exit_code == 2
    own = tmp_path / "config/opsconsole/inventory.yaml"
    own.parent.mkdir(parents=True)
    own.write_text(GOOD)
    assert find_inventory(None) == str(own)
    (tmp_path / "inventory.yaml").write_text(GOOD)
    assert find_inventory(None) == "inventory.yaml"
    monkeypatch.setenv("OPSCONSOLE_INVENTORY", "/x")
    assert find_inventory(None) == "/x"
    assert find_inventory("/y") == "/y"


def test_problems_are_json_by_field(tmp_path: Path) -> None:
    path = tmp_path / "i.yaml"
    path.write_text("hosts: [{name: a, gpus: x}]\nbudgets: [{name: a}]\n")
    with pytest.raises(ConfigError) as caught:
        read_inventory(str(path))
    (problem,) = caught.value.as_json()
    assert problem == {
        "file": str(path),
        "line": 1,
        "field": "hosts[0].gpus",
        "what": "expected a whole number, got 'x'",
        "fix": "write digits, such as 8",
        "column": 25,
        "warning": False,
    }


def test_a_file_full_of_errors_is_told_in_bounds(tmp_path: Path) -> None:
    rows = "".join(f"  - {{name: h{n}, gpus: x}}\n" for n in range(500))
    path = tmp_path / "i.yaml"
    path.write_text(f"hosts:\n{rows}budgets: [{{name: a}}]\n")
    with pytest.raises(ConfigError) as caught:
        read_inventory(str(path))
    assert len(caught.value.problems) == 500
    assert str(caught.value).endswith("… and 300 more")


def test_a_fence_is_of_all_hosts_but_those_that_say_otherwise(tmp_path: Path) -> None:
    text = (
        GOOD.replace("gpus: 8}", "gpus: 8}\n  - {name: vm, gpus: 8, fence: []}")
        + "fence: [sh, -c, exit 0]\nfence_timeout: 30s\n"
    )
    inventory = read(tmp_path, text)
    hosts = inventory.clusters[0].hosts
    assert (hosts[0].fence, hosts[-1].fence) == (("sh", "-c", "exit 0"), ()) and inventory.fence_timeout_ms == 30_000
    assert [host.fence for host in inventory.clusters[0].core_hosts()] == [bool(host.fence) for host in hosts]


def test_a_fence_begins_where_the_file_is_and_a_missing_one_is_a_warning(tmp_path: Path) -> None:
    inventory = read(tmp_path, GOOD + "fence: ./power-off.sh\n")
    assert inventory.clusters[0].hosts[0].fence == (f"{tmp_path}/power-off.sh",)
    assert [w.what for w in inventory.warnings] == [f"there is no program {tmp_path}/power-off.sh"]
