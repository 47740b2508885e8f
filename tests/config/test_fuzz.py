"""Whatever is typed, only a ConfigError comes out, in under a second, and its text is safe to print."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opsconsole.config.errors import ConfigError
from opsconsole.config.inventory import read_inventory
from opsconsole.config.snapshot import read_snapshot
from scheduler_core.report import plan_report
from scheduler_core.state import ClusterState

INVENTORY = """\
ssh: {user: ops, port: 22, jump: [gate], connecting: 8}
state_dir: ~/state
hosts:
  - {name: "gpu[01-04]", gpus: 8, address: "10.0.0.[1-4]", labels: {model: h100}}
  - &h {name: other, gpus: 4, identity: ~/.ssh/id, cluster: main}
budgets:
  - {name: olmo, weight: 3, children: [{name: pretrain, max_gpus: 8}, {name: eval, min_runtime_default: 30m}]}
  - {name: vision, over_budget_weight: 2.5, id: seeing}
policy: {lookback: 7d, min_runtime_bounds: [0, 8h], preemption_margin: 5%, max_blast: 2}
on_quit: serve
"""
SNAPSHOT = """\
now: 2026-11-30T12:00:00Z
policy: {lookback: 7d, preemption_margin: 5%}
budgets:
  - {name: olmo, weight: 60, children: [{name: pretrain, weight: 3}, {name: eval, weight: 1}]}
  - {name: vision, weight: 40, max_gpus: 64}
hosts:
  - {name: "gpu[1-4]", gpus: 8, state: serving, in_service: 3d}
  - {name: sick, gpus: 4, state: draining, labels: {model: h100}}
usage: {olmo/pretrain: 120, vision: 300.5}
unallocated_usage: {vision: 1}
workloads:
  - {id: w1, budget: olmo/pretrain, gpus: 16, min_runtime: 2h, running: {on: {"gpu[1-2]": 8}, for: 3h}}
  - {id: w2, budget: vision, gpus: 4, min_runtime: 30m, waiting: 10m, priority: 1, needs: {model: h100}}
  - {id: w3, budget: vision, gpus: 32, hosts: 4, gpus_per_host: 8, min_runtime: 0, waiting: 1d, held: because}
"""
WORDS = ["", "no", "~", "-1", "010", "8:00", "1e9", ".nan", "9" * 30, "[1-", "a[1-9999999]", "*h", "&x", "<<", "!!int"]
WORDS += [
    "local",
    "lost",
    "~nosuch/x",
    "é",
    "'",
    '"',
    "{}",
    "[]",
    "2026-11-30",
    "x" * 2000,
    "gpu1",
    "olmo",
    "[[1]]",
    "\\e",
]
VALUES = st.recursive(
    st.sampled_from([*WORDS, 0, -1, 2**70, 1.5, True, None, "8", "1h", "5%"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*WORDS, "name", "gpus"]), inner, max_size=3)
    ),
    max_leaves=5,
)
FAST = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def attempt(path: Path, text: str, read: Callable[[str], object]) -> object | None:
    """Reads a text; checks how it was refused, if it was."""
    path.write_text(text, encoding="utf-8")
    begun = time.process_time()
    try:
        return read(str(path))
    except ConfigError as error:
        assert error.problems
        assert not any(char < " " and char != "\n" for char in str(error))
        return None
    finally:
        assert time.process_time() - begun < 1


def check(path: Path, kind: str, text: str) -> None:
    if kind == "inventory":
        attempt(path, text, read_inventory)
    elif isinstance(state := attempt(path, text, read_snapshot), ClusterState):
        plan_report(state)


def splice(text: str, edits: list[tuple[float, int, str]]) -> str:
    for where, cut, word in edits:
        at = int(where * len(text))
        text = text[:at] + word + text[at + cut :]
    return text


EDITS = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 6), st.sampled_from([*WORDS, *"[]{}:,-&*!|>'\"%@`#?\n\t 0a~"])),
    max_size=5,
)


@pytest.mark.parametrize(("kind", "text"), [("inventory", INVENTORY), ("snapshot", SNAPSHOT)])
def test_the_texts_to_spoil_are_good(kind: str, text: str, tmp_path: Path) -> None:
    assert attempt(tmp_path / "f.yaml", text, read_inventory if kind == "inventory" else read_snapshot) is not None


@pytest.mark.parametrize(("kind", "text"), [("inventory", INVENTORY), ("snapshot", SNAPSHOT)])
@FAST
@given(edits=EDITS)
def test_spoilt_text(kind: str, text: str, edits: list[tuple[float, int, str]], tmp_path: Path) -> None:
    check(tmp_path / "f.yaml", kind, splice(text, edits))


def places(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """Where a document has values."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] * bool(path) + [place for key, child in items for place in places(child, (*path, key))]


@pytest.mark.parametrize(("kind", "text"), [("inventory", INVENTORY), ("snapshot", SNAPSHOT)])
@FAST
@given(data=st.data())
def test_well_formed_but_wrong(kind: str, text: str, data: st.DataObject, tmp_path: Path) -> None:
    """Any value in any place: a list where a number belongs, a number where a mapping does."""
    document = yaml.load(text, Loader=yaml.BaseLoader)
    for _ in range(data.draw(st.integers(1, 3))):
        *way, last = data.draw(st.sampled_from(places(document)))
        at = document
        for key in way:
            at = at[key]
        if data.draw(st.booleans()):
            at[last] = data.draw(VALUES)
        elif isinstance(at, dict):
            at[data.draw(st.sampled_from(WORDS))] = at.pop(last)
    check(tmp_path / "f.yaml", kind, yaml.safe_dump(document, allow_unicode=True))
