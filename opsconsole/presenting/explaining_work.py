"""Why a workload waits, what becomes of a run, and the grounds of a preemption (rules 11, 13, 17, 22, 23)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from opsconsole.presenting.drains import drain_of
from opsconsole.presenting.explaining_budgets import standing_figures
from opsconsole.presenting.queue import workload_label
from opsconsole.presenting.reserved import of_run
from opsconsole.presenting.runs import unverified
from opsconsole.presenting.text import count, day_clock, few, gpu_hours, ordinal, span
from opsconsole.presenting.view import ClusterView
from scheduler_core.contract import lost_gpu_ms
from scheduler_core.decisions import Standing, StopCause, StopDecided
from scheduler_core.drain import drain_row
from scheduler_core.explain import Explainer, HoldKind
from scheduler_core.ids import HostName, RunId, WorkloadId
from scheduler_core.queueing import queue_order
from scheduler_core.state import Attempt, Run, WorkloadRecord
from scheduler_core.units import GPU_HOUR
from scheduler_core.workload import WorkloadPhase

OPEN_ENDED = (HoldKind.BETTER_CLAIMS, HoldKind.HOST_HEALTH, HoldKind.OVER_MAX_GPUS, HoldKind.RESERVED)

# -- workloads ---------------------------------------------------------------------------------------------------------


def workload_lines(view: ClusterView, record: WorkloadRecord) -> list[str]:
    """Where it stands, why, and what became of its earlier runs."""
    lines = [f"{_who(view, record)}."]
    if _in_queue(record):
        lines += _waits(view, record)
    elif record.run is not None:
        lines += _live(view, view.state.runs[record.run])
    else:
        lines.append(f"It has ended: {record.outcome.value if record.outcome else 'unknown'}.")
    return lines + [_attempt(attempt) for attempt in record.attempts]


def workload_figures(view: ClusterView, record: WorkloadRecord) -> dict[str, Any]:
    w = record.workload
    hold = Explainer(view.state).hold(record) if _in_queue(record) else None
    order = queue_order(view.state) if hold is not None else []
    return {
        "phase": record.phase.value,
        "budget": view.state.budgets.paths[w.budget],
        "gpus": w.gpus,
        "min_runtime_s": w.min_runtime_ms / 1000,
        "position": order.index(w.id) + 1 if hold is not None else None,
        "gpus_ahead": dict(_ahead(view, order, w.id)) if hold is not None else {},
        "reason": hold.kind.value if hold is not None else None,
        "until_ms": view.wall(hold.until) if hold is not None and hold.until is not None else None,
        "run": record.run,
        "attempts": [attempt_figures(view, record, attempt) for attempt in record.attempts],
    }


def _in_queue(record: WorkloadRecord) -> bool:
    return record.phase in (WorkloadPhase.WAITING, WorkloadPhase.HELD)


def _who(view: ClusterView, record: WorkloadRecord) -> str:
    w = record.workload
    contract = (
        f"min runtime {span(w.min_runtime_ms)}" if w.allocated else "unallocated: free of charge, never protected"
    )
    who = f"{workload_label(w.id, w.name)} of {w.owner or 'nobody'}"
    return f"{who}, {view.state.budgets.paths[w.budget]}: {count(w.gpus, 'GPU')}, {contract}"


def _waits(view: ClusterView, record: WorkloadRecord) -> list[str]:
    """Why, from when on that may change, and who is taken before it."""
    state, hold = view.state, Explainer(view.state).hold(record)
    until = "" if hold.until is None else f", until {day_clock(view.wall(hold.until), view.wall_ms)}"
    lines = [f"Why it waits: {hold.text}{until}."]
    if record.reserved is not None:
        lines.append("From then on these GPUs are its: balances that turn and later arrivals take nothing away.")
    if hold.until is None and hold.kind in OPEN_ENDED:
        lines.append("No instant can be computed: it depends on when runs end and on what others ask for.")
    order = queue_order(state)
    place = order.index(record.workload.id)
    ahead = few([f"{path} {count(gpus, 'GPU')}" for path, gpus in _ahead(view, order, record.workload.id)])
    lines.append(f"It is {ordinal(place + 1)} in the queue; {f'ahead of it: {ahead}' if ahead else 'nobody is ahead'}.")
    return lines


def _ahead(view: ClusterView, order: list[WorkloadId], wid: WorkloadId) -> list[tuple[str, int]]:
    """GPUs wanted by those that are taken before it, by budget, the most first."""
    wanted: Counter[str] = Counter()
    for other in order[: order.index(wid)]:
        w = view.state.workloads[other].workload
        wanted[view.state.budgets.paths[w.budget]] += w.gpus
    return wanted.most_common()


# -- runs --------------------------------------------------------------------------------------------------------------


def run_lines(view: ClusterView, record: WorkloadRecord, name: RunId) -> list[str]:
    """One run, live or past: where it is or was, how long it is or was protected, why it stops or ended."""
    lines = [f"{name} is a run of {_who(view, record)}."]
    run = view.state.runs.get(name)
    if run is not None:
        return lines + _live(view, run) + _cost(view, run) + _now(view, record, name)
    attempt = next(a for a in record.attempts if a.run == name)
    return lines + _past(view, record, attempt) + _now(view, record, name)


def _live(view: ClusterView, run: Run) -> list[str]:
    state = view.state
    hosts = ", ".join(
        f"{name} ({count(m.slots.bit_count(), 'GPU')}, {m.phase.value})" for name, m in run.members.items()
    )
    lines = [f"{run.id} holds {hosts}."]
    if away := unverified(view, run):
        lines.append(f"Whether it still runs nobody knows: {', '.join(away)} cannot be asked. It is not started twice.")
    if run.stop is not None:
        lines += [f"It is being stopped: {run.stop.reason}.", *stop_lines(view, run.stop, _guarded_until(run))]
    elif run.started_at is None:
        lines.append("It is starting; its protection counts from the start of its last member.")
    elif run.protected(state.now):
        left = run.started_at + run.min_runtime_ms - state.now
        lines.append(f"It is protected for another {span(left)}: nothing that the scheduler decides stops it before.")
    else:
        lines.append(
            "It is past its min runtime and goes on until it ends or somebody with a better claim needs its GPUs."
        )
    if (whose := of_run(view, run.id)) and run.stop is None:
        lines.append(f"GPUs of it are reserved for {whose}: it yields then, whatever the balances say.")
    return lines + [line for name in run.members if (line := _drained_at(view, run, name))]


def _cost(view: ClusterView, run: Run) -> list[str]:
    """What stopping it at this moment would lose."""
    if run.started_at is None or run.stop is not None:
        return []
    ran, lost = span(view.state.now - run.started_at), gpu_hours(lost_gpu_ms(view.state, run))
    since = "its last checkpoint" if run.checkpoint_at is not None else "its start: it has told of no checkpoint"
    return [f"It has run for {ran}; a stop now would lose {lost} GPU-h, the work since {since}."]


def _drained_at(view: ClusterView, run: Run, name: HostName) -> str:
    """When the drain of a host stops a run there; nothing where none does."""
    record = view.state.hosts[name]
    drain = drain_of(view.state, record)
    if drain is None or run.stop is not None:
        return ""
    row = drain_row(view.state, record, run, drain.mode, drain.deadline_at)
    if row.stops_at is None:
        return f"{name} is being drained; nobody can say when that stops it: {row.blocked}."
    return f"{name} is being drained: that stops it at {day_clock(view.wall(row.stops_at), view.wall_ms)} ({row.then})."


def _past(view: ClusterView, record: WorkloadRecord, attempt: Attempt) -> list[str]:
    places = ", ".join(f"{m.host} ({count(m.gpus, 'GPU')})" for m in attempt.members)
    ended = day_clock(view.wall(attempt.ended_at), view.wall_ms)
    if attempt.started_at is None:
        ran = f"It held {places} until {ended} and never wholly started."
    else:
        began = day_clock(view.wall(attempt.started_at), view.wall_ms)
        ran = f"It ran on {places} from {began} to {ended}, {span(attempt.ended_at - attempt.started_at)} in all."
    lines = [ran, _attempt(attempt)]
    return lines + (stop_lines(view, attempt.stop, _was_guarded_until(record, attempt)) if attempt.stop else [])


def _guarded_until(run: Run) -> int | None:
    """None also of an unallocated run: it never was protected."""
    return run.protected_until() if run.allocated else None


def _was_guarded_until(record: WorkloadRecord, attempt: Attempt) -> int | None:
    w, began = record.workload, attempt.started_at
    return began + w.min_runtime_ms if w.allocated and began is not None else None


def _attempt(attempt: Attempt) -> str:
    how = f"exit status {attempt.exit_code}" if attempt.exit_code is not None else attempt.signal or ""
    known = ": ".join(filter(None, (how, attempt.why))) or "exit unknown"
    why = f"; stopped: {attempt.stop.reason}" if attempt.stop else ""
    return f"{attempt.run} ended as {attempt.outcome} ({known}){why}."


def _now(view: ClusterView, record: WorkloadRecord, name: RunId) -> list[str]:
    """Where its workload is by now, where that is not this run."""
    if record.run == name:
        return []
    wid = record.workload.id
    if record.run is not None:
        return [f"{wid} runs again, as {record.run}."]
    return [f"{wid} has ended: {record.outcome.value}." if record.outcome else f"{wid} is {record.phase.value} now."]


def attempt_figures(view: ClusterView, record: WorkloadRecord, attempt: Attempt) -> dict[str, Any]:
    ran = None if attempt.started_at is None else (attempt.ended_at - attempt.started_at) / 1000
    return {
        "run": attempt.run,
        "hosts": {m.host: m.gpus for m in attempt.members},
        "ran_s": ran,
        "ended_ms": view.wall(attempt.ended_at),
        "outcome": attempt.outcome,
        "exit_code": attempt.exit_code,
        "signal": attempt.signal,
        "stop": stop_figures(view, attempt.stop, _was_guarded_until(record, attempt)) if attempt.stop else None,
    }


def run_figures(view: ClusterView, record: WorkloadRecord, name: RunId) -> dict[str, Any]:
    """Of a past run what `attempts` of its workload hold."""
    run = view.state.runs.get(name)
    if run is None:
        return attempt_figures(view, record, next(a for a in record.attempts if a.run == name))
    until = _guarded_until(run)
    return {
        "run": run.id,
        "hosts": {host: m.slots.bit_count() for host, m in run.members.items()},
        "ran_s": None if run.started_at is None else (view.state.now - run.started_at) / 1000,
        "protected": run.protected(view.state.now),
        "protected_until_ms": None if until is None else view.wall(until),
        "lost_if_stopped_gpu_h": round(lost_gpu_ms(view.state, run) / GPU_HOUR, 3),
        "stop": stop_figures(view, run.stop, until) if run.stop else None,
    }


# -- preemptions -------------------------------------------------------------------------------------------------------


def stop_lines(view: ClusterView, stop: StopDecided, protected_until: int | None) -> list[str]:
    """Behind the reason of a preemption: how both sides stood at that moment, and what it cost. Else who overrode."""
    if stop.cause is not StopCause.PREEMPT:
        return [f"{stop.actor} said so, although it was protected."] if stop.override and stop.actor else []
    lines = [f"At that moment {'; '.join(_stood(view, s) for s in stop.standings)}."] if stop.standings else []
    if protected_until is not None:
        lines.append(f"Its protection had ended at {day_clock(view.wall(protected_until), view.wall_ms)}.")
    lines.append(f"It lost {gpu_hours(stop.lost_gpu_ms)} GPU-h of work by that.")
    return lines


def _stood(view: ClusterView, s: Standing) -> str:
    path = view.state.budgets.paths.get(s.budget, s.budget)
    with_promises = (
        f", {(s.usage + s.committed) / s.entitlement:.2f} with what was promised"
        if s.entitlement
        else ", without a share"
    )
    got = f"{gpu_hours(s.usage)} of {gpu_hours(s.entitlement)} GPU-h"
    return f"{path} stood {ordinal(s.rank)} among its siblings: {got}{with_promises}"


def stop_figures(view: ClusterView, stop: StopDecided, protected_until: int | None) -> dict[str, Any]:
    return {
        "cause": stop.cause.value,
        "reason": stop.reason,
        "by": stop.actor,
        "override": stop.override,
        "for": stop.for_workload,
        "lost_gpu_h": round(stop.lost_gpu_ms / GPU_HOUR, 3),
        "protected_until_ms": None if protected_until is None else view.wall(protected_until),
        "standings": [standing_figures(view.state, s) for s in stop.standings],
    }
