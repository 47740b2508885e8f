"""Cases of a quota scheduler's actions on a small cluster."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import permutations
from typing import Any

from scheduler_core.shares.quota_actions import Fate, Outcome, QuotaActions
from scheduler_core.shares.quota_cluster import Job, Places, QuotaCluster
from tests.reference_cases.answers import Answer, Case, exact
from tests.reference_cases.kai import queue

NON_PREEMPTIBLE = 100  # KAI: from this priority on
OTHERS = "all others"
FATES = {  # the words for each, the first that fits
    Fate.EVICTED: r"evicted|reclaimed|preempted",
    Fate.MOVED: r"moved|migrated|relocated|consolidated",
    Fate.PLACED_AFTER_RELEASE: r"placed after release|pipelined",
    Fate.PLACED: r"placed|bound|allocated",
    Fate.PENDING: r"pending|waiting",
    Fate.RUNNING: r"running|stays",
}


def scheduler_action(case: Case) -> Answer:
    """What became of each job. Where jobs are alike, or nodes, any of them may have had the fate of another."""
    rows = {row["name"]: row for row in (*case["running"], *case["pending"])}
    jobs = {name: _job(row) for name, row in rows.items()}
    running = {row["name"]: _places(row["node"], jobs[row["name"]]) for row in case["running"]}
    nodes = {name: exact(gpus) for name, gpus in case["nodes"].items()}
    queues = [queue({"created": n, **row}) for n, row in enumerate(case["queues"])]
    got = QuotaActions(QuotaCluster(nodes, queues, jobs.values(), running)).run(case["action"])
    expected = {name: _expected(name, case["expected"], nodes, name in running) for name in jobs}
    said = {name: _said(outcome, expected[name]) for name, outcome in got.items()}
    alike = {name: (job.queue, job.total, job.tasks, job.priority, name in running) for name, job in jobs.items()}
    return Answer(said if _symmetric(expected, said, alike, nodes) else expected, said)


def _job(row: Case) -> Job:
    priority = int(row.get("priority", 0))
    return Job(
        row["name"],
        row["queue"],
        exact(row["gpus"]),
        int(row.get("tasks", 1)),
        priority,
        bool(row.get("preemptible", priority < NON_PREEMPTIBLE)),
    )


def _places(node: Any, job: Job) -> Places:
    return tuple(node) if isinstance(node, list) else (node,) * job.tasks


def _expected(name: str, expected: Mapping[str, str], nodes: Mapping[str, Any], ran: bool) -> tuple[Fate, Places]:
    text = expected.get(name, expected.get(OTHERS, "running" if ran else "pending"))
    fate = next((fate for fate, words in FATES.items() if re.search(words, text)), None)
    if fate is None:
        raise ValueError(f"{name} is expected to be {text!r}: no such fate is known")
    if ran and fate in (Fate.PLACED, Fate.PLACED_AFTER_RELEASE):
        fate = Fate.MOVED
    return fate, tuple(word for word in re.findall(r"[\w.-]+", text) if word in nodes)


def _said(outcome: Outcome, expected: tuple[Fate, Places]) -> tuple[Fate, Places]:
    """With its nodes where the case names any."""
    return outcome.fate, outcome.places if expected[1] else ()


def _symmetric(
    expected: Mapping[str, tuple[Fate, Places]],
    said: Mapping[str, tuple[Fate, Places]],
    alike: Mapping[str, Any],
    nodes: Mapping[str, Any],
) -> bool:
    """Do they agree as bags, one for all jobs that are alike, under some renaming of equal nodes?"""

    def bags(fates: Mapping[str, tuple[Fate, Places]], names: Mapping[str, str]) -> Counter[Any]:
        return Counter(
            (alike[job], fate, tuple(sorted({names[place] for place in places})))
            for job, (fate, places) in fates.items()
        )

    plain = bags(expected, dict(zip(nodes, nodes, strict=True)))
    return any(bags(said, names) == plain for names in _renamings(nodes))


def _renamings(nodes: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    for order in permutations(nodes):
        if all(nodes[a] == nodes[b] for a, b in zip(nodes, order, strict=True)):
            yield dict(zip(nodes, order, strict=True))
