"""Every kind of case, by its name in the files."""

from __future__ import annotations

from collections.abc import Callable

from tests.reference_cases import actions, kai, ours, slurm, yarn
from tests.reference_cases.answers import Answer, Case

KINDS: dict[str, Callable[[Case], Answer]] = {
    "charge_and_protection": ours.charge_and_protection,
    "drf_allocation": yarn.drf_allocation_case,
    "drf_order": yarn.drf_order,
    "drf_order_of_grants": yarn.drf_order_of_grants,
    "drf_vs_asset_fairness": yarn.drf_vs_asset_fairness,
    "fair_share": kai.fair_share,
    "fair_share_tree": kai.fair_share_tree,
    "hierarchical_instantaneous_share_percent": yarn.hierarchical_instantaneous_share_percent,
    "hierarchical_steady_share_percent": yarn.hierarchical_steady_share_percent,
    "hierarchical_weighted_share": yarn.hierarchical_weighted_share,
    "min_runtime_eviction": kai.min_runtime_eviction,
    "min_runtime_preempt": kai.min_runtime_preempt,
    "min_runtime_reclaim": kai.min_runtime_reclaim,
    "over_quota_only": kai.over_quota_only,
    "owed_vs_delivered": ours.owed_vs_delivered,
    "reclaim_decision": kai.reclaim_decision,
    "reclaim_victim_filter": kai.reclaim_victim_filter,
    "scheduler_action": actions.scheduler_action,
    "slurm_classic_fairshare": slurm.slurm_classic_fairshare,
    "slurm_fair_tree": slurm.slurm_fair_tree,
    "usage_decay": kai.usage_decay,
    "usage_normalisation": kai.usage_normalisation,
    "usage_over_budget_order": ours.usage_over_budget_order,
    "weighted_drf_allocation": yarn.weighted_drf_allocation,
    "weighted_max_min_with_min_max": yarn.weighted_max_min_with_min_max,
}
