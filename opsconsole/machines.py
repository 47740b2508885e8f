"""Which machine each name stands for: none is used under two names, and no run is taken for dead because its name
points elsewhere now.

GPU UUIDs tell machines apart. Where a driver shows none, machine id and boot id together do: cloned images share a
machine id, a boot id is random. What a name stood for before is in the journal, with its host's record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from scheduler_core.ids import HostName
from scheduler_core.observations import HostSeen
from scheduler_core.state import ClusterState, HostRecord

SHOWN = 13  # characters of an id that people tell machines apart by


@dataclass(frozen=True, slots=True)
class Marks:
    """What a machine is known by."""

    gpu_ids: tuple[str, ...]
    boot: str  # of machine and boot; "" where either is not known

    @classmethod
    def of(cls, said: HostSeen | HostRecord) -> Marks:
        boot = f"{said.machine} in boot {said.boot_id}" if said.machine and said.boot_id else ""
        return cls(tuple(filter(None, said.gpu_ids)), boot)

    def __iter__(self) -> Iterator[str]:
        yield from self.gpu_ids
        if self.boot:
            yield self.boot

    def shared(self, other: Marks) -> str:
        """A mark that both have, empty where they are two machines."""
        if self.gpu_ids and other.gpu_ids:
            return next((uuid for uuid in self.gpu_ids if uuid in other.gpu_ids), "")
        return self.boot if self.boot == other.boot else ""


@dataclass
class Machines:
    """`stays`: is the name in the inventory, or does it keep runs?"""

    state: Callable[[], ClusterState]
    stays: Callable[[HostName], bool]
    _marks: dict[HostName, Marks] = field(init=False, default_factory=dict)
    _names: dict[str, HostName] = field(init=False, default_factory=dict)  # by mark

    def __post_init__(self) -> None:
        for record in sorted(self.state().hosts.values(), key=lambda record: not record.runs):
            self._bind(record.host.name, Marks.of(record))

    def refusal(self, seen: HostSeen) -> str:
        """Why this is not a reading of that host, for people; empty where it is, and then the machine is the host's."""
        marks = Marks.of(seen)
        why = self._another(seen, marks) or self._elsewhere(seen.host, marks)
        if not why:
            self._bind(seen.host, marks)
        return why

    def doubtful(self, host: HostName, machine: str, boot: str) -> bool:
        """Can its new boot not prove that its runs are dead, since it may be another machine's?"""
        record = self.state().hosts.get(host)
        if record is None or not record.runs or record.boot_id in ("", boot):
            return False
        return bool(machine and record.machine) and machine != record.machine

    def _another(self, seen: HostSeen, marks: Marks) -> str:
        """The name has runs, and they were placed on another machine: this one cannot say what became of them."""
        host = seen.host
        if not self.doubtful(host, seen.machine, seen.boot_id):
            return ""
        record = self.state().hosts[host]
        if Marks.of(record).shared(marks):
            return ""
        apart = f"machine id {seen.machine[:SHOWN]}, was {record.machine[:SHOWN]}"
        return (
            f"another machine than before ({apart}): correct its address, or, "
            f"once the old one is off for good: opsconsole declare dead {host}"
        )

    def _elsewhere(self, host: HostName, marks: Marks) -> str:
        """The machine is used under another name already."""
        for mark in marks:
            other = self._names.get(mark, host)
            if other != host and self.stays(other) and (shared := marks.shared(self._marks[other])):
                return (
                    f"the same machine as {other} ({shared}): keep only one of the two names, {other} while it has runs"
                )
        return ""

    def _bind(self, host: HostName, marks: Marks) -> None:
        if self._marks.get(host) == marks:
            return
        self._marks[host] = marks
        for mark in marks:
            self._names[mark] = host
