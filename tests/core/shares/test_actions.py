"""The actions of a quota scheduler on small clusters: who is placed, who moves, who goes, and who stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.errors import UnknownIdError
from scheduler_core.shares.quota import Queue
from scheduler_core.shares.quota_actions import Action, Fate, QuotaActions
from scheduler_core.shares.quota_cluster import Job, QuotaCluster

# Two queues that deserve 4 of 12 GPUs each and share the rest evenly.
QUEUES = [Queue("a", 4, created=1), Queue("b", 4, created=2)]


class Scene:
    """Nodes, queues, running jobs (with the node of each task) and waiting ones."""

    def __init__(
        self,
        *rows: tuple[Job, str],
        queues: Sequence[Queue] = QUEUES,
        nodes: Sequence[int] = (12,),
    ) -> None:
        running = {job.id: tuple(at.split()) for job, at in rows if at}
        places = {f"n{number}": gpus for number, gpus in enumerate(nodes)}
        self.cluster = QuotaCluster(places, queues, [job for job, _ in rows], running)
        self.actions = QuotaActions(self.cluster)

    def fates(self, action: Action) -> dict[str, str]:
        return {name: outcome.fate for name, outcome in self.actions.run(action).items()}

    def places(self, action: Action) -> dict[str, str]:
        return {name: " ".join(outcome.places) for name, outcome in self.actions.run(action).items()}


def job(name: str, gpus: int, queue: str = "a", **more: object) -> Job:
    return Job(name, queue, gpus, **more)  # type: ignore[arg-type]


# -- allocate ------------------------------------------------------------------------------------------------------


def test_allocate_fills_the_fullest_node_that_has_room_and_takes_gangs_whole() -> None:
    scene = Scene(
        (job("old", 2), "n1"),
        (job("one", 2), ""),
        (job("gang", 4, "b", tasks=2), ""),
        (job("two", 4, tasks=2), ""),
        nodes=(8, 4),
    )
    assert scene.places("allocate") == {"old": "n1", "one": "n1", "gang": "n0 n0", "two": ""}


def test_allocate_serves_the_queue_below_what_it_deserves_then_the_smaller_part_of_its_share() -> None:
    scene = Scene((job("a0", 5), "n0"), (job("a1", 4), ""), (job("b1", 4, "b"), ""), (job("b2", 3, "b"), ""))
    assert scene.fates("allocate") == {"a0": "running", "a1": "pending", "b1": "placed", "b2": "placed"}


def test_within_a_queue_priority_goes_first_then_who_came_first() -> None:
    rows = [(job("late", 6), ""), (job("later", 6), ""), (job("urgent", 6, priority=1), "")]
    assert Scene(*rows).fates("allocate") == {"late": "placed", "later": "pending", "urgent": "placed"}


def test_a_limit_holds_below_it_and_what_is_not_preemptible_stays_within_what_is_deserved() -> None:
    tree = [Queue("top", 12, limit=5), *(replace(q, parent="top") for q in QUEUES)]
    assert Scene((job("x", 4), ""), (job("y", 4, "b"), ""), queues=tree).fates("allocate")["y"] == "pending"
    fixed = [(job("x", 3, preemptible=False), ""), (job("y", 3, preemptible=False), "")]
    assert Scene(*fixed).fates("allocate") == {"x": "placed", "y": "pending"}


# -- reclaim -------------------------------------------------------------------------------------------------------


def test_reclaim_takes_from_the_queue_above_its_share_its_least_important_and_youngest_first() -> None:
    rows = [(job(f"a{n}", 3, priority=int(n == 3)), "n0") for n in range(4)]
    fates = Scene(*rows, (job("new", 3, "b"), "")).fates("reclaim")
    assert fates == {"a0": "running", "a1": "running", "a2": "evicted", "a3": "running", "new": "placed after release"}


def test_reclaim_takes_nothing_from_a_queue_within_its_share_or_for_one_beyond_its_own() -> None:
    even = [(job("a0", 6), "n0"), (job("b0", 6, "b"), "n0")]
    assert Scene(*even, (job("a1", 1), ""), (job("b1", 1, "b"), "")).fates("reclaim") == {
        "a0": "running",
        "b0": "running",
        "a1": "pending",
        "b1": "pending",
    }
    assert Scene((job("a0", 12), "n0"), (job("b1", 7, "b"), "")).fates("reclaim")["b1"] == "pending"


def test_reclaim_takes_turns_between_queues_above_their_shares() -> None:
    queues = [Queue(q, 2, 0, created=n) for n, q in enumerate("abc")] + [Queue("d", 6, 0)]
    rows = [(job(f"{q}{n}", 1, q), "n0") for q in "abc" for n in range(4)]
    fates = Scene(*rows, (job("new", 1, "d", tasks=3), ""), queues=queues).fates("reclaim")
    assert sorted(name for name, fate in fates.items() if fate == "evicted") == ["a3", "b3", "c3"]


def test_reclaim_leaves_alone_whom_it_need_not_take() -> None:
    """a1 alone is too small; with a0 gone as well a1 still fits."""
    scene = Scene((job("a0", 9), "n0"), (job("a1", 3), "n0"), (job("new", 4, "b"), ""))
    assert scene.fates("reclaim") == {"a0": "evicted", "a1": "running", "new": "placed after release"}


def test_reclaim_passes_over_a_queue_that_nothing_can_be_taken_from() -> None:
    """`safe` would be the first to lose, by its priority; it holds less than it deserves."""
    queues = [Queue("lab", 5, priority=1), Queue("a", 4, parent="lab"), Queue("b", 0, parent="lab"), Queue("safe", 6)]
    scene = Scene(
        (job("b0", 4, "b"), "n0"), (job("s0", 4, "safe"), "n0"), (job("new", 4), ""), queues=queues, nodes=(8,)
    )
    assert scene.fates("reclaim") == {"b0": "evicted", "s0": "running", "new": "placed after release"}


def test_reclaim_touches_nothing_that_is_not_preemptible() -> None:
    assert Scene((job("a0", 12, preemptible=False), "n0"), (job("b", 4, "b"), "")).fates("reclaim")["b"] == "pending"


# -- preempt -------------------------------------------------------------------------------------------------------


def test_preempt_is_within_a_queue_and_for_a_higher_priority_only() -> None:
    rows = [(job("low", 6), "n0"), (job("other", 6, "b"), "n0")]
    assert Scene(*rows, (job("new", 6, priority=1), "")).fates("preempt") == {
        "low": "evicted",
        "other": "running",
        "new": "placed after release",
    }
    assert Scene(*rows, (job("new", 6), "")).fates("preempt")["low"] == "running"
    assert Scene(*rows, (job("new", 7, priority=1), "")).fates("preempt")["low"] == "running", "no victim in vain"


# -- consolidation -------------------------------------------------------------------------------------------------


def test_consolidation_moves_what_finds_another_place_and_evicts_nobody() -> None:
    rows = [(job("x", 2), "n0"), (job("y", 2, "b"), "n1")]
    outcomes = Scene(*rows, (job("new", 3), ""), nodes=(4, 4)).actions.run("consolidation")
    assert sorted(outcome.fate for outcome in outcomes.values()) == ["moved", "placed after release", "running"]
    assert outcomes["y"].places == ("n0",) and outcomes["new"].places == ("n1",)
    assert Scene(*rows, (job("new", 5), ""), nodes=(4, 4)).fates("consolidation")["new"] == "pending"


# -- all of it -----------------------------------------------------------------------------------------------------


def test_actions_follow_one_another_on_what_the_last_one_left() -> None:
    scene = Scene((job("a0", 9), "n0"), (job("b1", 3, "b"), ""), (job("b2", 3, "b"), ""))
    assert scene.fates("allocate") == {"a0": "running", "b1": "placed", "b2": "pending"}
    assert scene.fates("reclaim") == {"a0": "evicted", "b1": "placed", "b2": "placed after release"}


def test_what_was_evicted_starts_in_no_later_action() -> None:
    """Its GPUs are not free yet: it does not come back as what preempts others of its queue either."""
    b0, b1 = job("b0", 8, "b", priority=1), job("b1", 4, "b", preemptible=False)
    scene = Scene((b0, "n0"), (b1, "n0"), (job("new", 6), ""), queues=[Queue("a", 6), Queue("b", 4)])
    for action in ("reclaim", *ACTIONS):
        assert scene.fates(action) == {"b0": "evicted", "b1": "running", "new": "placed after release"}


def test_a_job_of_no_queue_or_on_no_node_is_a_mistake() -> None:
    with pytest.raises(UnknownIdError, match="job 'x' is of queue 'z'"):
        Scene((job("x", 1, "z"), ""))
    with pytest.raises(UnknownIdError, match="job 'x' runs on 'n7'"):
        Scene((job("x", 1), "n7"))


waiting = st.lists(
    st.builds(
        Job,
        st.just(""),
        st.sampled_from("ab"),
        st.integers(1, 5),
        st.integers(1, 2),
        st.integers(0, 2),
        st.booleans(),
    ),
    max_size=8,
)
ACTIONS: tuple[Action, ...] = ("allocate", "consolidation", "reclaim", "preempt")


@settings(max_examples=150, deadline=None)
@given(waiting, waiting, st.integers(0, 8))
def test_whatever_happens_nodes_hold_what_they_can_and_everybody_has_one_fate(
    first: list[Job], second: list[Job], weight: int
) -> None:
    """The first are allocated before the second come; then all four actions in turn."""
    nodes = {"n0": 6, "n1": 4, "n2": 4}
    queues = [Queue("a", 5, 1), Queue("b", 3, weight)]
    old = [replace(one, id=f"old{n}") for n, one in enumerate(first)]
    new = [replace(one, id=f"new{n}") for n, one in enumerate(second)]
    before = QuotaCluster(nodes, queues, old, {})
    QuotaActions(before).run("allocate")
    running = dict(before.running)
    actions = QuotaActions(QuotaCluster(nodes, queues, [*old, *new], running))
    for action in ACTIONS:
        outcomes = actions.run(action)
        held = dict.fromkeys(nodes, 0)
        for one in [*old, *new]:
            fate, places = outcomes[one.id].fate, outcomes[one.id].places
            assert len(places) == (0 if fate in (Fate.PENDING, Fate.EVICTED) else one.tasks)
            assert (one.id in running) == (fate in (Fate.RUNNING, Fate.MOVED, Fate.EVICTED))
            assert one.preemptible or fate not in (Fate.EVICTED, Fate.MOVED)
            for place in places:
                held[place] += int(one.gpus)
        assert all(held[node] <= room for node, room in nodes.items())
        if action in ("allocate", "consolidation"):
            assert Fate.EVICTED not in {outcome.fate for outcome in outcomes.values()}
