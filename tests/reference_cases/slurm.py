"""Cases of Slurm's fair-share factors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from scheduler_core.shares.slurm import (
    Association,
    classic_fairshare,
    effective_usage,
    fair_tree,
    level_fairshare,
)
from tests.reference_cases.answers import Answer, Case, exact


def _accounts(tree: Case, parent: str = "") -> Iterator[Association]:
    for name, row in tree.items():
        yield Association(name, parent, exact(row["shares"]))
        yield from (Association(u, name, exact(s), user=True) for u, s in row.get("users", {}).items())
        yield from _accounts(row.get("children", {}), name)


def slurm_classic_fairshare(case: Case) -> Answer:
    usage = case["usage"]
    everyone = [replace(a, usage=exact(usage.get(a.id, 0))) for a in _accounts(case["tree"]["root"])]
    got = {"effective_usage": effective_usage(everyone), "factor": classic_fairshare(everyone)}
    return Answer(case["expected"], got, exact(case["expected"]["tolerance"]))


def _association(row: Case) -> Association:
    shares = None if row["raw_shares"] == "parent" else exact(row["raw_shares"])
    return Association(row["id"], row["parent"], shares, exact(row["raw_usage"] or 0), row["user"])


def slurm_fair_tree(case: Case) -> Answer:
    everyone = [_association(row) for row in case["nodes"]]
    got = {"level_fs": level_fairshare(everyone), "fairshare": fair_tree(everyone)}
    return Answer(_with_free_orders(case["expected"]), got, exact(case["expected"]["tolerance"]))


def _with_free_orders(expected: Any) -> Any:
    """`a vs b/c`: they tie exactly, and each may have the rank of any of them."""
    ranks = dict(expected["fairshare"])
    for text in expected.get("skip_order_between", ()):
        tied = text.replace(" vs ", "/").split("/")
        ranks |= {user: {expected["fairshare"][other] for other in tied} for user in tied}
    return expected | {"fairshare": ranks}
