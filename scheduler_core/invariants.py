"""What must always hold. Called after every step of tests and simulator, and live as an alarm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from scheduler_core.changes import rebuild
from scheduler_core.errors import InvariantBroken
from scheduler_core.fleet import HostState
from scheduler_core.ids import BudgetId, HostName
from scheduler_core.index import Index
from scheduler_core.state import ClusterState
from scheduler_core.units import GPU
from scheduler_core.workload import WorkloadPhase


def check(state: ClusterState) -> list[str]:
    """Every broken invariant, in words; none when all is well."""
    return [problem for rule in RULES for problem in rule(state)]


def require(state: ClusterState) -> None:
    """Raises InvariantBroken with all that is wrong."""
    if problems := check(state):
        raise InvariantBroken("; ".join(problems))


def _slots(state: ClusterState) -> Iterator[str]:
    """No slot is promised twice: not to two runs, not to a run and a claim, not to two claims."""
    for name, host in state.hosts.items():
        held = claimed = leaked = 0
        for run_id in host.runs:
            member = state.runs[run_id].members[name]
            if member.phase.holds_gpus:
                if held & member.slots:
                    yield f"{name}: slots {held & member.slots:b} are held twice"
                held |= member.slots
            elif not member.phase.gone:
                leaked |= member.slots
        for record in state.workloads.values():
            for part in record.claim:
                if part.host == name:
                    if claimed & part.slots:
                        yield f"{name}: slots {claimed & part.slots:b} are claimed twice"
                    claimed |= part.slots
        if (held, claimed, leaked) != (host.held, host.claimed, host.leaked):
            yield f"{name}: masks {host.held, host.claimed, host.leaked} are not {held, claimed, leaked}"
        if (held | claimed) & ~host.host.all_slots and not host.removed:
            yield f"{name}: slots outside the host"


def _claims(state: ClusterState) -> Iterator[str]:
    """Only waiting allocated workloads claim, and each slot they claim is free or held by a run that goes."""
    for wid, record in state.workloads.items():
        if not record.claim:
            continue
        if record.phase is not WorkloadPhase.WAITING or not record.workload.allocated:
            yield f"{wid}: {record.phase} with a claim"
        if sum(part.gpus for part in record.claim) != record.workload.gpus:
            yield f"{wid}: its claim is not whole"
        for part in record.claim:
            for run_id in state.hosts[part.host].runs:
                run = state.runs[run_id]
                member = run.members[part.host]
                if member.phase.holds_gpus and member.slots & part.slots and run.stop is None:
                    yield f"{wid}: claims GPUs of {run_id}, which nobody stops"


def _runs(state: ClusterState) -> Iterator[str]:
    """A workload has at most one live run, whole, under an attempt of its own."""
    live = Counter(run.workload for run in state.runs.values())
    for wid, record in state.workloads.items():
        running = record.phase is WorkloadPhase.RUNNING
        if live[wid] != int(running) or (record.run is not None) != running:
            yield f"{wid}: {record.phase} with {live[wid]} runs"
        tokens = [attempt.run for attempt in record.attempts] + ([record.run] if record.run else [])
        if len(dict.fromkeys(tokens)) != len(tokens):
            yield f"{wid}: a token twice"
    for run in state.runs.values():
        if sum(m.slots.bit_count() for m in run.members.values()) != state.workloads[run.workload].workload.gpus:
            yield f"{run.id}: is not whole"
        if all(m.phase.gone for m in run.members.values()):
            yield f"{run.id}: is gone and still there"


def _hosts(state: ClusterState) -> Iterator[str]:
    """A drained host has no runs."""
    for name, host in state.hosts.items():
        if host.state is HostState.DRAINED and host.runs:
            yield f"{name}: drained with runs {host.runs}"


def _ledgers(state: ClusterState) -> Iterator[str]:
    """The rate of every ledger is the GPUs held below it now (rule 2)."""
    rates: Counter[tuple[BudgetId, bool]] = Counter()
    for run in state.runs.values():
        for budget in state.budgets.chains[run.budget]:
            rates[budget, run.allocated] += run.gpus * GPU
    for budget in state.budgets.by_id:
        for allocated in (True, False):
            ledger = (state.ledgers.allocated if allocated else state.ledgers.unallocated).get(budget)
            rate = ledger.rate if ledger is not None else 0
            if rate != rates[budget, allocated]:
                yield f"{budget}: charged at {rate}, holds {rates[budget, allocated]}"
    service = sum(host.in_service for host in state.hosts.values()) * GPU
    if state.ledgers.service.rate != service:
        yield f"in service: {state.ledgers.service.rate}, not {service}"


def _index(state: ClusterState) -> Iterator[str]:
    """The derived tables are what the records give."""
    kept = state.index
    kept.expire(state.now)
    dirty = state.dirty
    rebuild(state)
    fresh, state.index, state.dirty = state.index, kept, dirty
    fresh.expire(state.now)
    for name, view in _VIEWS.items():
        if view(kept) != view(fresh):
            yield f"index {name}: {view(kept)} is not {view(fresh)}"


def _nonzero(sums: dict[BudgetId, int]) -> dict[BudgetId, int]:
    return {budget: value for budget, value in sums.items() if value}


def _queues(index: Index) -> object:
    both = {**index.queues}, {**index.unallocated_queues}
    return [{leaf: q.by_signature for leaf, q in queues.items() if q.by_signature} for queues in both]


def _free(index: Index) -> dict[HostName, int]:
    return {name: count for count, names in sorted(index.free.items()) for name in sorted(names)}


_VIEWS: dict[str, Callable[[Index], object]] = {
    "free": _free,
    "queues": _queues,
    "held": lambda i: _nonzero(i.held),
    "claimed": lambda i: _nonzero(i.claimed),
    "claimants": lambda i: sorted(i.claimants),
    "fixed": lambda i: _nonzero(i.fixed),
    "promised_gpus": lambda i: _nonzero(i.promised_gpus),
    "promised_until": lambda i: _nonzero(i.promised_until),
    "promises": lambda i: i.promises,
    "interruptible": lambda i: {leaf: sorted(runs) for leaf, runs in i.interruptible.items() if runs},
    "unallocated": lambda i: sorted(i.running_unallocated),
    "stopping": lambda i: sorted(i.stopping),
}

RULES = (_slots, _claims, _runs, _hosts, _ledgers, _index)
