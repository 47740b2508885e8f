"""The host tables (rules 24, 26, 27): what each event makes of a host, and of how it can be reached.

Every pair is listed, or refused with a reason. Both tables are data; one test walks all pairs.
"""

from __future__ import annotations

from enum import StrEnum

from scheduler_core.errors import SchedulerCoreError
from scheduler_core.fleet import HostState, Reach


class HostEvent(StrEnum):
    CORDON = "cordon"
    DRAIN = "drain"
    UNDRAIN = "undrain"
    EMPTIED = "emptied"  # known empty (rule 26)
    REPAIR = "repair"
    VERIFY = "verify"
    VERIFY_FAIL = "verify_fail"
    SUSPECT = "suspect"


_S = HostState
_E = HostEvent

TABLE: dict[tuple[HostState, HostEvent], HostState] = {
    (_S.SERVING, _E.CORDON): _S.CORDONED,
    (_S.SERVING, _E.DRAIN): _S.DRAINING,
    (_S.SERVING, _E.SUSPECT): _S.SUSPECT,
    (_S.CORDONED, _E.DRAIN): _S.DRAINING,
    (_S.CORDONED, _E.SUSPECT): _S.SUSPECT,
    (_S.CORDONED, _E.UNDRAIN): _S.SERVING,
    (_S.SUSPECT, _E.CORDON): _S.CORDONED,
    (_S.SUSPECT, _E.DRAIN): _S.DRAINING,
    (_S.SUSPECT, _E.UNDRAIN): _S.SERVING,
    (_S.DRAINING, _E.DRAIN): _S.DRAINING,  # another mode
    (_S.DRAINING, _E.EMPTIED): _S.DRAINED,
    (_S.DRAINING, _E.UNDRAIN): _S.SERVING,
    (_S.DRAINED, _E.REPAIR): _S.REPAIRING,
    (_S.DRAINED, _E.VERIFY): _S.VERIFYING,
    (_S.DRAINED, _E.UNDRAIN): _S.SERVING,
    (_S.REPAIRING, _E.VERIFY): _S.VERIFYING,
    (_S.REPAIRING, _E.VERIFY_FAIL): _S.VERIFY_FAILED,
    (_S.REPAIRING, _E.UNDRAIN): _S.SERVING,
    (_S.VERIFYING, _E.VERIFY_FAIL): _S.VERIFY_FAILED,
    (_S.VERIFYING, _E.REPAIR): _S.REPAIRING,
    (_S.VERIFYING, _E.UNDRAIN): _S.SERVING,
    (_S.VERIFY_FAILED, _E.REPAIR): _S.REPAIRING,
    (_S.VERIFY_FAILED, _E.VERIFY): _S.VERIFYING,
    (_S.VERIFY_FAILED, _E.UNDRAIN): _S.SERVING,
}

_WHY = {
    _E.CORDON: "nothing starts there anyway",
    _E.DRAIN: "it is drained already",
    _E.UNDRAIN: "it serves already",
    _E.EMPTIED: "it is not being drained",
    _E.REPAIR: "drain it first",
    _E.VERIFY: "drain it first",
    _E.VERIFY_FAIL: "it is not being verified",
    _E.SUSPECT: "nothing starts there anyway",
}


def move(state: HostState, event: HostEvent) -> HostState | None:
    """The next state; None where the event is refused (`refusal` says why)."""
    return TABLE.get((state, event))


def refusal(state: HostState, event: HostEvent) -> str:
    """Why nothing comes of the event, for people."""
    return f"{event.value} does nothing to a {state.value.replace('_', ' ')} host: {_WHY[event]}"


def declare_refusal(what: str, state: HostState, reach: Reach, has_runs: bool, foreign: bool) -> str:
    """Why a person's word is not taken in place of the host's (rules 26, 27); empty where it is.

    `foreign`: when it was last heard of, processes of others were on its GPUs.
    """
    if what == "dead":
        return _ALIVE.get(reach, "")
    if has_runs:
        return "it has runs: drain it, or declare it dead once its power is off"
    if foreign and reach is Reach.FRESH:
        return "it reports processes of others on its GPUs: end them, or name them in system_processes"
    return "" if move(state, HostEvent.EMPTIED) is not None else refusal(state, HostEvent.EMPTIED)


_ALIVE = {
    Reach.FRESH: "it answers, so it is not dead: drain it, or power it off first",
    Reach.STALE: "it is connected, so it is not dead: wait for its readings, or power it off first",
    Reach.UNREACHABLE: "it answered less than lost_after ago: it can be declared dead once it is lost",
}


# -- how it can be reached (rules 26, 27) -------------------------------------------------------------------------


class ReachEvent(StrEnum):
    SEEN = "seen"
    STALE = "stale"  # connected, but its last reading is too old
    UNREACHABLE = "unreachable"
    LOST = "lost"  # unreachable for lost_after


_R = Reach
_H = ReachEvent

REACH_TABLE: dict[tuple[Reach, ReachEvent], Reach] = {
    **{(reach, _H.SEEN): _R.FRESH for reach in Reach},
    (_R.FRESH, _H.STALE): _R.STALE,
    (_R.FRESH, _H.UNREACHABLE): _R.UNREACHABLE,
    (_R.STALE, _H.UNREACHABLE): _R.UNREACHABLE,
    (_R.NEVER_SEEN, _H.UNREACHABLE): _R.NEVER_SEEN,  # since when and why is kept
    (_R.UNREACHABLE, _H.LOST): _R.LOST,
}

_REACH_WHY = {
    _H.SEEN: "",
    _H.STALE: "it has no fresh reading that could become stale",
    _H.UNREACHABLE: "it is unreachable already",
    _H.LOST: "only an unreachable host can be lost",
}


def reach_after(reach: Reach, event: ReachEvent) -> Reach | None:
    """How the host can be reached then; None where the event says nothing new (`reach_refusal`)."""
    return REACH_TABLE.get((reach, event))


def require_reach(reach: Reach, event: ReachEvent) -> Reach:
    """For events that the engine makes itself. Raises SchedulerCoreError where the table refuses."""
    found = reach_after(reach, event)
    if found is None:
        raise SchedulerCoreError(f"{event} of a host that is {reach}: {reach_refusal(event)}")
    return found


def reach_refusal(event: ReachEvent) -> str:
    """Why nothing comes of it."""
    return _REACH_WHY[event]
