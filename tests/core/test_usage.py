"""Rules 2 to 5: ledgers are exact integrals over a sliding window."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.ids import BudgetId
from scheduler_core.observations import InventoryLoaded
from scheduler_core.units import GPU, HOUR, MINUTE
from scheduler_core.usage import Ledgers, StepFunction
from tests.core.clusters import PASS, T0, Cluster, budgets

changes = st.lists(st.tuples(st.integers(0, 1000), st.integers(-5, 5)), max_size=30)


@given(changes, st.integers(0, 1500), st.integers(0, 1500))
def test_a_window_is_the_integral_second_by_second(deltas: list[tuple[int, int]], beyond: int, span: int) -> None:
    step = StepFunction()
    at = 0
    rates: list[int] = []
    for wait, delta in deltas:
        rates += [step.rate] * wait
        at += wait
        step.change(at, delta)
    rates += [step.rate] * beyond
    now = at + beyond
    expected = sum(rates[max(0, now - span) : now])
    assert step.within(now, span) == expected


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(-5, 5)), min_size=1, max_size=30))
def test_a_change_that_is_known_late_gives_the_same_ledger(deltas: list[tuple[int, int]]) -> None:
    """In whatever order changes come to be known; the first is known when it happens."""
    first, *later = sorted(deltas)
    sorted_step, late = StepFunction(), StepFunction()
    for at, delta in [first, *later]:
        sorted_step.change(at, delta)
    deltas.remove(first)
    for at, delta in [first, *deltas]:
        late.change(at, delta)
    for now in (1000, 1500):
        assert [late.within(now, span) for span in range(0, 1600, 50)] == [
            sorted_step.within(now, span) for span in range(0, 1600, 50)
        ]


def test_nothing_counts_at_exactly_the_lookback() -> None:
    """Limits' trap: at now - lookback the whole history counted as used."""
    step = StepFunction()
    step.change(0, 1000)
    step.change(10, -1000)
    assert step.within(10 + 3600, 3600) == 0
    assert step.within(9 + 3600, 3600) == 1000


def test_time_before_the_first_service_counts_as_served_by_todays_gpus() -> None:
    ledgers = Ledgers()
    ledgers.service.change(T0, 8 * GPU)
    assert ledgers.in_service(T0, HOUR) == 8 * GPU * HOUR
    assert ledgers.in_service(T0 + HOUR, HOUR) == 8 * GPU * HOUR
    ledgers.service.change(T0 + HOUR, 8 * GPU)
    assert ledgers.in_service(T0 + 2 * HOUR, HOUR) == 16 * GPU * HOUR


def test_usage_runs_from_dispatch_to_release_grace_included() -> None:
    c = Cluster()
    c.submit("w", gpus=4)
    placed_at = c.engine.state.runs[c.run("w")].placed_at
    c.later(MINUTE)
    c.start("w")
    c.later(HOUR)
    released_at = c.now
    c.finish("w")
    c.later(HOUR)
    used = c.engine.state.ledgers.used(BudgetId("a"), c.now, c.policy.lookback_ms)
    assert used == 4 * GPU * (released_at - placed_at)


def test_a_run_that_ended_while_nobody_looked_is_charged_until_it_ended() -> None:
    c = Cluster()
    c.running("w", gpus=4)
    placed_at = c.engine.state.runs[c.run("w")].placed_at
    c.later(2 * HOUR)
    c.finish("w", ago_ms=HOUR)
    assert c.engine.state.ledgers.used(BudgetId("a"), c.now, c.policy.lookback_ms) == (
        4 * GPU * (c.now - HOUR - placed_at)
    )
    assert c.workload("w").attempts[0].ended_at == c.now - HOUR


def test_an_end_before_it_began_or_before_its_budget_moved_is_not_believed() -> None:
    c = Cluster({"a": 1, "a/x": 1, "b": 1, "b/y": 1})
    c.running("early", "a/x", gpus=2)
    c.finish("early", ago_ms=9 * HOUR)
    assert c.engine.state.ledgers.used(BudgetId("a"), c.now, c.policy.lookback_ms) == 0
    c.running("w", "a/x", gpus=2)
    c.later(HOUR - PASS)
    moved = tuple(replace(b, parent=BudgetId("b")) if b.id == "a/x" else b for b in budgets(c.weights))
    c.see(InventoryLoaded(c.policy, moved, tuple(h.host for h in c.engine.state.hosts.values())))
    c.later(HOUR)
    c.finish("w", ago_ms=90 * MINUTE)
    ledgers, window = c.engine.state.ledgers, c.policy.lookback_ms
    assert [ledgers.used(BudgetId(b), c.now, window) for b in ("a", "b")] == [2 * GPU * HOUR, 0]


def test_unallocated_time_has_a_ledger_of_its_own() -> None:
    c = Cluster()
    c.running("w", min_runtime=0)
    c.later(HOUR)
    ledgers, window = c.engine.state.ledgers, c.policy.lookback_ms
    assert ledgers.used(BudgetId("a"), c.now, window) == 0
    held_ms = c.now - c.engine.state.runs[c.run("w")].placed_at
    assert ledgers.used(BudgetId("a"), c.now, window, allocated=False) == 8 * GPU * held_ms


def test_a_moved_budget_keeps_its_usage_and_old_ancestors_keep_theirs() -> None:
    c = Cluster({"a": 1, "a/x": 1, "b": 1, "b/y": 1})
    c.running("w", "a/x", gpus=2)
    c.later(HOUR - PASS)
    moved = tuple(replace(b, parent=BudgetId("b")) if b.id == "a/x" else b for b in budgets(c.weights))
    fleet = tuple(h.host for h in c.engine.state.hosts.values())
    c.see(InventoryLoaded(c.policy, moved, fleet))
    c.later(HOUR)

    def hours(budget: str) -> float:
        return c.engine.state.ledgers.used(BudgetId(budget), c.now, c.policy.lookback_ms) / (GPU * HOUR)

    assert (hours("a/x"), hours("a"), hours("b")) == (4, 2, 2)
