"""Small crowded states for property tests: few hosts, many ties, instants exactly on the edge."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from scheduler_core.budget import Budget, BudgetTree
from scheduler_core.changes import add_host, enqueue, hold, started, stopping, touch_host
from scheduler_core.decisions import StopCause, StopDecided
from scheduler_core.fleet import Host, HostState, Reach
from scheduler_core.ids import ROOT, BudgetId, HostName, WorkloadId, run_id
from scheduler_core.policy import Policy
from scheduler_core.rebuilding import rebuild, set_inventory
from scheduler_core.state import ClusterState, MemberPhase, MemberRecord, Run, WorkloadRecord
from scheduler_core.units import GPU, HOUR, MINUTE, WEIGHT, lowest_bits
from scheduler_core.workload import Workload, WorkloadPhase

NOW = 1_800_000_000_000


def random_state(seed: int, caps: bool = False) -> ClusterState:
    draw = Random(seed)
    state = ClusterState(now=NOW)
    policy = Policy(
        lookback_ms=draw.choice((2 * HOUR, 24 * HOUR)),
        count_commitments=draw.random() < 0.8,
        pack=draw.choice(("aligned", "tight")),
        preemption_margin_ppm=draw.choice((0, 50_000, 300_000)),
        max_blast_ppm=draw.choice((1_000_000, 2_000_000, 8_000_000)),
        max_reservations=draw.choice((0, 1, 4)),
    )
    set_inventory(state, policy, BudgetTree.of(_tree(draw, caps)))
    size = draw.choice((2, 4, 8))
    for n in range(draw.randrange(1, 5)):
        _host(draw, state, HostName(f"h{n}"), draw.choice((size, size, size // 2)))
    for n in range(draw.randrange(0, 14)):
        _run(draw, state, n)
    for leaf in state.budgets.leaves:
        state.ledgers.seed(state.budgets.chains[leaf], draw.choice((0, 0, 1, 2, 4, 8)) * GPU * HOUR)
        state.ledgers.seed(state.budgets.chains[leaf], draw.choice((0, 1, 2)) * GPU * HOUR, allocated=False)
    for n in range(draw.randrange(1, 8)):
        _waiting(draw, state, n, size)
    rebuild(state)
    return state


def _tree(draw: Random, caps: bool) -> list[Budget]:
    found = []
    for top in "abc"[: draw.randrange(1, 4)]:
        found.append(_budget(draw, top, "", caps))
        if draw.random() < 0.4:
            found += [_budget(draw, f"{top}/{kid}", top, caps) for kid in "xy"]
    return found


def _budget(draw: Random, bid: str, parent: str, caps: bool) -> Budget:
    return Budget(
        BudgetId(bid),
        bid.rpartition("/")[2],
        BudgetId(parent) if parent else ROOT,
        draw.choice((0, 1, 1, 2)) * WEIGHT,
        max_gpus=draw.choice((None, 2, 4, 8)) if caps else None,
        over_budget_priority=draw.choice((0, 0, 1)),
        over_budget_weight=draw.choice((1, 1, 3)) * WEIGHT,
    )


def _host(draw: Random, state: ClusterState, name: HostName, gpus: int) -> None:
    labels = draw.choice(((), (("model", "h100"),)))
    host = add_host(state, Host(name, gpus, labels), reach=Reach.FRESH, boot_id="b")
    if draw.random() < 0.1:
        touch_host(state, host, foreign=1)
    if draw.random() < 0.1:
        touch_host(state, host, state=HostState.CORDONED)


def _workload(draw: Random, state: ClusterState, wid: str, gpus: int, at: int) -> Workload:
    return Workload(
        WorkloadId(wid),
        draw.choice(state.budgets.leaves),
        gpus,
        draw.choice((0, MINUTE, HOUR)),
        at,
        priority=draw.choice((0, 0, 1)),
        resumable=draw.random() < 0.7,
    )


def _run(draw: Random, state: ClusterState, n: int) -> None:
    """A run on one or two hosts; past its minimum, exactly at it, or protected."""
    names = draw.sample(sorted(state.hosts), min(len(state.hosts), draw.choice((1, 1, 1, 2))))
    per_host = draw.choice((1, 1, 2, 4))
    free = {name: state.hosts[name].host.all_slots & ~state.hosts[name].held for name in names}
    if any(mask.bit_count() < per_host for mask in free.values()):
        return
    w = _workload(draw, state, f"r{n:02}", per_host * len(names), NOW - HOUR)
    record = WorkloadRecord(w, WorkloadPhase.RUNNING, attempt=1, run=run_id(w.id, 1))
    age = draw.choice((w.min_runtime_ms, w.min_runtime_ms - 1, w.min_runtime_ms + 1, 2 * HOUR, 10 * MINUTE, MINUTE))
    members = {name: MemberRecord(lowest_bits(free[name], per_host), MemberPhase.STARTED) for name in names}
    run = Run(run_id(w.id, 1), w.id, w.budget, w.allocated, w.min_runtime_ms, NOW - max(0, age), members)
    enqueue(state, record)
    hold(state, run)
    if draw.random() < 0.9:
        started(state, run, NOW - max(0, age))
        if draw.random() < 0.4:
            run.checkpoint_at = NOW - draw.choice((0, MINUTE, 5 * MINUTE))
    if draw.random() < 0.1:
        stopping(state, run, StopDecided(run.id, StopCause.CANCEL, "test"))


def _waiting(draw: Random, state: ClusterState, n: int, size: int) -> None:
    gang = draw.random() < 0.25
    hosts, per_host = (2, draw.choice((1, 2, size))) if gang else (None, None)
    gpus = hosts * per_host if hosts and per_host else draw.choice((1, 1, 2, 4, size, 2 * size))
    w = _workload(draw, state, f"w{n}", gpus, NOW - draw.choice((0, MINUTE)))
    w = replace(w, hosts=hosts, gpus_per_host=per_host, needs=draw.choice(((), (), (("model", "h100"),))))
    record = WorkloadRecord(w, waiting_since=w.submitted_at)
    record.not_before = draw.choice((0, 0, 0, NOW, NOW + 1))
    enqueue(state, record)
