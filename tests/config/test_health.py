"""A site's own word on rules of health: what is taken, and how each mistake is told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from opsconsole.config.errors import ConfigError
from opsconsole.config.inventory import Inventory, read_inventory
from opsconsole.health.acting import Automatic
from opsconsole.health.rules import Severity

HOSTS = "hosts: [{name: gpu01, gpus: 8}]\nbudgets: [{name: all}]\n"


def read(folder: Path, health: str) -> Inventory:
    file = folder / "inventory.yaml"
    file.write_text(HOSTS + health)
    return read_inventory(str(file))


def test_the_example_of_the_documents(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs/health.md").read_text()
    (example,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    file = tmp_path / "inventory.yaml"
    file.write_text(example)
    rules = read_inventory(str(file)).health.rules
    assert rules["xid:94"].severity is Severity.WATCH and rules["heat:peers"].limit == 20
    assert (rules["xid:999"].severity, rules["xid:999"].action) == (Severity.DEGRADED, "replace the riser")


def test_without_a_word_the_table_counts(tmp_path: Path) -> None:
    health = read(tmp_path, "").health
    assert (health.auto, health.overrides) == (Automatic("propose", "propose"), {})


def test_what_the_machine_may_do_by_itself(tmp_path: Path) -> None:
    def auto(health: str) -> Automatic:
        return read(tmp_path, f"health: {{{health}}}\n").cluster(None).auto

    assert auto("auto: drain") == Automatic("drain", "drain")
    assert auto("auto: off, floor: 6") == Automatic("off", "off", 6)
    assert auto("auto: {F: drain}, floor: 75%") == Automatic("propose", "drain", 0, 750_000)
    loaded = read(tmp_path, "health: {floor: 75%}\n").cluster(None).loaded()
    assert (loaded.policy.serving_floor, loaded.policy.serving_floor_ppm) == (0, 750_000)


def test_a_cluster_says_it_for_itself(tmp_path: Path) -> None:
    file = tmp_path / "inventory.yaml"
    hosts = "hosts: [{name: %s, gpus: 8}], budgets: [{name: all}]"
    file.write_text(
        f"health: {{auto: {{F: drain}}, floor: 2}}\nclusters:\n  - {{name: a, {hosts % 'a1'}}}\n"
        f"  - {{name: b, {hosts % 'b1'}, health: {{auto: {{D: off}}, floor: 10%}}}}\n"
    )
    inventory = read_inventory(str(file))
    assert inventory.cluster("a").auto == Automatic("propose", "drain", 2)
    assert inventory.cluster("b").auto == Automatic("off", "drain", 0, 100_000)


@pytest.mark.parametrize(
    ("health", "said"),
    [
        ("auto: drian", "did you mean 'drain'?"),
        ("auto: {W: drain}", "health.auto.W"),
        ("auto: {F: now}", "health.auto.F"),
        ("auto: [drain]", "health.auto"),
        ("floor: 120%", "more than all hosts"),
        ("floor: -1", "health.floor"),
        ("floor: 2.5", "health.floor"),
        ("flor: 2", "did you mean 'floor'?"),
    ],
)
def test_each_mistake_in_it_has_its_line(tmp_path: Path, health: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, f"health:\n  {health}\n")
    (problem,) = caught.value.problems
    assert said in str(problem) and problem.line == 4


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("ecc:remap-faild: {severity: W}", "did you mean 'ecc:remap-failed'?"),
        ("xid79: {severity: W}", "write it as xid:79"),
        ("xid:79: {severity: bad}", "xid:79.severity"),
        ("xid:79: {limit: 3}", "has no limit"),
        ("heat:peers: {limit: much}", "expected a number"),
        ("xid:79: {colour: red}", "is not known"),
        ("xid:79: W", "keys and values"),
    ],
)
def test_each_mistake_is_told_where_it_stands(tmp_path: Path, rule: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, f"health:\n  rules:\n    {rule}\n    xid:48: {{severity: Z}}\n")
    first, second = caught.value.problems
    assert said in str(first) and first.line == 5 and "xid:48.severity" in str(second)
