"""What hosts say, as observations: only what changed, and never a guess from silence."""

from __future__ import annotations

import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from opsconsole.machines import Machines
from scheduler_core.ids import HostName, RunId
from scheduler_core.observations import (
    HostSeen,
    HostStale,
    HostUnreachable,
    MemberExited,
    MemberNeverStarted,
    MemberReleased,
    MemberStarted,
    Observation,
)
from scheduler_core.state import ClusterState

STALE_INTERVALS = 5
DRIFT = 2e-4  # two clocks differ by less in a second, disciplined or not
MIB = 1 << 20
FINAL = ("released", "never_started")
KERNEL_LINES = 50
LONGEST_TEXT = 500


@dataclass
class Delay:
    """How long lines of one link wait on their way, in seconds: our clock less the host's, above the least so far."""

    least_s: float = math.inf
    at: float = 0.0

    def of(self, uptime_s: Any, now: float) -> float:
        """0 where the host does not tell when it wrote the line."""
        if not _is_number(uptime_s):
            return 0.0
        apart_s: float = now - uptime_s
        self.least_s, self.at = min(apart_s, self.least_s + DRIFT * (now - self.at)), now
        return apart_s - self.least_s


class MemorySaid(msgspec.Struct):
    memory_used_bytes: Any = None


class GpuSaid(msgspec.Struct):
    """What rule 26 asks of a GPU, each a READING of the protocol; all else of a probe is for people."""

    slot: Any = None
    uuid: Any = None
    processes: Any = None
    readings: MemorySaid = msgspec.field(default_factory=MemorySaid)


class ProbeSaid(msgspec.Struct):
    boot_id: Any = None
    uptime_s: Any = None
    gpus: list[GpuSaid] = []


_said = msgspec.json.Decoder(ProbeSaid).decode
_whole = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass
class HostReading:
    """The newest that a host has said. `probe_at`: `time.monotonic()` when the host read it; None: nothing yet."""

    boot_id: str = ""
    body: bytes = b""  # the probe as it was sent; empty: none yet
    gpus: list[GpuSaid] = field(default_factory=list)
    probe_at: float | None = None
    wall_ms: int = 0
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)  # by token, whoever started them
    told: dict[tuple[str, str], None] = field(default_factory=dict)  # facts of runs, while the link lasts
    kernel: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=KERNEL_LINES))
    delay: Delay = field(default_factory=Delay)
    seen: HostSeen | None = None  # the last one sent, while it is true
    stale: bool = False
    machine: str = ""  # its id, empty while it is not known
    refused: str = ""  # why what answers does not count as this host
    untold: list[Observation] | None = None  # of its runs, while nobody knows whether it is the machine that has them
    _decoded: tuple[bytes, dict[str, Any] | None] = (b"", None)

    @property
    def probe(self) -> dict[str, Any] | None:
        """The whole probe, decoded when somebody looks: hundreds come per second."""
        if self._decoded[0] is not self.body:
            self._decoded = self.body, _whole(self.body)
        return self._decoded[1]


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
        facts = [fact for run in _dicts(hello.get("runs")) for fact in self.run(host, run)]
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
            facts = self.run(host, fields["run"])
            self.emit([*facts, *self._seen(host)])
        elif event == "kernel":
            self.readings[host].kernel.extend(_dicts(fields.get("lines")))

    def probe(self, host: str, body: bytes) -> None:
        """A reading is as old as it waited on its way: one that comes too late is kept, and nothing follows from it.

        Raises ValidationError, and changes nothing, where it has not a probe's shape.
        """
        said, reading, now = _said(body), self.readings[host], time.monotonic()
        age_s = reading.delay.of(said.uptime_s, now)
        reading.body, reading.gpus, reading.probe_at, reading.stale = body, said.gpus, now - age_s, self._too_old(age_s)
        reading.wall_ms = time.time_ns() // 1_000_000 - int(age_s * 1000)
        reading.boot_id = self._boot(host, said.boot_id or reading.boot_id)
        self.emit(self._seen(host))

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

    def _has(self, host: str) -> frozenset[str]:
        """Tokens of the engine's runs there, as far as the host has them too."""
        record, runs = self.state().hosts.get(HostName(host)), self.readings[host].runs
        return frozenset(t for t in record.runs if t in runs and self._of_store(runs[t])) if record else frozenset()

    def _seen(self, host: str) -> list[Observation]:
        """What rule 26 needs to know of the host, when it is news. A host whose name stands for another machine is as
        good as unreachable.
        """
        reading = self.readings[host]
        if reading.probe_at is None or reading.stale:
            return []
        free_bytes = self.free_memory_mib() * MIB
        seen = host_seen(HostName(host), reading, self.gpus(host), free_bytes, self._has(host))
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


def run_facts(host: HostName, token: RunId, run: dict[str, Any]) -> Iterable[Observation]:
    """`unknown` says nothing while its processes may live. When they are known gone, nobody knows how it ended."""
    phase = run.get("phase")
    if phase == "never_started":
        yield MemberNeverStarted(token, host, text_of(run.get("error")) or "it did not start")
        return
    gone_unknown = phase == "unknown" and run.get("processes_gone") is True
    released_ago_ms = span_ms(run.get("released_ago_s"))
    if phase in ("running", "stopping", "exited", "released", "unknown"):
        yield MemberStarted(token, host, span_ms(run.get("ran_s")) + released_ago_ms)
    if phase in ("exited", "released") or gone_unknown:
        code, signal = _ending(run.get("exit"))
        yield MemberExited(token, host, code, signal, run.get("signalled") is True)
    if phase == "released" or gone_unknown:
        yield MemberReleased(token, host, released_ago_ms)


def _ending(ending: Any) -> tuple[int | None, str | None]:
    """Exit code and signal; neither where nobody knows, or where the host speaks in riddles."""
    fields = ending if isinstance(ending, dict) else {}
    code, signal = fields.get("code"), fields.get("signal")
    return code if type(code) is int else None, text_of(signal) if isinstance(signal, str) else None


def span_ms(seconds: Any) -> int:
    """0 where the host cannot tell: protection, and what is no longer charged, then count from now, never earlier."""
    return max(0, int(seconds * 1000)) if _is_number(seconds) else 0


def _is_number(said: Any) -> bool:
    return isinstance(said, int | float) and not isinstance(said, bool) and math.isfinite(said)


def text_of(said: Any) -> str:
    """Foreign text as data: no control characters, of bounded length."""
    text = str(said or "")[:LONGEST_TEXT]
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def _dicts(items: Any) -> list[dict[str, Any]]:
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _kind(fact: Observation) -> tuple[str, str]:
    """A run's fact is told once over a link, whatever its figures say by then."""
    return type(fact).__name__, getattr(fact, "run", "")


def value(reading: Any) -> Any:
    """The value of a READING, None in its three other states."""
    return reading.get("v") if isinstance(reading, dict) else None


def lives(run: dict[str, Any]) -> bool:
    """Something of it may still be there."""
    return run.get("phase") not in FINAL and run.get("processes_gone") is not True


def host_seen(
    host: HostName, reading: HostReading, expected: int, free_bytes: int, mine: Collection[str] | None = None
) -> HostSeen:
    """Unknown is not zero: a slot whose processes or memory cannot be read is unfit, not free.

    `mine`: tokens of the engine's runs (default: all that the host lists). A run that it does not have, of another
    store or of a journal that was lost, keeps its GPUs: they count as foreign.
    """
    tokens = reading.runs.keys() if mine is None else mine
    strange = [run for token, run in reading.runs.items() if token not in tokens and lives(run)]
    taken = {uuid for run in strange for uuid in run.get("gpus") or ()}
    ids, foreign, unfit = [""] * expected, 0, (1 << expected) - 1
    for gpu in reading.gpus:
        slot = gpu.slot
        if type(slot) is int and 0 <= slot < expected:
            ids[slot] = text_of(value(gpu.uuid))
            strangers, fit = judge(gpu, tokens, free_bytes)
            foreign |= (strangers or ids[slot] in taken) << slot
            unfit &= ~((fit and bool(ids[slot])) << slot)
    alive = any(map(lives, reading.runs.values()))
    told = bool(reading.gpus) or not expected
    readable = told and all(isinstance(value(gpu.processes), list) for gpu in reading.gpus)
    empty = not alive and not foreign and readable
    return HostSeen(host, reading.boot_id, tuple(ids), foreign, unfit, empty, reading.machine)


def judge(gpu: GpuSaid, tokens: Collection[str], free_bytes: int) -> tuple[bool, bool]:
    """Of one GPU: is a process of strangers on it, and may it be used at all?"""
    processes = value(gpu.processes)
    if not isinstance(processes, list):
        return False, False
    listed = _dicts(processes)
    ours = any(p.get("run") in tokens for p in listed)
    strangers = any(p.get("run") not in tokens and not p.get("system") for p in listed)
    used = value(gpu.readings.memory_used_bytes)
    full = not isinstance(used, int | float) or used >= free_bytes
    return strangers, ours or strangers or not full
