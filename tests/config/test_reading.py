"""Units, ranges and YAML: nothing is guessed, every error of a file at once (group G6 of the field reports)."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opsconsole.config.errors import ConfigError
from opsconsole.config.inventory import Inventory, read_inventory
from opsconsole.config.ranges import expand
from opsconsole.config.units import parse_instant_ms
from opsconsole.spans import format_span, parse_span_ms

GOOD = """\
hosts:
  - {name: "gpu[01-04]", gpus: 8}
budgets:
  - {name: olmo, weight: 3, children: [{name: pretrain}, {name: eval}]}
  - {name: vision}
"""


def read(tmp_path: Path, text: str) -> Inventory:
    path = tmp_path / "inventory.yaml"
    path.write_text(text)
    return read_inventory(str(path))


def problems(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text)
    return [str(p) for p in caught.value.problems]


@pytest.mark.parametrize(
    ("text", "ms"), [("90s", 90_000), ("1h30m", 5_400_000), ("7d", 604_800_000), ("250ms", 250), ("0", 0)]
)
def test_spans_carry_their_unit(text: str, ms: int) -> None:
    assert parse_span_ms(text) == ms


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("8:00", "8h00m"),
        ("1:30:00", "1h30m"),
        ("30", "no unit"),
        ("", "no span"),
        ("5 minutes", "no span"),
        ("1e9d", "no span"),
    ],
)
def test_bare_and_clock_like_spans_are_refused_with_both_readings(text: str, said: str) -> None:
    """G6-02."""
    with pytest.raises(ValueError, match=said):
        parse_span_ms(text)


@given(st.integers(0, 10**12))
def test_spans_are_written_as_they_are_read(ms: int) -> None:
    assert parse_span_ms(format_span(ms)) == ms


@pytest.mark.parametrize("text", ["2026-11-30T12:00:00Z", "2026-11-30T13:00:00+01:00", "2026-11-30T12:00:00.000+00:00"])
def test_instants_mean_the_same_in_every_zone(text: str) -> None:
    assert parse_instant_ms(text) == 1_796_040_000_000


def test_an_instant_without_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="no time zone"):
        parse_instant_ms("2026-11-30T12:00:00")


def test_ranges_keep_their_zeros() -> None:
    assert expand("gpu[008-010]") == ["gpu008", "gpu009", "gpu010"]
    assert expand("rack[a,b]-gpu[1-2]") == ["racka-gpu1", "racka-gpu2", "rackb-gpu1", "rackb-gpu2"]


@pytest.mark.parametrize(
    "pattern",
    ["node[1-1000000000]", "[1-999][1-999][1-999]", "gpu[9-1]", "gpu[]", "gpu[[1-2]]", "gpu[1-2", "gpu[1..2]"],
)
def test_bad_ranges_are_refused_at_once(pattern: str) -> None:
    """G6-08."""
    begun = time.process_time()
    with pytest.raises(ValueError):
        expand(pattern)
    assert time.process_time() - begun < 1


def test_a_minimal_inventory_is_hosts_and_budgets(tmp_path: Path) -> None:
    (cluster,) = read(tmp_path, GOOD).clusters
    assert [h.name for h in cluster.hosts] == ["gpu01", "gpu02", "gpu03", "gpu04"]
    assert cluster.budgets.leaves == ("olmo/eval", "olmo/pretrain", "vision")


def test_all_errors_of_a_file_come_at_once_with_their_lines(tmp_path: Path) -> None:
    text = """\
hosts:
  - {name: gpu01, gpus: eight}
  - {name: gpu01, gpus: 010}
  - {name: gpu02, gpsu: 8}
policy:
  lookback: 7
  min_runtime_bounds: [0, 8:00]
budgets:
  - {name: olmo, weight: -1}
  - {name: olmo}
"""
    found = problems(tmp_path, text)
    lines = {problem.split(":")[1] for problem in found}
    assert {"2", "3", "4", "6", "7", "9", "10"} <= lines
    assert any("did you mean 'gpus'" in p for p in found)
    assert any("8 in YAML 1.1 and 10 elsewhere" in p for p in found)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hosts: [{name: a, gpus: 1}]\nhosts: [{name: b, gpus: 1}]\nbudgets: [{name: x}]", "stands twice"),
        ("\thosts: []", "tab"),
        ("a: &a [*a]\nhosts: *a\n", "alias"),
        ("x: !!python/object:os.system {}", "tag"),
        ("a: 1\n---\nb: 2\n", "second document"),
        ("", "is empty"),
        ("[" * 5000, "nest"),
        ("hosts: {", "check quotes"),
        ("hosts:\n  - {name: gpu[01-04], gpus: 8}\n", 'write "gpu[01-04]"'),
        ("hosts:\n  - {name: g, address: n[1,2].lan, gpus: 8}\n", 'write "n[1,2].lan"'),
    ],
)
def test_surprises_of_yaml_are_refused(tmp_path: Path, text: str, said: str) -> None:
    assert any(said in problem for problem in problems(tmp_path, text)), problems(tmp_path, text)


def test_an_alias_bomb_is_refused_before_it_grows(tmp_path: Path) -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    begun = time.process_time()
    assert any("without bound" in p for p in problems(tmp_path, "\n".join(rows)))
    assert time.process_time() - begun < 10


def test_no_is_a_name_like_any_other(tmp_path: Path) -> None:
    text = GOOD.replace("name: vision", "name: no")
    assert "no" in read(tmp_path, text).clusters[0].budgets.by_path


def test_knobs_of_rules_to_come_are_refused_by_name(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, GOOD + "policy: {half_life: 1d}\n")
    assert "not supported yet" in problem


def test_files_that_cannot_be_read_say_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_inventory(str(tmp_path / "missing.yaml"))
    with pytest.raises(ConfigError, match="cannot be read"):
        read_inventory(str(tmp_path))
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not UTF-8"):
        read_inventory(str(tmp_path / "binary"))


mutations = st.lists(
    st.tuples(st.integers(0, len(GOOD) - 1), st.sampled_from("[]{}:,-&*!|>'\"%@`#?\n\t 0a~")), max_size=6
)


@settings(max_examples=150, deadline=None)
@given(mutations)
def test_whatever_is_typed_only_a_config_error_comes_out(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[int, str]]
) -> None:
    text = GOOD
    for at, char in edits:
        text = text[:at] + char + text[at + 1 :]
    path = tmp_path_factory.getbasetemp() / "mutated.yaml"
    path.write_text(text)
    try:
        inventory = read_inventory(str(path))
    except ConfigError as error:
        assert error.problems
    else:
        assert inventory.clusters
