"""The promises of the story of a fault, judged from journals that keep them or do not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from opsconsole.demo.fault import FaultStory, judge_fault
from opsconsole.demo.story import HOST
from scheduler_core.decisions import HostMoved, Member, Placed, StopCause, StopDecided
from scheduler_core.fleet import HostState
from scheduler_core.ids import DrainId, HostName, RunId, WorkloadId
from scheduler_core.observations import AutoDrainProposed, MemberExited, MemberReleased, MemberStarted

RUN, BROKE_MS = RunId("w~1"), 100_000
ROW = {"run": RUN, "workload": "w", "budget": "a", "min_runtime_s": 20.0, "resumable": True}
WHY = "GPU 3: xid:79, GPU fell off the bus (F): NVRM: Xid (PCI:0000:13:00): 79"
OTHER = HostMoved(HostName("gpu01"), HostState.DRAINING, WHY)


def journal(
    verdict_ms: int = BROKE_MS + 700, stop_ms: int = 119_000, override: bool = False, more: Any = ()
) -> list[Any]:
    stop = StopDecided(RUN, StopCause.DRAIN, "gpu02 is drained", "opsconsole", override)
    again = RunId("w~2")
    facts = [
        (98_000, MemberStarted(RUN, HOST)),
        (verdict_ms, AutoDrainProposed(DrainId("d"), HOST, WHY, False, ("xid:79",))),
        (verdict_ms, HostMoved(HOST, HostState.DRAINING, WHY)),
        (stop_ms, stop),
        (119_500, MemberExited(RUN, HOST, 0)),
        (121_000, MemberStarted(RUN, HOST)),  # told again by the boot that came after
        (121_000, MemberReleased(RUN, HOST)),
        (121_500, HostMoved(HOST, HostState.DRAINED, "known empty")),
        (140_000, Placed(WorkloadId("w"), again, (Member(HostName("gpu05"), 0xFF),))),
        *more,
    ]
    return [SimpleNamespace(at_ms=at, value=value, role="fact") for at, value in facts]


@pytest.mark.parametrize(
    ("told", "broken"),
    [
        (journal(), ""),
        (journal(verdict_ms=BROKE_MS + 5001), "the verdict came within 5 s"),
        (journal(stop_ms=110_000), "no run was stopped before its min runtime"),
        (journal(override=True), "by the contract, over nobody's guarantee"),
        (
            journal(more=[(141_000, OTHER)]),
            "one host was drained, once",
        ),
    ],
)
def test_a_story_says_which_promise_was_broken(told: list[Any], broken: str) -> None:
    story = FaultStory(requested_ms=BROKE_MS, runs=[dict(ROW)])
    judge_fault(story, told)
    assert [promise for promise, held in story.promises.items() if not held] == ([broken] if broken else [])
    assert story.held is not bool(broken) and len(story.promises) == 11
