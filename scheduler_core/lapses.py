"""Cordons and holds that were asked for until an instant: past it the leader takes them back, as a person would.

What comes of it is journalled as what people ask for is. The rest of the machine does not know of such instants.
"""

from __future__ import annotations

from scheduler_core.observations import By, Observation, ReleaseRequested, UndrainRequested
from scheduler_core.state import ClusterState

TIMER = "timer"  # who lifts them


def lapsed(state: ClusterState, now: int) -> list[Observation]:
    """What is over at `now`. It comes before all else of its tick: what is asked for meanwhile counts after it."""
    cordons = [name for name, at in state.cordons_end.items() if at <= now]
    holds = [wid for wid, at in state.holds_end.items() if at <= now]
    return [
        *(UndrainRequested(name, _over("cordon", state.hosts[name].by)) for name in cordons),
        *(ReleaseRequested(wid, _over("hold", state.workloads[wid].held_by)) for wid in holds),
    ]


def _over(what: str, by: By | None) -> By:
    return By(TIMER, f"the time of this {what} is over" + (f" ({by})" if by is not None else ""))
