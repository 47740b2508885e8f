"""The primitive changes of a ClusterState: each keeps records, ledgers and index together. Only `apply` calls them."""

from __future__ import annotations

from typing import Any

from scheduler_core.decisions import StopDecided
from scheduler_core.fleet import Host
from scheduler_core.ids import BudgetId, HostName
from scheduler_core.state import ClusterState, HostRecord, MemberPhase, MemberRecord, Run, WorkloadRecord
from scheduler_core.units import GPU
from scheduler_core.workload import WorkloadPhase

# -- hosts -----------------------------------------------------------------------------------------------------------


def add_host(state: ClusterState, host: Host, /, **fields: Any) -> HostRecord:
    """A host that was never seen, unless `fields` say more."""
    record = state.hosts[host.name] = HostRecord(host, since=state.now)
    state.index.sizes.clear()
    touch_host(state, record, **fields)
    return record


def remove_host(state: ClusterState, name: HostName) -> None:
    """Only for a host without runs."""
    record = state.hosts[name]
    touch_host(state, record, removed=True, reach=type(record.reach).NEVER_SEEN)
    del state.hosts[name]
    state.cordons_end.pop(name, None)
    state.index.book.forget(name)
    state.index.sizes.clear()


def touch_host(state: ClusterState, record: HostRecord, /, **fields: Any) -> None:
    """Sets fields of a host, and what follows from them: GPUs in service, free GPUs; a cordon that ends has no end."""
    before = record.counted
    if "state" in fields:
        state.cordons_end.pop(record.host.name, None)
    for name, value in fields.items():
        setattr(record, name, value)
    after = record.in_service
    if after != before:
        state.ledgers.service.change(state.now, (after - before) * GPU)
        record.counted = after
    if see_host(state, record) or after != before:
        state.dirty = True


def see_host(state: ClusterState, record: HostRecord) -> bool:
    """What the host could give now. True where it is more than before: then somebody may start."""
    if state.hosts.get(record.host.name) is not record:
        return False  # it has left
    name, open_slots = record.host.name, record.usable & ~record.claimed
    free = open_slots & ~record.held
    state.index.set_free(name, free.bit_count())
    if state.index.book.see(name, open_slots, free):
        state.index.news.hosts[name] = None
        return True
    state.index.news.claims |= record.claimed != 0  # one may have come true
    return record.claimed != 0


# -- workloads ----------------------------------------------------------------------------------------------------


def enqueue(state: ClusterState, record: WorkloadRecord) -> None:
    """A workload enters the state. A waiting one enters its leaf's queue."""
    state.workloads[record.workload.id] = record
    if record.phase is WorkloadPhase.WAITING:
        state.index.enqueue(record.workload)
        state.dirty = True


def set_phase(state: ClusterState, record: WorkloadRecord, phase: WorkloadPhase) -> None:
    """Moves it between waiting, running, held and ended. Claim and reservation must have been dropped before."""
    if record.phase is WorkloadPhase.WAITING:
        state.index.dequeue(record.workload)
    record.phase = phase
    if phase is WorkloadPhase.WAITING:
        record.waiting_since = state.now
        state.index.enqueue(record.workload)
    state.dirty = True


def replace_workload(state: ClusterState, record: WorkloadRecord, **fields: Any) -> None:
    """Another budget or priority for a workload. Its run, if any, stays charged where it is (rule 2)."""
    from dataclasses import replace

    waiting = record.phase is WorkloadPhase.WAITING
    if waiting:
        state.index.dequeue(record.workload)
    record.workload = replace(record.workload, **fields)
    if record.run is not None:
        state.index.ranks(state.runs[record.run].budget, record.workload.priority)
    if waiting:
        state.index.enqueue(record.workload)
    state.dirty = True


# -- runs ---------------------------------------------------------------------------------------------------------


def charge(state: ClusterState, chain: tuple[BudgetId, ...], at: int, delta: int, allocated: bool) -> None:
    """The budgets hold so many more GPU-thousandths from `at` on (rule 2)."""
    state.ledgers.charge(chain, at, delta, allocated)
    for budget in chain:
        state.index.lines.pop(budget, None)


def hold(state: ClusterState, run: Run) -> None:
    """A run takes its GPUs: from this instant they are held and charged (rule 2)."""
    state.runs[run.id] = run
    for name, member in run.members.items():
        host = state.hosts[name]
        host.runs.append(run.id)
        touch_host(state, host, held=host.held | member.slots)
    chain = state.budgets.chains[run.budget]
    charge(state, chain, state.now, run.gpus * GPU, run.allocated)
    state.index.news.promised(run.gpus * GPU * run.min_runtime_ms)
    index_run(state, run)


def started(state: ClusterState, run: Run, at: int) -> None:
    """The last member has started: the rest of the min runtime replaces the whole (rule 7)."""
    _forget_start(state, run)
    run.started_at = at
    if run.allocated and run.stop is None:
        chain = state.budgets.chains[run.budget]
        state.index.promise(run.id, at + run.min_runtime_ms, run.gpus, chain, state.now)


def stopping(state: ClusterState, run: Run, stop: StopDecided) -> None:
    """The run is told to stop: it promises nothing more and is no candidate; its GPUs stay held."""
    if run.started_at is None:
        state.index.news.relieve(run.budget, run.gpus * GPU * run.min_runtime_ms)
    _forget_start(state, run)
    run.stop, run.stop_at = stop, state.now
    state.index.withdraw(run.id, state.budgets.chains[run.budget], state.now)
    _leaves(state, run)
    state.index.news.hosts |= dict.fromkeys(run.members)
    state.dirty = True


def _leaves(state: ClusterState, run: Run) -> None:
    """Its GPUs come free."""
    state.index.stopping[run.id] = None
    for name, member in run.members.items():
        if member.phase.holds_gpus:
            state.index.book.leave(name, member.slots)


def set_member(state: ClusterState, run: Run, name: HostName, phase: MemberPhase, ago_ms: int = 0) -> bool:
    """Moves a member on; masks and ledgers follow where its GPUs change hands. True when the whole run is gone.

    `ago_ms`: its GPUs were given back so long ago, and are charged until then; what ancestors from before a move of
    its budget were charged stays with them (rule 2).
    """
    member, host = run.members[name], state.hosts[name]
    before, at = member.phase, max(run.placed_at, run.charged_from, state.now - ago_ms)
    if before.holds_gpus and not phase.holds_gpus:
        _withdraw_part(state, run, member)
        _uncharge(state, run, member, at)
        state.index.book.release(name, member.slots)
        touch_host(state, host, held=host.held & ~member.slots)
        state.dirty = True
    if (leaks := phase is MemberPhase.LEAKED) or before is MemberPhase.LEAKED:
        touch_host(state, host, leaked=host.leaked | member.slots if leaks else host.leaked & ~member.slots)
    if phase.gone and not before.gone:
        host.runs.remove(run.id)
        member.gone_at = at
    member.phase = phase
    return all(m.phase.gone for m in run.members.values())


def _uncharge(state: ClusterState, run: Run, member: MemberRecord, at: int) -> None:
    chain, count = state.budgets.chains[run.budget], member.slots.bit_count()
    charge(state, chain, at, -count * GPU, run.allocated)
    for budget in chain:
        state.index.held[budget] -= count


def _withdraw_part(state: ClusterState, run: Run, member: MemberRecord) -> None:
    """A gang that loses a member promises only the rest."""
    index, count = state.index, member.slots.bit_count()
    chain = state.budgets.chains[run.budget]
    if run.allocated and run.started_at is None and run.stop is None:
        index.fix(chain, -count * GPU * run.min_runtime_ms)
        index.news.relieve(run.budget, count * GPU * run.min_runtime_ms)
    elif (promise := index.promises.get(run.id)) is not None:
        index.withdraw(run.id, chain, state.now)
        index.promise(run.id, promise.until, run.gpus - count, promise.chain, state.now)


def drop_run(state: ClusterState, run: Run) -> None:
    """The run is gone and leaves the state; what it was stays in the workload's attempts."""
    state.index.withdraw(run.id, state.budgets.chains[run.budget], state.now)
    state.index.stopping.pop(run.id, None)
    del state.runs[run.id]


def _forget_start(state: ClusterState, run: Run) -> None:
    """A run that has not wholly started commits its whole min runtime; now it does not any more."""
    if run.allocated and run.started_at is None and run.stop is None:
        state.index.fix(state.budgets.chains[run.budget], -run.gpus * GPU * run.min_runtime_ms)


def index_run(state: ClusterState, run: Run) -> None:
    index, chain = state.index, state.budgets.chains[run.budget]
    index.ranks(run.budget, state.workloads[run.workload].workload.priority)
    for budget in chain:
        index.held[budget] += run.gpus
    if run.stop is not None:
        _leaves(state, run)
    elif not run.allocated:
        index.running_unallocated[run.id] = None
        for name, member in run.members.items():
            if member.phase.holds_gpus:
                index.book.loosen(name, member.slots)
    elif run.started_at is None:
        index.fix(chain, run.gpus * GPU * run.min_runtime_ms)
    else:
        index.promise(run.id, run.started_at + run.min_runtime_ms, run.gpus, chain, state.now)
