"""`opsconsole demo --script drain`: the drain of a busy host, told from the journal, with every promise checked.

The promises are checked against what hosts reported, not against what the engine meant to do.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from opsconsole.demo.cluster import DemoCluster
from opsconsole.demo.feeding import feed
from opsconsole.demo.stream import OPENING
from opsconsole.errors import OpsConsoleError
from opsconsole.runtime import Runtime
from opsconsole.store.store import Event
from scheduler_core.decisions import HostMoved, Placed, StopDecided
from scheduler_core.fleet import HostState
from scheduler_core.ids import DrainId, HostName
from scheduler_core.observations import (
    By,
    DrainRequested,
    MemberExited,
    MemberReleased,
    MemberStarted,
    UndrainRequested,
)
from scheduler_core.state import ClusterState

HEALTH = "{auto: off}"
STORY_S = 240.0
HOST = HostName("gpu02")
CLOCKS_MS = 1500  # a start is noticed up to a poll later than it happened


@dataclass
class Story:
    """What happened and which promises held."""

    host: str = HOST
    requested_ms: int = 0
    drained_ms: int | None = None
    runs: list[dict[str, Any]] = field(default_factory=list)
    restarted: list[dict[str, Any]] = field(default_factory=list)
    preemptions: int = 0
    promises: dict[str, bool] = field(default_factory=dict)

    @property
    def held(self) -> bool:
        return bool(self.promises) and all(self.promises.values())


async def tell(cluster: DemoCluster, runtime: Runtime, say: Callable[[str], None]) -> Story:
    """Runs the whole story on a started cluster. Raises OpsConsoleError where it comes to a stop."""
    async with busy_cluster(runtime) as leading:
        story = Story(requested_ms=runtime.clock.now(), runs=runs_there(runtime.state))
        say(f"{HOST} runs {names(story)}; asking for its drain")
        await runtime.ask(DrainRequested(DrainId("d-story"), HOST, By("demo", "a fan is loud")))
        await drained(leading, runtime)
        say(f"{HOST} is drained")
        await until(leading, lambda: moved_on(runtime, story), "the requeued runs to start elsewhere")
        judge(story, runtime.store.tail(0))
        await runtime.ask(UndrainRequested(HOST, By("demo", "the fan is quiet")))
        return story


@contextlib.asynccontextmanager
async def busy_cluster(runtime: Runtime) -> AsyncIterator[asyncio.Task[None]]:
    """Led and full of work, with the task that leads."""
    leading = asyncio.create_task(runtime.lead("demo"))
    feeding: asyncio.Task[None] | None = None
    try:
        await until(leading, lambda: bool(runtime.state.hosts), "the leader to begin")
        feeding = asyncio.create_task(feed(runtime, OPENING))
        await until(leading, lambda: _busy(runtime.state), "the cluster to fill up")
        yield leading
    finally:
        for task in (feeding, leading):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, OpsConsoleError):
                    await task


def names(story: Story) -> str:
    return ", ".join(row["run"] for row in story.runs)


def runs_there(state: ClusterState) -> list[dict[str, Any]]:
    return [_before(state, run) for run in state.hosts[HOST].runs]


async def drained(leading: asyncio.Task[None], runtime: Runtime) -> None:
    await until(leading, lambda: runtime.state.hosts[HOST].state is HostState.DRAINED, f"{HOST} to be drained")


async def until(leading: asyncio.Task[None], true: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + STORY_S
    while not true():
        if leading.done():
            leading.result()
            raise OpsConsoleError("the leader ended")
        if time.monotonic() > until:
            raise OpsConsoleError(f"waited {STORY_S:.0f} s for {what}")
        await asyncio.sleep(0.1)


def _busy(state: ClusterState) -> bool:
    """The host is full of started runs, and at least one of them is protected for a while yet."""
    host = state.hosts.get(HOST)
    if host is None or host.free or not host.runs:
        return False
    runs = [state.runs[run] for run in host.runs]
    return all(r.started_at is not None and r.stop is None for r in runs) and any(
        r.protected(state.now + 3000) for r in runs
    )


def _before(state: ClusterState, run_id: Any) -> dict[str, Any]:
    run = state.runs[run_id]
    w = state.workloads[run.workload].workload
    return {
        "run": run.id,
        "workload": w.id,
        "budget": w.budget,
        "min_runtime_s": run.min_runtime_ms / 1000,
        "resumable": w.resumable,
    }


def moved_on(runtime: Runtime, story: Story) -> bool:
    """Every requeued run of the host has started again."""
    for row in story.runs:
        record = runtime.state.workloads.get(row["workload"])
        if record is None or record.outcome is not None or len(record.attempts) > 1:
            continue
        if record.run in (None, row["run"]) or runtime.state.runs[record.run].started_at is None:
            return False
    return True


def judge(story: Story, events: list[Event]) -> list[tuple[int, Any]]:
    """Reads the journal: when each run started and stopped, where it went on, and whether every promise held. Returns
    its facts, each with its instant.
    """
    facts = [(event.at_ms, event.value) for event in events if event.role != "command"]
    for row in story.runs:
        _times(row, facts)
    drained = [at for at, v in facts if isinstance(v, HostMoved) and v.host == HOST and v.to is HostState.DRAINED]
    story.drained_ms = drained[0] if drained else None
    story.restarted = _restarts(story, facts)
    story.preemptions = sum(1 for _, v in facts if isinstance(v, StopDecided) and v.for_workload)
    story.promises = _promises(story, facts)
    return facts


def _times(row: dict[str, Any], facts: list[tuple[int, Any]]) -> None:
    mine = [(at, v) for at, v in facts if getattr(v, "run", None) == row["run"]]
    stops = [(at, v) for at, v in mine if isinstance(v, StopDecided)]
    row["started_ms"] = _told_by_all(mine, MemberStarted)
    row["stop_decided_ms"] = stops[0][0] if stops else None
    row["cause"] = stops[0][1].cause.value if stops else None
    row["ended_ms"] = _told_by_all(mine, MemberExited)
    row["released_ms"] = _told_by_all(mine, MemberReleased)
    if row["started_ms"] is not None and row["ended_ms"] is not None:
        row["ran_s"] = (row["ended_ms"] - row["started_ms"]) / 1000


def _told_by_all(mine: list[tuple[int, Any]], kind: type[Any]) -> int | None:
    """When the last of its hosts said so first: one that booted says it again."""
    first: dict[HostName, int] = {}
    for at, v in mine:
        if isinstance(v, kind):
            first.setdefault(v.host, at)
    return max(first.values(), default=None)


def _restarts(story: Story, facts: list[tuple[int, Any]]) -> list[dict[str, Any]]:
    before = {row["run"] for row in story.runs}
    workloads = {row["workload"] for row in story.runs}
    return [
        {"workload": v.workload, "run": v.run, "hosts": [m.host for m in v.members], "at_ms": at}
        for at, v in facts
        if isinstance(v, Placed) and v.workload in workloads and v.run not in before and at >= story.requested_ms
    ]


def _promises(story: Story, facts: list[tuple[int, Any]]) -> dict[str, bool]:
    stopped = [row for row in story.runs if row["stop_decided_ms"] is not None]
    gone = [row["workload"] for row in stopped if row["resumable"]]
    moved = {row["workload"] for row in story.restarted}
    released = [row["released_ms"] for row in story.runs]
    return {
        "the host had runs to drain": bool(story.runs),
        "no run was stopped before its min runtime": all(
            row["stop_decided_ms"] - row["started_ms"] >= row["min_runtime_s"] * 1000 - CLOCKS_MS for row in stopped
        ),
        "every run left the host": all(at is not None for at in released),
        "drained was said only when the host was known empty": story.drained_ms is not None
        and all(at is not None and at <= story.drained_ms for at in released),
        "nothing new started on the draining host": not any(
            isinstance(v, Placed) and at > story.requested_ms and any(m.host == HOST for m in v.members)
            for at, v in facts
        ),
        "what could be resumed went on elsewhere": all(w in moved for w in gone)
        and not any(HOST in row["hosts"] for row in story.restarted),
        "no workload ran twice at once": _never_twice(facts),
    }


def _never_twice(facts: list[tuple[int, Any]]) -> bool:
    """A new attempt is placed only after every member of the older one gave its GPUs back."""
    held: dict[str, int] = {}
    for _, v in facts:
        if isinstance(v, Placed):
            older = [run for run, members in held.items() if members and run.rpartition("~")[0] == v.workload]
            if older:
                return False
            held[v.run] = len(v.members)
        elif isinstance(v, MemberReleased) and v.run in held:
            held[v.run] -= 1
    return True
