"""Cases of other schedulers (KAI, Slurm, YARN, Kueue, Ai2) through `opsconsole plan`: where we decide alike.

Where we do not, by the rules, docs/decisions/reference-cases.md says so; those that are decided at all stand here too.
What holds GPUs has held them for the whole window, so that a share of GPUs and of GPU time are the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.config.test_plan_door import decisions, plan

HOUR_WINDOW = "policy: {lookback: 1h, max_blast: 9}\n"


def head(budgets: str, gpus: int, more: str = HOUR_WINDOW) -> str:
    hosts = "" if gpus > 64 else f"  - {{name: node0, gpus: {gpus}}}\n"
    if gpus > 64:
        hosts = f'  - {{name: "node[001-{gpus // 10:03}]", gpus: 10}}\n'
    return f"now: 2026-11-30T12:00:00Z\n{more}budgets:\n{budgets}hosts:\n{hosts}"


def queues(weights: dict[str, float]) -> str:
    return "".join(f"  - {{name: {name}, weight: {weight}}}\n" for name, weight in weights.items())


def row(wid: str, budget: str, gpus: int, ran: str = "", priority: int = 50, least: str = "10m") -> str:
    where = f"running: {{on: {{node0: {gpus}}}, for: {ran}}}" if ran else "waiting: 1m"
    common = f"id: {wid}, budget: {budget}, gpus: {gpus}, min_runtime: {least}, priority: {priority}"
    return f"  - {{{common}, resumable: true, {where}}}\n"


def used(hours: dict[str, float]) -> str:
    return f"usage: {{{', '.join(f'{name}: {amount}' for name, amount in hours.items())}}}\n"


def evicted(found: dict[str, Any]) -> list[str]:
    return sorted(decisions(found, "preempt"))


# Shares of KAI's queues: what they deserve, and the rest by their over-quota weights.
RECLAIM = [
    pytest.param(10, {"q0": 4, "q1": 6}, {"q0": 8}, ("q1", 6), True, id="kai-act-01"),
    pytest.param(12, {"q0": 14, "q1": 22}, {"q0": 10}, ("q1", 7), True, id="kai-act-03"),
    pytest.param(5, {"q0": 2, "q1": 3}, {"q0": 3, "q1": 2}, ("q1", 1), True, id="kai-rc-01"),
    pytest.param(2, {"q0": 1, "q1": 1}, {"q0": 1, "q1": 1}, ("q1", 1), False, id="kai-act-04"),
    pytest.param(
        4, {"q0": 2, "q1": 2}, {"q0": 1, "q1": 3}, ("q1", 1), False, id="kai-rc-03: the victim is below its share"
    ),
    # by rule 6 who has just got its share is over it
    pytest.param(10, {"q0": 4, "q1": 6}, {"q0": 4}, ("q1", 7), True, id="kai-act-02, differs"),
    # by rule 17 b the one that got less may claim, also where nobody is over its share
    pytest.param(8, {"q0": 4, "q1": 4}, {"q0": 2}, ("q1", 7), True, id="kai-vf-01, differs"),
]


@pytest.mark.parametrize(("gpus", "weights", "holds", "claim", "goes"), RECLAIM)
def test_reclaim(
    tmp_path: Path, gpus: int, weights: dict[str, float], holds: dict[str, int], claim: tuple[str, int], goes: bool
) -> None:
    rows = "".join(row(f"old-{name}", name, held, "1h") for name, held in holds.items())
    found = plan(tmp_path, rows + row("new", *claim), used(dict(holds)), head(queues(weights), gpus))
    assert evicted(found) == (["old-q0"] if goes else [])
    assert "new" not in decisions(found, "place")


def test_equal_queues_at_their_share_leave_each_other_alone(tmp_path: Path) -> None:
    """kai-act-04, both sides."""
    rows = row("r0", "q0", 1, "1h") + row("r1", "q1", 1, "1h") + row("p0", "q0", 1) + row("p1", "q1", 1)
    found = plan(tmp_path, rows, used({"q0": 1, "q1": 1}), head(queues({"q0": 1, "q1": 1}), 2))
    assert not evicted(found) and sorted(decisions(found, "hold")) == ["p0", "p1"]


def test_across_queues_priority_chooses_no_victim(tmp_path: Path) -> None:
    """kai-act-05, differs: rule 18 knows balances and work lost; priority counts inside a leaf only (rule 6)."""
    rows = "".join(
        row(f"{q}-{n}", q, 1, f"{ran}m", priority)
        for q in ("q0", "q1")
        for n, ran, priority in ((0, 30, 50), (1, 60, 50), (2, 60, 49))
    )
    found = plan(
        tmp_path, rows + row("new", "q2", 2), used({"q0": 3, "q1": 3}), head(queues({"q0": 1, "q1": 1, "q2": 2}), 6)
    )
    assert evicted(found) == ["q0-0", "q1-0"], "those that lose least"


@pytest.mark.parametrize(
    ("ran", "least", "allowed"),
    [
        pytest.param("10s", "15s", False, id="kai-mr-e01"),
        pytest.param("30s", "15s", True, id="kai-mr-e02"),
        pytest.param("20s", "30s", False, id="kai-mr-e03"),
        pytest.param("15s", "15s", True, id="from exactly that instant (rule 12)"),
    ],
)
def test_min_runtime(tmp_path: Path, ran: str, least: str, allowed: bool) -> None:
    rows = row("old", "q0", 8, ran, least=least) + row("new", "q1", 8)
    found = plan(tmp_path, rows, used({"q0": 8}), head(queues({"q0": 1, "q1": 1}), 8))
    assert evicted(found) == (["old"] if allowed else [])


@pytest.mark.parametrize(
    ("leaf", "ran", "allowed"),
    [
        pytest.param("prod/team2", "14s", False, id="kai-mr-p01: its own"),
        pytest.param("prod/team2", "15s", True, id="kai-mr-p01: its own, over"),
        pytest.param("prod/team1", "19s", False, id="kai-mr-p02: inherited"),
        pytest.param("prod/team1", "20s", True, id="kai-mr-p02: inherited, over"),
    ],
)
def test_min_runtime_is_inherited_down_the_tree(tmp_path: Path, leaf: str, ran: str, allowed: bool) -> None:
    tree = """\
  - {name: dev}
  - {name: prod, min_runtime_default: 20s, children: [{name: team1}, {name: team2, min_runtime_default: 15s}]}
"""
    old = row("old", leaf, 8, ran).replace("min_runtime: 10m, ", "")
    found = plan(tmp_path, old + row("new", "dev", 8), used({leaf: 8}), head(tree, 8))
    assert evicted(found) == (["old"] if allowed else [])


def shares(found: dict[str, Any], hours: dict[str, float], total: float) -> dict[str, float]:
    """Of the whole, in percent, from usage and balance as the plan tells them."""
    balances = {entry["budget"]: entry["balance"] for entry in found["order"]}
    return {name: round(100 * amount / balances[name] / total, 3) for name, amount in hours.items()}


def test_steady_shares_of_a_tree(tmp_path: Path) -> None:
    """yarn-h-06: a share does not depend on who is active; kueue-fs-01 likewise."""
    tree = """\
  - {name: A, weight: 8, children: [{name: a1}, {name: a2}, {name: a3}, {name: a4}]}
  - {name: B, children: [{name: b1}, {name: b2}]}
  - {name: default}
"""
    hours = dict.fromkeys(("A/a1", "A/a2", "A/a3", "A/a4", "B/b1", "B/b2", "default"), 1.0)
    found = plan(tmp_path, "  []\n", used(hours), head(tree, 10))
    assert shares(found, hours, 10) == {n: {"A": 20, "B": 5, "d": 10}[n[0]] for n in hours}


def test_kueue_shares_of_a_tree(tmp_path: Path) -> None:
    """kueue-fs-01."""
    tree = """\
  - {name: C1, children: [{name: a}, {name: b}, {name: c, weight: 3}]}
  - {name: C2, children: [{name: d}]}
"""
    hours = dict.fromkeys(("C1/a", "C1/b", "C1/c", "C2/d"), 1.0)
    found = plan(tmp_path, "  []\n", used(hours), head(tree, 300))
    assert shares(found, hours, 300) == {"C1/a": 10, "C1/b": 10, "C1/c": 30, "C2/d": 50}


def test_usage_over_budget_orders(tmp_path: Path) -> None:
    """ai2-order-01, with its balances."""
    hours = {"a1": 28, "b2": 25, "c3": 47}
    found = plan(tmp_path, "  []\n", used(dict(hours)), head(queues({"a1": 35, "b2": 20, "c3": 45}), 100))
    assert [(e["budget"], round(e["balance"], 4)) for e in found["order"]] == [
        ("a1", 0.8),
        ("c3", 1.0444),
        ("b2", 1.25),
    ]


FAIR_TREE = """\
  - {name: aA, weight: 40, children: [
      {name: aAA, weight: 30, children: [{name: uAA1}]},
      {name: aAB, weight: 10, children: [{name: uAB1}, {name: uAB2}]}]}
  - {name: aB, weight: 60, children: [
      {name: aBA, weight: 25, children: [{name: uBA1}]}, {name: aBB, weight: 35, children: [{name: uBB1}]}]}
  - {name: aC, weight: 0, children: [{name: uC1, weight: 0}]}
  - {name: aD, weight: 50, children: [
      {name: uD2, weight: 40}, {name: uD3, weight: 50}, {name: uDA2, weight: 30}, {name: uDA3, weight: 50},
      {name: parents, weight: 0}]}
  - {name: aE, weight: 10, children: [{name: aE1, weight: 10}, {name: aE2, weight: 10}]}
  - {name: aF, weight: 20, children: [{name: uF1, weight: 10}, {name: uF2, weight: 20}]}
  - {name: aG, weight: 8, children: [
      {name: aGA, weight: 10, children: [{name: uGA1, weight: 20}, {name: uGA2, weight: 20}]}, {name: uG1, weight: 10}]}
  - {name: u1, weight: 10}
  - {name: u2, weight: 10}
"""
FAIR_TREE_USED = {
    "aA/aAA/uAA1": 20,
    "aA/aAB/uAB1": 25,
    "aB/aBA/uBA1": 25,
    "aC/uC1": 30,
    "aD/uD2": 20,
    "aD/uD3": 25,
    "aD/uDA2": 10,
    "aD/uDA3": 25,
    "aD/parents": 30,
    "aG/uG1": 10,
    "aG/aGA/uGA1": 4,
    "aG/aGA/uGA2": 6,
    "u2": 10,
}


def test_the_whole_fair_tree_of_slurm(tmp_path: Path) -> None:
    """slurm-fairtree-01. Users with Fairshare=parent, which we have not, are one leaf of weight 0.

    Ties, which Slurm ranks alike, go by id here; a branch that is tied is taken whole, not merged with its equal.
    """
    found = plan(tmp_path, "  []\n", used(dict(FAIR_TREE_USED)), head(FAIR_TREE, 240))
    inner = {entry["budget"].rpartition("/")[0] for entry in found["order"]}
    leaves = [entry["budget"] for entry in found["order"] if entry["budget"] not in inner]
    assert [leaf.rpartition("/")[2] for leaf in leaves] == [
        *("aE1", "aE2", "uF1", "uF2", "u1"),  # nobody used anything: all 1.0
        *("uBB1", "uBA1", "u2", "uAA1", "uAB2", "uAB1"),
        *("uDA2", "uD2", "uD3", "uDA3", "parents"),  # the three in the middle are exactly tied
        *("uGA1", "uGA2", "uG1"),  # aGA and uG1 are tied
        "uC1",
    ]
