"""`opsconsole demo --script fault`: a GPU falls off the bus, and the machine sees it, says how it knows, and drains the
host by the contract.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from opsconsole.demo.cluster import DemoCluster
from opsconsole.demo.story import HOST, Story, busy_cluster, drained, judge, moved_on, names, runs_there, until
from opsconsole.runtime import Runtime
from opsconsole.store.store import Event
from scheduler_core.decisions import HostMoved, StopDecided
from scheduler_core.fleet import HostState
from scheduler_core.observations import AutoDrainProposed
from scheduler_core.state import MemberPhase

HEALTH = "{auto: {F: drain}, floor: 1}"
SLOT = 3
SOON_MS = 5000


@dataclass
class FaultStory(Story):
    """`requested_ms`: when it broke. `verdict_ms`: when health asked, `why` in its words."""

    verdict_ms: int | None = None
    why: str = ""


async def tell(cluster: DemoCluster, runtime: Runtime, say: Callable[[str], None]) -> FaultStory:
    """Runs the whole story on a started cluster. Raises OpsConsoleError where it comes to a stop."""
    async with busy_cluster(runtime) as leading:
        story = FaultStory(requested_ms=runtime.clock.now(), runs=runs_there(runtime.state))
        say(f"{HOST} runs {names(story)}; its GPU {SLOT} falls off the bus")
        cluster.break_gpu(HOST, SLOT)
        host = runtime.state.hosts[HOST]
        await until(leading, lambda: host.state is not HostState.SERVING, "health to see it")
        say(f"{HOST} is {host.state.value}: {host.by.why if host.by else ''}")
        await until(leading, lambda: _ended(runtime, story), "its runs to end by the contract")
        say(f"what ran on a GPU that cannot be asked is not known to be gone: {HOST} is power-cycled")
        cluster.power_cycle(HOST)
        await drained(leading, runtime)
        say(f"{HOST} is drained")
        await until(leading, lambda: moved_on(runtime, story), "the requeued runs to start elsewhere")
        judge_fault(story, runtime.store.tail(0))
        return story


def _ended(runtime: Runtime, story: FaultStory) -> bool:
    """Their processes have; nobody can say yet whether the GPU that fell off is free of them."""
    runs = [runtime.state.runs[row["run"]] for row in story.runs if row["run"] in runtime.state.runs]
    return all(run.members[HOST].phase in (MemberPhase.EXITED, MemberPhase.LEAKED) for run in runs)


def judge_fault(story: FaultStory, events: list[Event]) -> None:
    """What every drain promises, and what is promised of a verdict."""
    facts = judge(story, events)
    story.promises |= _promises(story, facts)


def _promises(story: FaultStory, facts: list[tuple[int, Any]]) -> dict[str, bool]:
    asked = [(at, v) for at, v in facts if isinstance(v, AutoDrainProposed)]
    story.verdict_ms, story.why = (asked[0][0], asked[0][1].reason) if asked else (None, "")
    soon = story.verdict_ms is not None and story.verdict_ms - story.requested_ms <= SOON_MS
    told = f"GPU {SLOT}: xid:79" in story.why and "NVRM: Xid" in story.why
    moved = [v for _, v in facts if isinstance(v, HostMoved) and v.to is not HostState.DRAINED]
    stops = [v for _, v in facts if isinstance(v, StopDecided) and v.run in {row["run"] for row in story.runs}]
    return {
        "the verdict came within 5 s": soon,
        "it said what broke, in the kernel's own words": told,
        "one host was drained, once": [(v.host, v.to) for v in moved] == [(HOST, HostState.DRAINING)],
        "by the contract, over nobody's guarantee": not any(stop.override for stop in stops),
    }
