"""A site's own word on rules of health: what is taken, and how each mistake is told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from opsconsole.config.errors import ConfigError
from opsconsole.config.inventory import Inventory, read_inventory
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
    assert (health.auto, health.overrides) == ("propose", {})
    assert read(tmp_path, "health: {auto: drain}\n").health.auto == "drain"


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
