"""`x` on what the timeline tells: a preemption with the figures of its moment, also once the state has forgotten it."""

from __future__ import annotations

from opsconsole.ui.screens.text import TextScreen
from scheduler_core.decisions import StopDecided
from scheduler_core.observations import By, CancelRequested
from scheduler_core.units import HOUR, MINUTE
from tests.core.clusters import Remembered
from tests.ui.driving import console, seen, select, status
from tests.ui.worlds import FakeSource, happenings


def preempted() -> FakeSource:
    """vision held all; olmo, which has got less, took a host."""
    cluster = Remembered({"olmo": 3, "vision": 1}, {"gpu1": 8, "gpu2": 8})
    cluster.running("v1", "vision", 8, 30 * MINUTE, owner="maria", resumable=True)
    cluster.running("v2", "vision", 8, 30 * MINUTE, owner="maria", resumable=True)
    cluster.later(HOUR)
    cluster.submit("o1", "olmo", 8, HOUR, owner="ada")
    source = FakeSource(cluster)
    source.happenings = happenings(cluster.steps, cluster.now)
    return source


async def explain_the_stop(source: FakeSource) -> str:
    stop = next(h for h in source.happenings if isinstance(h.event, StopDecided))
    async with console(source) as (app, pilot):
        await select(app, pilot, "7", str(stop.seq))
        await pilot.press("x")
        await pilot.pause()
        assert isinstance(app.screen, TextScreen), status(app)
        return " ".join(seen(app).replace("│", " ").split())


async def test_a_preemption_in_the_timeline() -> None:
    said = await explain_the_stop(preempted())
    assert "for o1: olmo has got 0.00 of its share and vision" in said
    assert "olmo stood 1st among its siblings" in said and "Its protection had ended at" in said


async def test_one_that_the_state_has_forgotten() -> None:
    source = preempted()
    (victim,) = [run for run in source.state.runs.values() if run.stop is not None]
    source.cluster.finish(victim.workload, 143, signalled=True)
    source.cluster.see(CancelRequested(victim.workload, By("maria")))
    source.cluster.later(25 * HOUR)
    source.happenings = happenings(source.cluster.steps, source.cluster.now)
    said = await explain_the_stop(source)
    assert f"{victim.id} is over and forgotten; the journal tells:" in said
    assert "vision stood 2nd among its siblings" in said
