"""What the shell is asked to do. Idempotent, with an id, a cause and a deadline; outcomes come back as observations."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_core.ids import CommandId, HostName, RunId, WorkloadId


@dataclass(frozen=True, slots=True)
class StartMember:
    """Start this member of a gang. `peers` are the hosts of the gang in rank order."""

    id: CommandId
    run: RunId
    workload: WorkloadId
    host: HostName
    slots: int
    rank: int
    peers: tuple[HostName, ...]
    deadline_at: int


@dataclass(frozen=True, slots=True)
class StopMember:
    """Stop this member by rule 13. `min_ran_ms`: the host refuses earlier (the contract's second guard); 0: never."""

    id: CommandId
    run: RunId
    host: HostName
    reason: str
    min_ran_ms: int
    checkpoint_grace_ms: int
    stop_grace_ms: int
    deadline_at: int


@dataclass(frozen=True, slots=True)
class FenceHost:
    """Power the host off by the inventory's fence command, so that its runs are known dead (rule 27)."""

    id: CommandId
    host: HostName


Command = StartMember | StopMember | FenceHost
