"""Hosts of the simulated world and what runs on them, as they really are."""

from __future__ import annotations

from dataclasses import dataclass, field

from scheduler_core.ids import CommandId, HostName, RunId, WorkloadId
from scheduler_core.observations import Observation


@dataclass(slots=True)
class Process:
    """One member of a run as it really is on its host. `disowned`: somebody declared it dead, and was wrong."""

    run: RunId
    workload: WorkloadId
    slots: int
    began_at: int
    exit_code: int | None = 0
    stopping: bool = False
    alive: bool = True
    holding: bool = True
    freed_at: int = 0
    disowned: bool = False
    stranger: bool = False  # nobody knows it any more: its GPUs are reported as foreign


@dataclass(slots=True)
class SimHost:
    """What is true of a host, whatever the console believes. Slots are masks of GPUs."""

    name: HostName
    gpus: int
    boot: int = 1
    link: int = 1  # the number of the connection: what was sent over an older one never arrives
    reachable: bool = True
    stale: bool = False
    lag_until: int = 0
    silent_until: int = 0
    epoch: int = 1  # of the newest leader that it has heard
    unfit: int = 0
    foreign: int = 0
    fence: CommandId | None = None  # the last power-off asked for
    late: list[Observation] = field(default_factory=list)
    processes: dict[RunId, Process] = field(default_factory=dict)
    burnt: dict[RunId, None] = field(default_factory=dict)
    slots: dict[RunId, int] = field(default_factory=dict)

    @property
    def boot_id(self) -> str:
        return f"{self.name}-boot{self.boot}"

    def fenced(self, epoch: int) -> bool:
        """Has it heard of the leader of this epoch? Then it refuses all older ones."""
        return self.epoch == epoch
