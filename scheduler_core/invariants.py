"""What must always hold. Called after every step of tests and simulator, and live as an alarm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from scheduler_core.contract import breaks_contract
from scheduler_core.errors import InvariantBroken
from scheduler_core.fairshare import Standings
from scheduler_core.fleet import HostState, Reach
from scheduler_core.ids import BudgetId, HostName
from scheduler_core.index import Index
from scheduler_core.placement import holders
from scheduler_core.rebuilding import rebuild
from scheduler_core.reservations import yields_at
from scheduler_core.state import ClusterState
from scheduler_core.units import GPU
from scheduler_core.witness import Witness
from scheduler_core.workload import WorkloadPhase


def check(state: ClusterState, witness: Witness | None = None) -> list[str]:
    """Every broken invariant, in words; none when all is well. A witness adds what only shows between two states."""
    problems = [problem for rule in RULES for problem in rule(state)]
    return problems + (witness.look(state) if witness is not None else [])


def require(state: ClusterState, witness: Witness | None = None) -> None:
    """Raises InvariantBroken with all that is wrong."""
    if problems := check(state, witness):
        raise InvariantBroken("; ".join(problems))


def _slots(state: ClusterState) -> Iterator[str]:
    """No slot is promised twice: not to two runs, not to a run and a claim, not to two claims."""
    claims: dict[HostName, int] = {}
    for wid in state.index.claimants:
        for part in state.workloads[wid].claim:
            if claims.get(part.host, 0) & part.slots:
                yield f"{part.host}: slots {part.slots:b} are claimed twice"
            claims[part.host] = claims.get(part.host, 0) | part.slots
    for name, host in state.hosts.items():
        held = leaked = 0
        for run_id in host.runs:
            member = state.runs[run_id].members[name]
            if member.phase.holds_gpus:
                if held & member.slots:
                    yield f"{name}: slots {held & member.slots:b} are held twice"
                held |= member.slots
            elif not member.phase.gone:
                leaked |= member.slots
        claimed = claims.get(name, 0)
        if (held, claimed, leaked) != (host.held, host.claimed, host.leaked):
            yield f"{name}: masks {host.held, host.claimed, host.leaked} are not {held, claimed, leaked}"
        if claimed & ~host.host.all_slots:
            yield f"{name}: claimed slots outside the host"


def _claims(state: ClusterState) -> Iterator[str]:
    """Only allocated workloads that wait or stop claim, and each slot they claim is free or held by a run that goes."""
    for wid in state.index.claimants:
        record = state.workloads[wid]
        waits = record.phase is WorkloadPhase.WAITING or (record.run and state.runs[record.run].stop is not None)
        if not waits or not record.workload.allocated:
            yield f"{wid}: {record.phase} with a claim"
        if sum(part.gpus for part in record.claim) != record.workload.gpus:
            yield f"{wid}: its claim is not whole"
        for part in record.claim:
            for run_id in state.hosts[part.host].runs:
                run = state.runs[run_id]
                member = run.members[part.host]
                if member.phase.holds_gpus and member.slots & part.slots and run.stop is None:
                    yield f"{wid}: claims GPUs of {run_id}, which nobody stops"


def _reservations(state: ClusterState) -> Iterator[str]:
    """Rule 21: whole, disjoint, for those that wait; and whoever is on the GPUs has ended or yields by the instant."""
    taken: dict[HostName, int] = {}
    for wid in state.index.reservations:
        record = state.workloads[wid]
        made = record.reserved
        if made is None or record.phase is not WorkloadPhase.WAITING or record.claim or not record.workload.allocated:
            yield f"{wid}: {record.phase} with a reservation"
            continue
        if sum(part.gpus for part in made.members) != record.workload.gpus:
            yield f"{wid}: its reservation is not whole"
        for part in made.members:
            if taken.get(part.host, 0) & part.slots:
                yield f"{part.host}: slots {part.slots:b} are reserved twice"
            taken[part.host] = taken.get(part.host, 0) | part.slots
        for run in holders(state, made.members):
            in_time = run.started_at is None or run.started_at - run.placed_at <= state.policy.start_timeout_ms
            if run.allocated and run.stop is None and in_time and yields_at(state, run) > made.at:
                yield f"{wid}: {run.id} is protected on its GPUs after {made.at}"


def _runs(state: ClusterState) -> Iterator[str]:
    """A workload has at most one live run, whole, under an attempt of its own."""
    live = Counter(run.workload for run in state.runs.values())
    for wid, record in state.workloads.items():
        running = record.phase is WorkloadPhase.RUNNING
        if live.get(wid, 0) != int(running) or (record.run is not None) != running:
            yield f"{wid}: {record.phase} with {live[wid]} runs"
        if running and any(attempt.run == record.run for attempt in record.attempts):
            yield f"{wid}: {record.run} has run before"
    for run in state.runs.values():
        if sum(m.slots.bit_count() for m in run.members.values()) != state.workloads[run.workload].workload.gpus:
            yield f"{run.id}: is not whole"
        if all(m.phase.gone for m in run.members.values()):
            yield f"{run.id}: is gone and still there"


def _contract(state: ClusterState) -> Iterator[str]:
    """No protected run is stopped but by its owner, a broken host, or an explicit override (rule 11)."""
    for run in state.runs.values():
        if run.stop is not None and run.stop_at is not None and breaks_contract(run, run.stop, run.stop_at):
            yield f"{run.id}: stopped while protected, by {run.stop.cause}"


def _hosts(state: ClusterState) -> Iterator[str]:
    """A drained host has no runs; what moves a host on without a drain names none; nobody is lost without a reason."""
    for name, host in state.hosts.items():
        if host.state in _EMPTY and host.runs:
            yield f"{name}: {host.state} with runs {host.runs}"
        if (host.reach in (Reach.UNREACHABLE, Reach.LOST)) and host.unreachable_since is None:
            yield f"{name}: {host.reach} since never"
        drain = state.drains.get(host.drain) if host.drain else None
        if host.state is HostState.DRAINING and (drain is None or drain.ended or drain.host != name):
            yield f"{name}: draining without a drain of its own"
    for drain in state.drains.values():
        host_of = state.hosts.get(drain.host)
        if not drain.ended and (host_of is None or host_of.drain != drain.id):
            yield f"{drain.id}: drains {drain.host}, which does not know it"


_EMPTY = (HostState.DRAINED, HostState.REPAIRING, HostState.VERIFYING, HostState.VERIFY_FAILED)


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
    """The derived tables are what the records give, and no step leaves a stop or a stray undecided."""
    if state.wanted or state.strays:
        yield f"undecided: {list(state.wanted)} {state.strays}"
    kept = state.index
    kept.expire(state.now)
    dirty = state.dirty
    rebuild(state)
    fresh, state.index, state.dirty = state.index, kept, dirty
    fresh.expire(state.now)
    for name, view in _VIEWS.items():
        if view(kept) != view(fresh):
            yield f"index {name}: {view(kept)} is not {view(fresh)}"
    yield from _lines(state)


def _lines(state: ClusterState) -> Iterator[str]:
    """What is charged, as kept for the next passes, is what the ledgers and promises say now."""
    standings, kept = Standings(state), state.index.lines
    for budget, line in kept.items():
        charged = standings.usage(budget) + standings.committed(budget)
        if line.since <= state.now < line.until and line.level + line.slope * state.now != charged:
            yield f"{budget}: {line} is not {charged} at {state.now}"


def _lapses(state: ClusterState) -> Iterator[str]:
    """What ends by itself is there to be ended; weights by hand are the ones that count."""
    for name in state.cordons_end:
        if name not in state.hosts or state.hosts[name].state is not HostState.CORDONED:
            yield f"{name}: the end of a cordon, and no cordon"
    for wid in state.holds_end:
        if wid not in state.workloads or state.workloads[wid].phase is not WorkloadPhase.HELD:
            yield f"{wid}: the end of a hold, and no hold"
    for budget, hand in state.weights.items():
        if budget not in state.budgets.by_id or state.budgets.by_id[budget].weight != hand.weight:
            yield f"{budget}: its weight is not the one that {hand.by.actor} set"


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
    "reservations": lambda i: sorted(i.reservations),
    "fixed": lambda i: _nonzero(i.fixed),
    "promised_gpus": lambda i: _nonzero(i.promised_gpus),
    "promised_until": lambda i: _nonzero(i.promised_until),
    "promises": lambda i: i.promises,
    "interruptible": lambda i: {leaf: sorted(runs) for leaf, runs in i.interruptible.items() if runs},
    "unallocated": lambda i: sorted(i.running_unallocated),
    "stopping": lambda i: sorted(i.stopping),
    "interruptible_below": lambda i: _nonzero(i.interruptible_below),
    "open slots": lambda i: i.book.open,
    "free slots": lambda i: i.book.free,
    "leaving slots": lambda i: i.book.leaving,
}

RULES = (_slots, _claims, _reservations, _runs, _contract, _hosts, _ledgers, _lapses, _index)
