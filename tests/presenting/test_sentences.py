"""Events as sentences: every kind has one, which names what it is about; foreign words stay words."""

from __future__ import annotations

import dataclasses
from typing import Any, get_args

import pytest

from opsconsole.presenting.sentences import SENTENCES, sentence, source_of, subject_of
from scheduler_core import decisions as d
from scheduler_core import observations as o
from scheduler_core.ids import BudgetId, CommandId, HostName, RunId, WorkloadId
from scheduler_core.workload import Workload
from tests.core.clusters import Cluster, of_kind

BY = o.By("kim", "fan change")
W, RUN, HOST = WorkloadId("train-7"), RunId("train-7~2"), HostName("gpu022")
MEMBERS = (d.Member(HOST, 0b1111), d.Member(HostName("gpu023"), 0b11))


def kinds(module: Any) -> list[type]:
    """The events of a module: its own dataclasses that are neither parts of others nor people."""
    parts = (o.By, d.Member, d.Standing)
    own = [c for c in vars(module).values() if isinstance(c, type) and c.__module__ == module.__name__]
    return [c for c in own if dataclasses.is_dataclass(c) and c not in parts]


@pytest.mark.parametrize("kind", [*kinds(o), *get_args(o.Request), *kinds(d)], ids=lambda kind: kind.__name__)
def test_every_kind_of_event_has_a_sentence(kind: type) -> None:
    assert kind in SENTENCES


@pytest.mark.parametrize(
    ("event", "words", "source", "subject"),
    [
        (
            o.WorkloadSubmitted(Workload(W, BudgetId("nlp"), 1, 1_800_000, 0, owner="ada")),
            "train-7 submitted to nlp: 1 GPU, min runtime 30m, by ada",
            "person",
            "train-7",
        ),
        (
            o.WorkloadSubmitted(Workload(W, BudgetId("nlp"), 4, 0, 0)),
            "train-7 submitted to nlp: 4 GPUs, unallocated, by nobody",
            "person",
            "train-7",
        ),
        (
            o.RequeueRequested(W, BY, True),
            "requeue of train-7 asked for by kim: fan change, overriding its guarantee",
            "person",
            "train-7",
        ),
        (o.CordonRequested(HOST, o.By("kim")), "gpu022 cordoned by kim", "person", "gpu022"),
        (o.CordonRequested(HOST, o.By("kim"), 1_000), "gpu022 cordoned for a while by kim", "person", "gpu022"),
        (
            o.HoldRequested(W, o.By("kim", "quota", "OPS-7")),
            "train-7 held by kim: quota [OPS-7]",
            "person",
            "train-7",
        ),
        (
            o.WorkloadMoved(W, BY, BudgetId("nlp"), 5),
            "train-7 moved to nlp and given priority 5 by kim: fan change",
            "person",
            "train-7",
        ),
        (
            o.WeightChanged(BudgetId("nlp"), 2_500_000, BY),
            "weight of nlp set to 2.5 by kim: fan change",
            "person",
            "nlp",
        ),
        (
            o.RequestRefused("HoldRequested", "train-7", "it is running, not waiting", BY),
            "hold train-7 refused to kim: it is running, not waiting",
            "person",
            "train-7",
        ),
        (o.HostSeen(HOST, "cf56881e-1"), "gpu022 answers (boot cf56881e)", "hardware", "gpu022"),
        (
            o.HostSeen(HOST, "b", foreign=1, unfit=0b11),
            "gpu022 answers (boot b): 2 unfit GPUs, foreign processes",
            "hardware",
            "gpu022",
        ),
        (o.HostFenced(HOST, CommandId("c1")), "gpu022 was powered off", "hardware", "gpu022"),
        (
            o.ClockStepped(-3_600_000),
            "the head node's clock was set back by 1h: times before are in the old time; no promise moves",
            "hardware",
            "",
        ),
        (
            o.MemberExited(RUN, HOST, None, "SIGTERM", True),
            "train-7~2 ended on gpu022: SIGTERM, after a stop",
            "run",
            "gpu022",
        ),
        (o.MemberExited(RUN, HOST), "train-7~2 ended on gpu022: nobody knows how", "run", "gpu022"),
        (o.MemberExited(RUN, HOST, 0), "train-7~2 ended on gpu022: exit status 0", "run", "gpu022"),
        (d.Placed(W, RUN, MEMBERS), "train-7~2 placed on gpu022:4, gpu023:2", "scheduler", "train-7~2"),
        (
            d.Claimed(W, MEMBERS, (RunId("a~1"), RunId("b~1"))),
            "gpu022:4, gpu023:2 kept for train-7, which waits for a~1, b~1",
            "scheduler",
            "train-7",
        ),
        (
            d.Claimed(W, (), ()),
            "nothing is kept for train-7 any more: it would come too late for what is reserved there",
            "scheduler",
            "train-7",
        ),
        (
            d.Reserved(W, 9, MEMBERS),
            "gpu022:4, gpu023:2 reserved for train-7, once the runs on them may be stopped",
            "scheduler",
            "train-7",
        ),
        (
            d.ReservationEnded(W, "max_gpus"),
            "nothing is reserved for train-7 any more: max_gpus",
            "scheduler",
            "train-7",
        ),
        (
            d.StopDecided(RUN, d.StopCause.PREEMPT, "for x"),
            f"train-7~2 stops ({d.StopCause.PREEMPT}): for x",
            "scheduler",
            "train-7~2",
        ),
        (d.HostLost(HOST), "gpu022 is lost: unreachable for too long", "hardware", "gpu022"),
    ],
)
def test_what_events_say(event: Any, words: str, source: str, subject: str) -> None:
    assert (sentence(event), source_of(event), subject_of(event)) == (words, source, subject)


def test_foreign_words_stay_words() -> None:
    """Neither formats nor escapes nor lines of their own."""
    event = o.CancelRequested(W, o.By("{e}", "a\n\x1b[2Jb {by} [red]"))
    assert sentence(event) == "train-7 cancelled by {e}: a [2Jb {by} [red]"


@pytest.mark.parametrize("ask", [o.CancelRequested, o.RequeueRequested])
def test_nothing_follows_where_no_reason_was_given(ask: Any) -> None:
    """Neither in the sentence nor in the reason of what was decided."""
    c = Cluster()
    c.running("w", min_runtime=0)
    step = c.see(ask(WorkloadId("w"), o.By("kim")))
    said = [sentence(ask(W, o.By("kim"))), *(stop.reason for stop in of_kind(step, d.StopDecided))]
    assert len(said) == 2 and all(words.endswith("by kim") for words in said)


def test_an_unknown_kind_is_at_least_named() -> None:
    @dataclasses.dataclass
    class Novelty:
        host: str = "gpu1"

    assert (sentence(Novelty()), source_of(Novelty()), subject_of(Novelty())) == ("Novelty", "scheduler", "gpu1")
