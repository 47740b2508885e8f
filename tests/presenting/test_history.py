"""What the last day was like: occupancy, impact (rule 31) and waits, by the hour."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opsconsole.presenting.history import HOURS, LastDay, day
from opsconsole.presenting.overview import figures, reasons_table
from scheduler_core.engine import Step
from scheduler_core.ids import WorkloadId
from scheduler_core.observations import CancelRequested, Observation
from scheduler_core.policy import Policy
from scheduler_core.shares.owed import owed_hourly
from scheduler_core.units import HOUR, MINUTE
from scheduler_core.workload import WorkloadPhase
from tests.core.clusters import OPS, Cluster
from tests.ui.worlds import FakeSource

PROMPT = Policy(pass_interval_ms=1)


def words(source: FakeSource) -> str:
    return "\n".join("".join(c.text for c in line) for line in figures(source.view(), day(source.state), 200))


def test_occupancy_by_the_hour_is_the_integral_and_unknown_before_the_beginning() -> None:
    cluster = Cluster({"a": 1, "a/x": 1, "b": 1}, {"h1": 8})
    cluster.later(2 * HOUR)
    cluster.running("w", "a/x", 4, 10 * HOUR)
    cluster.running("v", "b", 4, 0)
    cluster.later(HOUR)
    last = day(cluster.engine.state)
    assert len(last.occupancy) == HOURS and last.occupancy[: HOURS - 3] == [None] * (HOURS - 3)
    assert [round(h or 0) for h in last.occupancy[-3:]] == [0, 0, 100]


def test_impact_is_what_was_got_of_what_was_owed_and_wanted() -> None:
    """Of 8 GPUs a and b are owed 4 each. a has all of them; b wants 4 in the second hour and gets none."""
    cluster = Cluster({"a": 1, "b": 1}, {"h1": 8}, PROMPT)
    source = FakeSource(cluster)
    cluster.later(MINUTE)
    assert "Impact – nothing owed (1m) → Utilisation" in words(source)
    cluster.running("w", "a", 8, 100 * HOUR)
    cluster.later(HOUR)
    assert day(source.state).impact == 1, "b wanted nothing"
    for wid, gpus, min_runtime in (("v", 4, HOUR), ("free", 4, 0), ("huge", 64, HOUR)):
        cluster.submit(wid, "b", gpus, min_runtime)
    cluster.later(HOUR)
    assert float(day(source.state).impact or 0) == pytest.approx(8 / 12, abs=1e-5), "only v is owed anything"
    assert "Impact 66.7% (2h01m)" in words(source)
    cluster.later(40 * HOUR)
    assert day(source.state).impact == Fraction(1, 2), "of the last day alone"


def test_before_anything_is_in_service_impact_is_not_known() -> None:
    assert "Impact ? → Utilisation ?" in words(FakeSource(Cluster({"a": 1}, {})))


@dataclass
class Watched(Cluster):
    """Remembers what was so between steps: since when, GPUs in service, that ran and that waited for each leaf."""

    spans: list[tuple[int, int, Counter[str], Counter[str]]] = field(default_factory=list)

    def see(self, *observations: Observation) -> Step:
        step, state = super().see(*observations), self.engine.state
        ran, waited = Counter[str](), Counter[str]()
        for run in state.runs.values():
            ran[run.budget] += run.gpus * run.allocated
        for record in state.workloads.values():
            if record.phase is WorkloadPhase.WAITING and record.workload.allocated:
                waited[record.workload.budget] += record.workload.gpus
        self.spans.append((self.now, sum(r.in_service for r in state.hosts.values()), ran, waited))
        return step

    def impact(self) -> Fraction | None:
        """Rule 31 from what was seen."""
        ends = [begin for begin, *_ in self.spans[1:]] + [self.now]
        all_owed, toward = Fraction(0), Fraction(0)
        for leaf in self.weights:
            entitled, demand, got = ([Fraction(0)] * HOURS for _ in range(3))
            for hour in range(HOURS):
                first = self.now - (HOURS - hour) * HOUR
                for (begin, service, ran, waited), end in zip(self.spans, ends, strict=True):
                    ms = max(0, min(end, first + HOUR) - max(begin, first))
                    entitled[hour] += Fraction(self.weights[leaf], sum(self.weights.values())) * service * ms
                    demand[hour] += (ran[leaf] + waited[leaf]) * ms
                    got[hour] += ran[leaf] * ms
            owed = Fraction(sum(owed_hourly(entitled, demand)))
            all_owed, toward = all_owed + owed, toward + min(owed, sum(got, Fraction(0)))
        return toward / all_owed if all_owed else None


WORK = st.tuples(st.sampled_from("ab"), st.sampled_from((1, 2, 4, 8)), st.booleans(), st.integers(0, 5 * HOUR))


@given(st.lists(WORK, max_size=9))
@settings(max_examples=30, deadline=None)
def test_impact_agrees_with_what_was_seen_of_all_that_waited_and_ran(work: list[tuple[str, int, bool, int]]) -> None:
    cluster = Watched({"a": 1, "b": 3}, {"h1": 4, "h2": 4}, PROMPT)
    for n, (leaf, gpus, free, ms) in enumerate(work):
        cluster.submit(f"w{n}", leaf, gpus, 0 if free else HOUR, resumable=True)
        cluster.later(ms)
        for run in [*cluster.engine.state.runs.values()]:
            if run.stop is not None or ms % 3 == 0:
                cluster.finish(run.workload, 143 if run.stop is not None else 0, run.stop is not None)
        if ms % 5 == 0 and cluster.workload(f"w{n}").phase is WorkloadPhase.WAITING:
            cluster.see(CancelRequested(WorkloadId(f"w{n}"), OPS))
    assert day(cluster.engine.state).impact == cluster.impact()


def test_waits_are_told_an_hour_apart_as_far_as_anybody_waited() -> None:
    cluster = Cluster({"a": 1}, {"h1": 8}, PROMPT)
    source = FakeSource(cluster)
    cluster.running("w", "a", 8, 10 * HOUR)
    cluster.later(90 * MINUTE)
    cluster.submit("v", "a", 8, HOUR)
    cluster.later(2 * HOUR)
    last = day(source.state)
    assert [wait and round(wait / HOUR) for wait in last.waits] == [None, None, 0, 0, 1, 2]
    assert reasons_table(source.view(), last).title.endswith("p90 wait 2h ▁▁▅█ 3h")


def test_the_last_day_is_worked_out_once_a_minute() -> None:
    cluster = Cluster({"a": 1}, {"h1": 8})
    source, last = FakeSource(cluster), LastDay()
    before = last.of(source.view())
    assert last.of(source.view()) is before
    cluster.later(MINUTE)
    assert last.of(source.view()) is not before
