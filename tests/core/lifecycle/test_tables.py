"""Rules 24, 26, 27: every pair of the tables is listed or refused, and nothing is a dead end (G3-10)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping

import pytest

from scheduler_core.errors import SchedulerCoreError
from scheduler_core.fleet import HostState, Reach
from scheduler_core.hosttable import (
    REACH_TABLE,
    TABLE,
    HostEvent,
    ReachEvent,
    move,
    reach_after,
    reach_refusal,
    refusal,
    require_reach,
)


def reachable(start: Hashable, table: Mapping[tuple[Hashable, Hashable], Hashable]) -> set[Hashable]:
    found, pending = {start}, [start]
    while pending:
        at = pending.pop()
        for (state, _), to in table.items():
            if state == at and to not in found:
                found.add(to)
                pending.append(to)
    return found


@pytest.mark.parametrize("state", HostState)
@pytest.mark.parametrize("event", HostEvent)
def test_each_pair_moves_or_is_refused_in_words(state: HostState, event: HostEvent) -> None:
    assert ((state, event) in TABLE) == (move(state, event) is not None)
    if move(state, event) is None:
        assert str(event.value) in refusal(state, event) and state.value.replace("_", " ") in refusal(state, event)


@pytest.mark.parametrize("reach", Reach)
@pytest.mark.parametrize("event", ReachEvent)
def test_each_pair_of_reach_moves_or_is_refused(reach: Reach, event: ReachEvent) -> None:
    if reach_after(reach, event) is None:
        assert reach_refusal(event)
        with pytest.raises(SchedulerCoreError):
            require_reach(reach, event)


@pytest.mark.parametrize(("table", "all_states", "home"), [(TABLE, HostState, HostState.SERVING)])
def test_every_state_can_be_reached_and_left(
    table: Mapping[tuple[Hashable, Hashable], Hashable], all_states: Callable[..., Hashable], home: Hashable
) -> None:
    states = set(all_states)  # type: ignore[call-overload]
    assert reachable(home, table) == states
    assert all(home in reachable(state, table) for state in states)


def test_an_answer_ends_every_doubt_and_silence_never_does() -> None:
    assert all(REACH_TABLE[reach, ReachEvent.SEEN] is Reach.FRESH for reach in Reach)
    assert all(to is not Reach.FRESH for (_, event), to in REACH_TABLE.items() if event is not ReachEvent.SEEN)
