"""Explanations in sentences that a researcher understands without knowing the algorithm."""

from __future__ import annotations

import difflib
from collections import Counter

from opsconsole.presenting.hosts import AWAY, failures, warnings
from opsconsole.presenting.needs import needs
from opsconsole.presenting.queue import workload_label
from opsconsole.presenting.sentences import by_text
from opsconsole.presenting.text import clean, count, day_clock, few, gpu_hours, ordinal, span
from opsconsole.presenting.view import ClusterView
from scheduler_core.drain import drain_row, eta, why_unknown
from scheduler_core.explain import Explainer, HoldKind
from scheduler_core.fairshare import Standings
from scheduler_core.fleet import Reach
from scheduler_core.ids import BudgetId, HostName, RunId, WorkloadId
from scheduler_core.queueing import queue_order
from scheduler_core.state import Attempt, HostRecord, Run, WorkloadRecord
from scheduler_core.workload import WorkloadPhase

OPEN_ENDED = (HoldKind.BETTER_CLAIMS, HoldKind.HOST_HEALTH, HoldKind.OVER_MAX_GPUS, HoldKind.RESERVED)
WHOLE = 1000  # there is room for it, and what to do stands at its end


def explain_anything(view: ClusterView, name: str) -> list[str] | None:
    """A workload, a run, a budget's path or a host, and what a person has to do about it; None where nothing has
    that name."""
    state = view.state
    if HostName(name) in state.hosts:
        return explain_host(view, HostName(name)) + _needed(view, name)
    if (budget := state.budgets.by_path.get(name)) is not None:
        return explain_budget(view, budget)
    run = state.runs.get(RunId(name))
    ids = (name, run.workload if run is not None else "", name.rpartition("~")[0])
    record = next((r for wid in ids if (r := state.workloads.get(WorkloadId(wid))) is not None), None)
    if record is None:
        return None
    return explain_workload(view, record) + _needed(view, record.workload.id)


def _needed(view: ClusterView, name: str) -> list[str]:
    return [clean(line, WHOLE) for need in needs(view) if need.about == name for line in need.sentences()]


def unknown_name(view: ClusterView, name: str) -> str:
    """That nothing has the name now: with those that are like it, for it may be a slip."""
    state = view.state
    known = [*state.hosts, *state.budgets.by_path, *state.workloads]
    near = difflib.get_close_matches(name, map(str, known), 3)
    if near:
        return clean(f"no host, workload or budget {name!r}; did you mean {' or '.join(near)}?")
    return clean(f"no host, workload or budget {name!r}; what ended long ago is forgotten, the timeline (7) may tell")


def explain_workload(view: ClusterView, record: WorkloadRecord) -> list[str]:
    """Where it stands, why, and what became of its earlier runs."""
    state, w = view.state, record.workload
    contract = (
        f"min runtime {span(w.min_runtime_ms)}" if w.allocated else "unallocated: free of charge, never protected"
    )
    who = f"{workload_label(w.id, w.name)} of {w.owner or 'nobody'}"
    lines = [clean(f"{who}, {state.budgets.paths[w.budget]}: {count(w.gpus, 'GPU')}, {contract}.")]
    if record.phase in (WorkloadPhase.WAITING, WorkloadPhase.HELD):
        lines += _waits(view, record)
    elif record.run is not None:
        lines += _live(view, state.runs[record.run])
    else:
        lines.append(f"It has ended: {record.outcome.value if record.outcome else 'unknown'}.")
    return lines + [_attempt(attempt) for attempt in record.attempts]


def _waits(view: ClusterView, record: WorkloadRecord) -> list[str]:
    """Why, from when on that may change, and who is taken before it."""
    state, hold = view.state, Explainer(view.state).hold(record)
    until = "" if hold.until is None else f", until {day_clock(view.wall(hold.until), view.wall_ms)}"
    lines = [f"Why it waits: {hold.text}{until}."]
    if hold.until is None and hold.kind in OPEN_ENDED:
        lines.append("No instant can be computed: it depends on when runs end and on what others ask for.")
    order = queue_order(state)
    place = order.index(record.workload.id)
    wanted: Counter[str] = Counter()
    for wid in order[:place]:
        w = state.workloads[wid].workload
        wanted[state.budgets.paths[w.budget]] += w.gpus
    ahead = few([f"{path} {count(gpus, 'GPU')}" for path, gpus in wanted.most_common()])
    lines.append(f"It is {ordinal(place + 1)} in the queue; {f'ahead of it: {ahead}' if ahead else 'nobody is ahead'}.")
    return [clean(line) for line in lines]


def _live(view: ClusterView, run: Run) -> list[str]:
    state = view.state
    hosts = ", ".join(
        f"{name} ({count(m.slots.bit_count(), 'GPU')}, {m.phase.value})" for name, m in run.members.items()
    )
    lines = [f"{run.id} holds {hosts}."]
    away = [name for name in run.members if state.hosts[name].reach in AWAY]
    if away:
        lines.append(f"Whether it still runs nobody knows: {', '.join(away)} cannot be asked. It is not started twice.")
    if run.stop is not None:
        lines.append(clean(f"It is being stopped: {run.stop.reason}."))
    elif run.started_at is None:
        lines.append("It is starting; its protection counts from the start of its last member.")
    elif run.protected(state.now):
        left = run.started_at + run.min_runtime_ms - state.now
        lines.append(f"It is protected for another {span(left)}: nothing that the scheduler decides stops it before.")
    else:
        lines.append(
            "It is past its min runtime and goes on until it ends or somebody with a better claim needs its GPUs."
        )
    return lines + [line for name in run.members if (line := _drained_at(view, run, name))]


def _drained_at(view: ClusterView, run: Run, name: HostName) -> str:
    """When the drain of a host stops a run there; nothing where none does."""
    record = view.state.hosts[name]
    drain = view.state.drains.get(record.drain) if record.drain else None
    if drain is None or drain.ended or run.stop is not None:
        return ""
    row = drain_row(view.state, record, run, drain.mode, drain.deadline_at)
    if row.stops_at is None:
        return f"{name} is being drained; nobody can say when that stops it: {row.blocked}."
    return f"{name} is being drained: that stops it at {day_clock(view.wall(row.stops_at), view.wall_ms)} ({row.then})."


def _attempt(attempt: Attempt) -> str:
    how = f"exit status {attempt.exit_code}" if attempt.exit_code is not None else attempt.signal or ""
    known = ": ".join(filter(None, (how, attempt.why))) or "exit unknown"
    why = f"; stopped: {attempt.stop.reason}" if attempt.stop else ""
    return clean(f"{attempt.run} ended as {attempt.outcome} ({known}){why}.")


def explain_budget(view: ClusterView, budget: BudgetId) -> list[str]:
    """Its share, what it has got, and where it stands at each level."""
    state = view.state
    state.index.expire(state.now)
    standings = Standings(state)
    tree = state.budgets
    owed, got = int(standings.entitlement(budget)), standings.usage(budget)
    share = float(tree.fractions[budget])
    lines = [
        f"{tree.paths[budget]} is guaranteed {share:.1%} of the cluster: "
        f"{gpu_hours(owed)} GPU-h in {span(standings.lookback)}.",
        f"It has got {gpu_hours(got)} GPU-h and has {gpu_hours(standings.committed(budget))} GPU-h promised to runs.",
    ]
    for level in reversed(tree.chains[budget]):
        siblings = standings.ranked(tree.by_id[level].parent)
        rank = siblings.index(level)
        if rank:
            ahead = siblings[rank - 1]
            lines.append(
                f"{tree.paths[level]} stands behind {tree.paths[ahead]}: it has got {_balance(standings, level)} "
                f"of its share, {tree.paths[ahead]} {_balance(standings, ahead)} (what is promised counts too)."
            )
        else:
            lines.append(f"{tree.paths[level]} stands first among its siblings at {_balance(standings, level)}.")
    return [clean(line) for line in lines]


def _balance(standings: Standings, budget: BudgetId) -> str:
    owed = standings.entitlement(budget)
    return f"{float(standings.charged(budget) / owed):.2f}" if owed else "no share"


def _reached(view: ClusterView, record: HostRecord) -> str:
    """How it is reached, and how old what is known of it is."""
    facts = view.facts(record.host.name)
    age = "" if facts.age_s is None else f"the newest readings are {span(int(facts.age_s * 1000))} old"
    if record.reach in (Reach.FRESH, Reach.STALE):
        trip = "" if facts.rtt_s is None else f", a question takes {facts.rtt_s * 1000:.0f} ms"
        return f"It answers{': ' if age else ''}{age}{trip}."
    why = record.unreachable_why or facts.why or "no reason known"
    return f"It is {record.reach.value.replace('_', ' ')} ({why}){'; ' if age else ''}{age}."


def _runs_until(view: ClusterView, run: Run, away: bool) -> str:
    """One run there, as far as the host can be asked, and until when nothing stops it."""
    until = run.protected_until()
    when = "its minimum, once it has started" if until is None else day_clock(view.wall(until), view.wall_ms)
    kept = f"protected until {when}" if run.protected(view.state.now) else "interruptible"
    return f"{run.id} {'ran there when it was last heard of' if away else 'runs there'}, {kept}."


def explain_host(view: ClusterView, name: HostName) -> list[str]:
    """Its state and by whom, how it is reached, what is wrong, and when a drain ends."""
    record = view.state.hosts[name]
    facts = view.facts(name)
    by = f", by {by_text(record.by)}" if record.by else ""
    lines = [
        f"{name} is {record.state.value.replace('_', ' ')}{by}.",
        _reached(view, record),
        f"{record.held.bit_count()} of {count(record.host.gpus, 'GPU')} held, {record.free.bit_count()} free.",
    ]
    lines += [_runs_until(view, view.state.runs[run], record.reach in AWAY) for run in record.runs]
    lines += [f"{warning[0].upper()}{warning[1:]}." for warning in warnings(record, facts)]
    if record.foreign:
        lines.append("Nothing is placed on those GPUs: end the processes, or name them in system_processes.")
    if facts.probe is None:
        lines.append("There are no readings of it: nothing is known of its health.")
    else:
        lines += [f"{failure}." for failure in failures(view, record)]
    drain = view.state.drains.get(record.drain) if record.drain else None
    if drain is not None and not drain.ended:
        at = eta(view.state, drain)
        lines.append(
            f"It is empty by {day_clock(view.wall(at), view.wall_ms)} at the latest."
            if at is not None
            else f"When it is empty nobody can say: {why_unknown(view.state, drain)}."
        )
    return [clean(line, WHOLE) for line in lines]
