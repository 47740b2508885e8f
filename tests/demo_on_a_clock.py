"""The demo's cluster and its teams on a virtual clock: no processes, hosts that do what they are told."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from opsconsole.config.inventory import read_inventory
from opsconsole.demo.cluster import INVENTORY, host_names
from opsconsole.demo.feeding import workload_of
from opsconsole.demo.stream import submissions
from scheduler_core.commands import Command, StartMember, StopMember
from scheduler_core.engine import Engine, Step
from scheduler_core.ids import HostName
from scheduler_core.observations import (
    HostSeen,
    InventoryLoaded,
    MemberExited,
    MemberReleased,
    MemberStarted,
    Observation,
    WorkloadSubmitted,
)
from scheduler_core.units import SECOND

T0 = 1_800_000_000_000


class DemoOnAClock:
    """`steps` are all that was observed and decided, with their instants."""

    def __init__(self, seed: int, hosts: int = 8) -> None:
        self.engine, self.now = Engine(), T0
        self.hosts = dict.fromkeys(host_names(hosts), 8)
        self.steps: list[tuple[int, tuple[Observation, ...], Step]] = []
        self._left: dict[str, int] = {}  # work left, by workload
        self._happens: list[tuple[int, int, tuple[Observation, ...]]] = []
        self._number = count()
        self._see(_inventory(self.hosts))
        self._see(*(HostSeen(HostName(name), "boot1") for name in self.hosts))
        for asked in submissions(seed):
            self._left[asked.name] = asked.runtime_s * SECOND
            at = T0 + int(asked.at_s * SECOND)
            self._at(at, WorkloadSubmitted(workload_of(asked, at)))

    def run(self, seconds: float) -> None:
        """So much time passes."""
        until = self.now + int(seconds * SECOND)
        while True:
            at = min(self._happens[0][0], self.engine.next_wakeup() or self._happens[0][0])
            if at > until:
                break
            self.now = max(at, self.now)
            facts: list[Observation] = []
            while self._happens and self._happens[0][0] <= self.now:
                facts += heappop(self._happens)[2]
            self._see(*facts)
        self.now = until

    def later(self, ms: int, *observations: Observation) -> Step:
        """Some time passes, then this happens."""
        self.run(ms / SECOND)
        return self._see(*observations)

    def _see(self, *facts: Observation) -> Step:
        step = self.engine.step(self.now, facts)
        self.steps.append((self.now, facts, step))
        for command in step.commands:
            self._obey(command)
        return step

    def _at(self, at: int, *facts: Observation) -> None:
        heappush(self._happens, (at, next(self._number), facts))

    def _obey(self, command: Command) -> None:
        """A second later."""
        soon = self.now + SECOND
        if isinstance(command, StartMember):
            ends = soon + self._left[self.engine.state.runs[command.run].workload]
            self._at(soon, MemberStarted(command.run, command.host))
            self._at(ends, MemberExited(command.run, command.host, 0), MemberReleased(command.run, command.host))
        elif isinstance(command, StopMember):
            self._at(soon, MemberExited(command.run, command.host, 143, None, True))
            self._at(soon, MemberReleased(command.run, command.host))


def _inventory(hosts: dict[str, int]) -> InventoryLoaded:
    with TemporaryDirectory() as root:
        rows = "\n".join(
            f"  - {{name: {name}, address: 127.0.0.{n}, gpus: 8}}" for n, name in enumerate(hosts, start=2)
        )
        path = Path(root) / "inventory.yaml"
        path.write_text(INVENTORY.format(hosts=rows, root=root, health="{auto: propose}"))
        (cluster,) = read_inventory(str(path)).clusters
        return cluster.loaded()
