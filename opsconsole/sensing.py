"""What hosts say, as observations: only what changed, and never a guess from silence."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from opsconsole.facts import host_seen, lives, run_facts
from opsconsole.machines import Machines
from opsconsole.probes import GpuSaid, probe_said
from opsconsole.readings import Delay, HostReading, dicts, text_of
from scheduler_core.ids import HostName, RunId
from scheduler_core.observations import (
    HostSeen,
    HostStale,
    HostUnreachable,
    Observation,
)
from scheduler_core.state import ClusterState

STALE_INTERVALS = 5
MIB = 1 << 20


@dataclass
class Sensing:
    """Feed it with what links report; it calls `emit` with observations. `free_memory_mib` is rule 26's.

    `state` is read, never changed: which runs are the engine's, and which boot of a host it knows.
    """

    store_id: str
    gpus: Callable[[str], int]  # GPUs that the inventory expects of a host
    emit: Callable[[Iterable[Observation]], None]
    free_memory_mib: Callable[[], int]
    interval_s: float
    readings: defaultdict[str, HostReading]
    state: Callable[[], ClusterState]
    machines: Machines

    def connected(self, host: str, hello: dict[str, Any]) -> None:
        """The host answers. Its runs are told at once; it counts as seen with its first probe.

        A new boot is told before its runs: what ran before it is dead, what started since must not be taken for dead.
        Where that may be another machine, nothing is told before its first probe.
        """
        reading = self.readings[host]
        reading.boot_id = self._boot(host, hello.get("boot_id"))
        reading.machine, reading.refused, reading.untold = text_of(hello.get("machine_id")), "", None
        reading.seen, reading.stale, reading.probe_at, reading.delay = None, False, None, Delay()
        reading.delay.of(hello.get("uptime_s"), time.monotonic())
        reading.runs.clear()
        reading.told.clear()
        facts = [fact for run in dicts(hello.get("runs")) for fact in self.run(host, run)]
        if self.machines.doubtful(HostName(host), reading.machine, reading.boot_id):
            reading.untold = facts
        else:
            self.emit([*self._reboot(host, reading.boot_id), *facts])

    def is_itself(self, host: str) -> bool:
        """What answers under the name is its machine, for all that is known: it may be sent commands."""
        reading = self.readings[host]
        return not reading.refused and reading.untold is None

    def _boot(self, host: str, said: Any) -> str:
        """A host that cannot tell its boot id has not rebooted for all we know."""
        record = self.state().hosts.get(HostName(host))
        known = record.boot_id if record is not None else ""
        return said if isinstance(said, str) and said not in ("", "unknown") else known

    def _reboot(self, host: str, boot: str) -> Iterable[HostSeen]:
        """Nothing is placed there before its first probe: until then every slot counts as unfit."""
        record = self.state().hosts.get(HostName(host))
        if record is not None and record.runs and record.boot_id not in ("", boot):
            yield HostSeen(HostName(host), boot, record.gpu_ids, unfit=record.host.all_slots)

    def forgotten_by(self, host: str) -> list[RunId]:
        """Runs that the engine believes to be started there and that the host knows nothing of, in the same boot.

        Not dead: somebody emptied the agent's directory, or it is another machine. Only a person can tell.
        """
        record, reading = self.state().hosts.get(HostName(host)), self.readings[host]
        if record is None or record.boot_id != reading.boot_id:
            return []
        runs = self.state().runs
        started = [r for r in record.runs if runs[r].members[record.host.name].phase.value in ("started", "exited")]
        return [run for run in started if run not in reading.runs]

    def disconnected(self, host: str, why: str) -> None:
        self.readings[host].seen = None
        self.emit([HostUnreachable(HostName(host), text_of(why))])

    def distrust(self) -> None:
        """This process was away: no reading is fresh until its host has spoken again."""
        for reading in self.readings.values():
            reading.probe_at, reading.seen = None, None

    def line(self, host: str, fields: dict[str, Any]) -> None:
        """One unasked line of the agent."""
        event = fields.get("event")
        if event == "probe" and isinstance(fields.get("probe"), bytes):
            self.probe(host, fields["probe"])
        elif event == "run" and isinstance(fields.get("run"), dict):
            facts, untold = self.run(host, fields["run"]), self.readings[host].untold
            if untold is None:
                self.emit([*facts, *self._seen(host)])
            else:
                untold += facts
        elif event == "kernel":
            self.readings[host].heard_kernel(fields.get("lines"), self.readings[host].boot_id)

    def probe(self, host: str, body: bytes) -> None:
        """A reading is as old as it waited on its way: one that comes too late is kept, and nothing follows from it.

        Raises ValidationError, and changes nothing, where it has not a probe's shape.
        """
        said, reading, now = probe_said(body), self.readings[host], time.monotonic()
        age_s = reading.delay.of(said.uptime_s, now)
        reading.take(body, said)
        reading.probe_at, reading.stale = now - age_s, self._too_old(age_s)
        reading.wall_ms = time.time_ns() // 1_000_000 - int(age_s * 1000)
        reading.boot_id = self._boot(host, said.boot_id or reading.boot_id)
        reading.heard_kernel((), reading.boot_id)
        self.emit(self._seen(host, said.gpus))

    def tick(self) -> None:
        """Readings that have become too old are said to be (rule 26)."""
        now = time.monotonic()
        for host, reading in self.readings.items():
            if reading.seen is not None and reading.probe_at is not None and self._too_old(now - reading.probe_at):
                reading.seen, reading.stale = None, True
                self.emit([HostStale(HostName(host))])

    def _too_old(self, age_s: float) -> bool:
        return age_s > STALE_INTERVALS * self.interval_s

    # -- translating -----------------------------------------------------------------------------------------------

    def run(self, host: str, run: dict[str, Any]) -> list[Observation]:
        """A RUN of the protocol as facts: everything up to its phase, since any of it may be news.

        Only of runs that the engine has, or holds for dead on somebody's word (rule 27): what hosts keep of older ones
        changes nothing.
        """
        token, reading = RunId(str(run.get("token", ""))), self.readings[host]
        before = reading.runs.get(token, {}).get("phase")
        reading.runs[token] = run
        if before == run.get("phase") or not self._awaits(host, token, run):
            return []
        facts = [fact for fact in run_facts(HostName(host), token, run) if _kind(fact) not in reading.told]
        reading.told |= dict.fromkeys(map(_kind, facts))
        return facts

    def _awaits(self, host: str, token: RunId, run: dict[str, Any]) -> bool:
        record = self.state().hosts.get(HostName(host))
        return record is not None and token in (*record.runs, *record.buried) and self._of_store(run)

    def _of_store(self, run: dict[str, Any]) -> bool:
        """A burnt token has no store."""
        return run.get("store") in (self.store_id, None)

    def _mine(self, host: str) -> frozenset[str]:
        """Tokens whose processes are no strangers: of the engine's runs there, as far as the host has them too, and of
        those that are over, since a reading may be older than the word of their end.
        """
        record, runs = self.state().hosts.get(HostName(host)), self.readings[host].runs
        has = record.runs if record is not None else ()
        return frozenset(t for t, run in runs.items() if self._of_store(run) and (t in has or not lives(run)))

    def _seen(self, host: str, gpus: list[GpuSaid] | None = None) -> list[Observation]:
        """What rule 26 needs to know of the host, when it is news. A host whose name stands for another machine is as
        good as unreachable. `gpus`: as its newest probe says, where that is at hand.
        """
        reading = self.readings[host]
        if reading.probe_at is None or reading.stale:
            return []
        free_bytes = self.free_memory_mib() * MIB
        said = reading.gpus if gpus is None else gpus
        seen = host_seen(HostName(host), reading, said, self.gpus(host), free_bytes, self._mine(host))
        if seen == reading.seen:
            return []
        refused, reading.refused = reading.refused, self.machines.refusal(seen)
        if reading.refused:
            reading.seen = None
            return [] if refused == reading.refused else [HostUnreachable(HostName(host), reading.refused)]
        untold: list[Observation] = []
        if reading.untold is not None:
            untold, reading.untold = [*self._reboot(host, reading.boot_id), *reading.untold], None
        reading.seen = seen
        return [*untold, seen]


def _kind(fact: Observation) -> tuple[str, str]:
    """A run's fact is told once over a link, whatever its figures say by then."""
    return type(fact).__name__, getattr(fact, "run", "")
