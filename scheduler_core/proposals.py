"""What health asks for (rules 29, 30): a drain that the machine begins within its brakes, or that a person confirms.

A proposal names its causes. What was decided about them, by a person or by the drain that began, holds until they are
gone: the same causes ask for nothing again, after restarts too.
"""

from __future__ import annotations

from collections.abc import Iterable

from scheduler_core.fleet import HostState
from scheduler_core.hosttable import HostEvent, move, refusal
from scheduler_core.ids import HostName
from scheduler_core.observations import AutoDrainProposed, AutoDrainWithdrawn
from scheduler_core.state import ClusterState

STAYS = (HostState.SERVING, HostState.CORDONED, HostState.SUSPECT)  # whoever is none of them is leaving already


def proposed(state: ClusterState, event: AutoDrainProposed) -> None:
    """One for each host: newer causes take the place of those before, and what is new on a leaving host goes with its
    drain. One for each id.
    """
    record, name = state.hosts.get(event.host), event.host
    if record is None or state.knows_drain(event.drain):
        return
    heeded = tuple(cause for cause in state.heeded.get(name, ()) if cause in event.causes)
    if record.state not in STAYS:
        _heed(state, name, event.causes)
    elif not event.causes:
        state.proposals.setdefault(name, event)
    else:
        _heed(state, name, heeded)
        if len(heeded) < len(event.causes):
            state.proposals[name] = event
        else:
            _drop(state, name)


def withdrawn(state: ClusterState, event: AutoDrainWithdrawn) -> None:
    """A drain that has begun goes on: nobody knows yet that the host is well."""
    state.heeded.pop(event.host, None)
    _drop(state, event.host)


def decided(state: ClusterState, name: HostName) -> AutoDrainProposed | None:
    """It asks no longer, for what it named."""
    proposal = state.proposals.pop(name, None)
    if proposal is not None:
        _heed(state, name, dict.fromkeys((*state.heeded.get(name, ()), *proposal.causes)))
    return proposal


def refusal_now(state: ClusterState, name: HostName, event: HostEvent) -> str:
    """Why nothing comes of the event, for people. An undrain of a serving host means something while health asks."""
    now = state.hosts[name].state
    turns_down = event is HostEvent.UNDRAIN and now is HostState.SERVING and name in state.proposals
    return "" if turns_down or move(now, event) is not None else refusal(now, event)


def turned_down(state: ClusterState, name: HostName) -> bool:
    """A person lets the host serve on, in spite of what health asks for: it asked, and asks no longer."""
    record = state.hosts.get(name)
    if record is None or record.state is not HostState.SERVING or name not in state.proposals:
        return False
    decided(state, name)
    _release(state, name)
    return True


def known_causes(state: ClusterState, name: HostName) -> frozenset[str]:
    """Of all that health has said of the host what stands, decided about or not."""
    proposal = state.proposals.get(name)
    return frozenset((*state.heeded.get(name, ()), *(proposal.causes if proposal is not None else ())))


def _heed(state: ClusterState, name: HostName, causes: Iterable[str]) -> None:
    kept = tuple(causes)
    if kept:
        state.heeded[name] = kept
    else:
        state.heeded.pop(name, None)


def _drop(state: ClusterState, name: HostName) -> None:
    if state.proposals.pop(name, None) is not None:
        _release(state, name)


def _release(state: ClusterState, name: HostName) -> None:
    """What the breaker held back for it; a suspicion that it held back is told anew."""
    for held_back in (state.tripped, state.allowed):
        held_back.pop(f"host {name}", None)
