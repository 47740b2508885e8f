"""The host table (rule 24): what each event makes of a host. Every pair is listed, or refused with a reason."""

from __future__ import annotations

from enum import StrEnum

from scheduler_core.fleet import HostState


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
