"""Cases of the policy that ours follows: through an engine, its ledgers, its contract and its standings."""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from typing import Any

from scheduler_core.budget import Budget
from scheduler_core.contract import MinRuntimeRefused, min_runtime, remaining_ms
from scheduler_core.fairshare import Standings, depth_first
from scheduler_core.ids import ROOT, BudgetId
from scheduler_core.policy import Policy
from scheduler_core.shares.owed import delivered_over_owed_hourly, delivered_toward_owed, owed_hourly
from scheduler_core.units import SECOND
from tests.core.clusters import Cluster
from tests.reference_cases.answers import ROUNDED, Answer, Case, exact

LEAF = BudgetId("a")


def charge_and_protection(case: Case) -> Answer:
    """Each row is a run by itself: is it in the ledger of allocated work, and is it protected, after so long?"""
    policy = Policy(min_runtime_max_ms=case["limits"]["max_min_runtime_s"] * SECOND)
    return Answer(
        [{key: row[key] for key in row if key not in ("min_runtime_s", "ran_s")} for row in case["rows"]],
        [_row(row["min_runtime_s"] * SECOND, row["ran_s"] * SECOND, policy) for row in case["rows"]],
    )


def _row(declared: int, ran: int, policy: Policy) -> dict[str, bool]:
    c = Cluster(policy=policy)
    span = min_runtime(declared, LEAF, c.engine.state.budgets, policy)
    if isinstance(span, MinRuntimeRefused):
        return {"refused": True}
    c.running("w", LEAF, min_runtime=span)
    c.later(ran)
    state = c.engine.state
    ledger = state.ledgers.allocated.get(LEAF)
    return {
        "refused": False,
        "charged": ledger is not None and ledger.rate > 0,
        "protected": remaining_ms(state.runs[c.run("w")], c.now) != 0,
    }


def usage_over_budget_order(case: Case) -> Answer:
    """Budgets and usages are parts of the cluster; only how they relate counts."""
    budgets = {name: exact(row["budget"]) for name, row in case["allocations"].items()}
    usages = {name: exact(row["usage"]) for name, row in case["allocations"].items()}
    scale = lcm(*(budget.denominator for budget in budgets.values()))
    tree = tuple(Budget(BudgetId(name), name, ROOT, int(budget * scale)) for name, budget in budgets.items())
    c = Cluster(tree=tree)
    ledgers = c.engine.state.ledgers
    served = ledgers.in_service(c.now, c.policy.lookback_ms) / sum(budgets.values(), Fraction(0))
    for name, usage in usages.items():
        ledgers.seed((BudgetId(name),), round(usage * served))
    standings = Standings(c.engine.state)
    order = [budget for budget, _ in depth_first(standings)]
    ratios: dict[str, Any] = {budget: standings.balance(budget) for budget in order}
    return Answer(case["expected"], {"order": order, "ratio": ratios}, ROUNDED)


def owed_vs_delivered(case: Case) -> Answer:
    inputs = case["inputs"]
    demand = [exact(gpus) for gpus in inputs["demand_per_hour"]]
    delivered = [exact(gpus) for gpus in inputs["delivered_per_hour"]]
    owed = owed_hourly([exact(inputs["allocation_gpus"])] * len(demand), demand)
    return Answer(
        case["expected"],
        {
            "owed_gpu_hours": sum(owed),
            "delivered_toward_owed": delivered_toward_owed(owed, delivered),
            "ratio": delivered_over_owed_hourly(owed, delivered),
        },
        ROUNDED,
    )
