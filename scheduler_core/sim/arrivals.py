"""What people own and ask for, from one seed: trees, fleets, workloads."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from scheduler_core.budget import Budget
from scheduler_core.fleet import Host
from scheduler_core.ids import ROOT, BudgetId, HostName, WorkloadId
from scheduler_core.policy import Policy
from scheduler_core.units import HOUR, MINUTE, PPM, WEIGHT
from scheduler_core.workload import Launch, OnPreempt, Workload


def random_fleet(draw: Random) -> tuple[Host, ...]:
    """Two to six hosts, alike or not; some can be powered off from afar."""
    sizes = draw.choice(((8,), (8,), (4, 8), (2, 4)))
    fences = draw.random() < 0.3
    return tuple(
        Host(HostName(f"h{n}"), draw.choice(sizes), (("disk", draw.choice(("nvme", "hdd"))),), fences)
        for n in range(draw.randrange(2, 7))
    )


def random_policy(draw: Random) -> Policy:
    """Mostly the defaults, with a short window, and hosts that are lost soon."""
    return Policy(
        lookback_ms=12 * HOUR,
        lost_after_ms=2 * MINUTE,
        count_commitments=draw.random() < 0.8,
        pack=draw.choice(("aligned", "tight")),
        preemption_margin_ppm=draw.choice((0, PPM // 20, PPM // 20)),
        max_blast_ppm=draw.choice((PPM, 2 * PPM, 2 * PPM)),
        breaker_gpus=draw.choice((8, 64)),
        breaker_hosts=draw.choice((1, 2)),
    )


def random_tree(draw: Random) -> tuple[Budget, ...]:
    """Up to three levels, with weights 0 and caps among them."""
    found: list[Budget] = []

    def grow(parent: BudgetId, prefix: str, depth: int) -> None:
        for n in range(draw.randrange(1, 4)):
            bid = BudgetId(f"{prefix}{n}")
            weight = draw.choice((0, 1, 2, 5)) * WEIGHT
            cap = draw.choice((None, None, None, 8, 16))
            found.append(Budget(bid, f"b{bid}", parent, weight, cap, over_budget_priority=draw.choice((0, 0, 1))))
            if depth < 3 and draw.random() < 0.4:
                grow(bid, f"{bid}.", depth + 1)

    grow(ROOT, "", 1)
    return tuple(found)


def edited(draw: Random, tree: tuple[Budget, ...]) -> tuple[Budget, ...]:
    """Somebody edits a weight or a cap."""
    chosen = draw.choice(tree).id
    weight, cap = draw.choice((0, 1, 3)) * WEIGHT, draw.choice((None, None, 4, 16))
    return tuple(replace(b, weight=weight, max_gpus=cap) if b.id == chosen else b for b in tree)


def random_workload(
    draw: Random, number: int, now: int, leaves: tuple[BudgetId, ...], fleet: tuple[Host, ...]
) -> Workload:
    """Small and large, allocated and not, gangs with a shape and without."""
    largest = max(h.gpus for h in fleet)
    hosts = draw.choice((None, None, None, 2))
    per_host = draw.choice((1, 2, largest)) if hosts else None
    gpus = hosts * per_host if hosts and per_host else draw.choice((1, 1, 2, largest // 2, largest))
    return Workload(
        WorkloadId(f"w{number}"),
        draw.choice(leaves),
        gpus,
        draw.choice((0, MINUTE, 10 * MINUTE, HOUR)),
        now,
        owner=draw.choice("abc"),
        priority=draw.choice((0, 0, 1)),
        hosts=hosts,
        gpus_per_host=per_host,
        needs=draw.choice(((), (), (), (("disk", "nvme"),))),
        resumable=draw.random() < 0.7,
        on_preempt=draw.choice(list(OnPreempt)),
        time_limit_ms=draw.choice((None, None, 20 * MINUTE)),
        launch=Launch(checkpoint_signal=draw.choice((None, None, "USR1"))),
    )
