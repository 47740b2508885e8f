"""Submits the demo's stream to a runtime, as teams would."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from opsconsole.demo.stream import Submission
from opsconsole.runtime import Runtime
from scheduler_core.ids import BudgetId, WorkloadId
from scheduler_core.observations import WorkloadSubmitted
from scheduler_core.units import SECOND
from scheduler_core.workload import Launch, Workload

# Real processes that write a line a second, stop on SIGTERM as training code should, and end by themselves.
WORK = 'n=0; while [ $n -lt "$0" ]; do n=$((n+1)); echo "step $n on $CUDA_VISIBLE_DEVICES"; sleep 1; done'


def workload_of(s: Submission, now: int) -> Workload:
    """The submission as a workload; its name is its id, since the stream gives every name once."""
    return Workload(
        WorkloadId(s.name),
        BudgetId(s.budget),
        s.gpus,
        s.min_runtime_s * SECOND,
        now,
        owner=s.owner,
        name=s.name,
        resumable=s.resumable,
        launch=Launch(("sh", "-c", WORK, str(s.runtime_s))),
    )


async def feed(runtime: Runtime, submissions: Iterable[Submission]) -> None:
    """Each at its time, counted from now. A submission that comes to nothing is an alarm, not the end."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    for submission in submissions:
        await asyncio.sleep(max(0.0, begun + submission.at_s - loop.time()))
        await runtime.ask(WorkloadSubmitted(workload_of(submission, runtime.clock.now())))
