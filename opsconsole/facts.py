"""What hosts say, translated into facts of the engine: pure, and never a guess from silence."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from opsconsole.probes import GpuSaid
from opsconsole.readings import HostReading, dicts, is_number, text_of, value
from scheduler_core.ids import HostName, RunId
from scheduler_core.observations import (
    HostSeen,
    MemberExited,
    MemberNeverStarted,
    MemberReleased,
    MemberStarted,
    Observation,
)

FINAL = ("released", "never_started")


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
        yield MemberExited(token, host, code, signal, run.get("signalled") is True, text_of(run.get("error")))
    if phase == "released" or gone_unknown:
        yield MemberReleased(token, host, released_ago_ms)


def _ending(ending: Any) -> tuple[int | None, str | None]:
    """Exit code and signal; neither where nobody knows, or where the host speaks in riddles."""
    fields = ending if isinstance(ending, dict) else {}
    code, signal = fields.get("code"), fields.get("signal")
    return code if type(code) is int else None, text_of(signal) if isinstance(signal, str) else None


def span_ms(seconds: Any) -> int:
    """0 where the host cannot tell: protection, and what is no longer charged, then count from now, never earlier."""
    return max(0, int(seconds * 1000)) if is_number(seconds) else 0


def lives(run: dict[str, Any]) -> bool:
    """Something of it may still be there."""
    return run.get("phase") not in FINAL and run.get("processes_gone") is not True


def host_seen(
    host: HostName,
    reading: HostReading,
    gpus: Sequence[GpuSaid],
    expected: int,
    free_bytes: int,
    mine: Collection[str] | None = None,
) -> HostSeen:
    """Unknown is not zero: a slot whose processes or memory cannot be read is unfit, not free.

    `gpus`: what the reading's probe says of them. `mine`: tokens of the engine's runs (default: all that the host
    lists). A run that it does not have, of another store or of a journal that was lost, keeps its GPUs: they count as
    foreign.
    """
    tokens = reading.runs.keys() if mine is None else mine
    strange = [run for token, run in reading.runs.items() if token not in tokens and lives(run)]
    taken = {uuid for run in strange for uuid in run.get("gpus") or ()}
    ids, foreign, unfit = [""] * expected, 0, (1 << expected) - 1
    for gpu in gpus:
        slot = gpu.slot
        if type(slot) is int and 0 <= slot < expected:
            ids[slot] = text_of(value(gpu.uuid))
            strangers, fit = judge(gpu, tokens, free_bytes)
            foreign |= (strangers or ids[slot] in taken) << slot
            unfit &= ~((fit and bool(ids[slot])) << slot)
    alive = any(map(lives, reading.runs.values()))
    told = bool(gpus) or not expected
    readable = told and all(isinstance(value(gpu.processes), list) for gpu in gpus)
    empty = not alive and not foreign and readable
    return HostSeen(host, reading.boot_id, tuple(ids), foreign, unfit, empty, reading.machine)


def judge(gpu: GpuSaid, tokens: Collection[str], free_bytes: int) -> tuple[bool, bool]:
    """Of one GPU: is a process of strangers on it, and may it be used at all?"""
    processes = value(gpu.processes)
    if not isinstance(processes, list):
        return False, False
    ours = strangers = False
    for process in dicts(processes):
        if process.get("run") in tokens:
            ours = True
        elif not process.get("system"):
            strangers = True
    used = value(gpu.readings.memory_used_bytes)
    full = not isinstance(used, int | float) or used >= free_bytes
    return strangers, ours or strangers or not full
