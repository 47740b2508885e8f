"""Large clusters for benchmarks, the same ones on every machine."""

from __future__ import annotations

from random import Random

from scheduler_core.budget import Budget
from scheduler_core.engine import Engine
from scheduler_core.fleet import Host
from scheduler_core.ids import ROOT, BudgetId, HostName, WorkloadId
from scheduler_core.observations import HostSeen, InventoryLoaded, MemberStarted, WorkloadSubmitted
from scheduler_core.policy import Policy
from scheduler_core.units import HOUR, MINUTE, WEIGHT
from scheduler_core.workload import Workload

DEFAULTS = Policy()
T0 = 1_800_000_000_000
SIZES = (1, 1, 1, 1, 2, 2, 4, 8, 8, 16)
MIN_RUNTIMES = (0, 15 * MINUTE, HOUR, 2 * HOUR, 8 * HOUR)


def tree(inner: int, leaves: int) -> tuple[Budget, ...]:
    """`inner` top-level budgets and `leaves` in all below them, with uneven weights."""
    tops = tuple(Budget(BudgetId(f"t{n:02}"), f"t{n:02}", ROOT, (1 + n % 5) * WEIGHT) for n in range(inner))
    below = tuple(
        Budget(BudgetId(f"{tops[n % inner].id}/l{n:03}"), f"l{n:03}", tops[n % inner].id, (1 + n % 7) * WEIGHT)
        for n in range(leaves)
    )
    return tops + below


def fleet(hosts: int, gpus: int = 8) -> tuple[Host, ...]:
    return tuple(Host(HostName(f"gpu{n:04}"), gpus) for n in range(hosts))


def engine(hosts: int, inner: int, leaves: int, policy: Policy = DEFAULTS, now: int = T0) -> Engine:
    """A cluster whose hosts all answer and run nothing."""
    made, machines = Engine(), fleet(hosts)
    made.step(now, [InventoryLoaded(policy, tree(inner, leaves), machines)])
    made.step(now, [HostSeen(h.name, "boot1") for h in machines])
    return made


def leaf_ids(made: Engine) -> tuple[BudgetId, ...]:
    return made.state.budgets.leaves


def workloads(draw: Random, leaves: tuple[BudgetId, ...], count: int, at: int, prefix: str = "w") -> list[Workload]:
    return [
        Workload(
            WorkloadId(f"{prefix}{n:06}"),
            draw.choice(leaves),
            draw.choice(SIZES),
            draw.choice(MIN_RUNTIMES),
            at + n,
            priority=draw.choice((0, 0, 0, 1)),
            resumable=True,
        )
        for n in range(count)
    ]


def submit(made: Engine, found: list[Workload], now: int) -> None:
    """Submits without a pass: the step comes before `pass_interval` is over."""
    made.state.last_pass_at = now
    made.step(now, [WorkloadSubmitted(w) for w in found])


def start_all(made: Engine, now: int) -> None:
    """Every dispatched run reports that it runs."""
    facts = [
        MemberStarted(run.id, host)
        for run in list(made.state.runs.values())
        if run.started_at is None
        for host in run.members
    ]
    made.state.last_pass_at = now
    made.step(now, facts)


def full(hosts: int = 1000, waiting: int = 10_000, inner: int = 20, leaves: int = 180) -> tuple[Engine, int]:
    """A cluster that filled up in two hours, every GPU held, half an hour later; and so many waiting."""
    draw = Random(1)
    made = engine(hosts, inner, leaves)
    now = T0
    for wave in range(60):
        submit(made, workloads(draw, leaf_ids(made), hosts * 8 // 150, now, f"run{wave:02}-"), now)
        made.step(now + 5_000)
        start_all(made, now + 6_000)
        now += 2 * MINUTE
    now += 30 * MINUTE
    submit(made, workloads(draw, leaf_ids(made), waiting, now), now)
    return made, now
