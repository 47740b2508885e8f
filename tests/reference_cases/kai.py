"""Cases of KAI: division of a resource, reclaim decisions, minimum runtimes, past use."""

from __future__ import annotations

from typing import Any

from scheduler_core.shares.history import decayed, normalised_usage
from scheduler_core.shares.minruntime import Branch, may_evict, preempt_min_runtime, reclaim_min_runtime
from scheduler_core.shares.quota import Division, Queue, divide, divide_over_quota, divide_tree
from scheduler_core.shares.reclaim import Holding, Reclaimer, Victim, is_candidate, may_reclaim
from tests.reference_cases.answers import ROUNDED, Answer, Case, exact


def limit(number: Any) -> Any:
    """-1 and a field that is left out mean no end."""
    return None if number is None or number == -1 else exact(number)


def queue(row: Case) -> Queue:
    return Queue(
        id=str(row["id"]),
        deserved=limit(row["deserved"]),
        over_quota_weight=exact(row["over_quota_weight"]),
        request=exact(row.get("request", 0)),
        limit=limit(row.get("limit")),
        priority=int(row.get("priority", 0)),
        usage=exact(row.get("usage", 0)),
        created=int(row.get("created", 0)),
        parent=row.get("parent", ""),
    )


def holding(row: Case) -> Holding:
    return Holding(
        id=str(row.get("id", "")),
        deserved=limit(row["deserved"]),
        fair_share=limit(row["fair_share"]),
        allocated=exact(row["allocated"]),
        allocated_non_preemptible=exact(row.get("allocated_non_preemptible", 0)),
        limit=limit(row.get("limit")),
        parent=row.get("parent", ""),
    )


def _division(case: Case, division: Division) -> Answer:
    return Answer(case["expected"], {"fair_share": division.shares, "remaining": division.remaining})


def fair_share(case: Case) -> Answer:
    return _division(case, divide(exact(case["total"]), map(queue, case["queues"]), exact(case["k"])))


def over_quota_only(case: Case) -> Answer:
    initial = {name: exact(share) for name, share in case["initial_fair_share"].items()}
    return _division(
        case, divide_over_quota(exact(case["total"]), map(queue, case["queues"]), initial, exact(case["k"]))
    )


def fair_share_tree(case: Case) -> Answer:
    shares = divide_tree(exact(case["total"]), map(queue, case["queues"]), exact(case["k"]))
    return Answer(case["expected"], {"fair_share": shares})


def reclaim_decision(case: Case) -> Answer:
    wanted = case["reclaimer"]
    allowed = may_reclaim(
        map(holding, case["queues"]),
        Reclaimer(wanted["queue"], exact(wanted["request"]), wanted["preemptible"]),
        [Victim(victim["queue"], exact(victim["gpus"])) for victim in case["victims"]],
        exact(case["saturation_multiplier"]),
    )
    return Answer(case["expected"], {"allowed": allowed})


def reclaim_victim_filter(case: Case) -> Answer:
    found = is_candidate(holding(case["reclaimer"]), holding(case["victim"]), exact(case["request"]))
    return Answer(case["expected"], {"candidate": found})


def _branches(case: Case) -> list[Branch]:
    return [Branch(q["id"], q["parent"], q.get("preempt"), q.get("reclaim")) for q in case["queues"]]


def min_runtime_preempt(case: Case) -> Answer:
    seconds = preempt_min_runtime(_branches(case), case["victim"], case["default_seconds"])
    return Answer(case["expected"], {"seconds": seconds})


def min_runtime_reclaim(case: Case) -> Answer:
    seconds = reclaim_min_runtime(
        _branches(case), case["pending"], case["victim"], case["default_seconds"], case["method"]
    )
    return Answer(case["expected"], {"seconds": seconds})


def min_runtime_eviction(case: Case) -> Answer:
    allowed = may_evict(
        case["ran_seconds"],
        case["min_runtime_seconds"],
        case["running_pods"],
        case["evict_pods"],
        case["min_available"],
    )
    return Answer(case["expected"], {"allowed": allowed})


def usage_normalisation(case: Case) -> Answer:
    inputs = {name: exact(value) for name, value in case["inputs"].items()}
    usage = normalised_usage(inputs["gpu_hours"], inputs["cluster_gpus"], inputs["window_hours"])
    return Answer(case["expected"], {"usage": usage}, ROUNDED)


def usage_decay(case: Case) -> Answer:
    inputs = {name: exact(value) for name, value in case["inputs"].items()}
    left = decayed(inputs["amount"], inputs["age_seconds"], inputs["half_life_seconds"])
    return Answer(case["expected"], {"decayed": left}, ROUNDED)
