"""Cases of a quota scheduler's actions on a small cluster."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import permutations
from typing import Any, NamedTuple, get_args

from scheduler_core.shares.quota_actions import Action, Fate, QuotaActions
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


class Said(NamedTuple):
    """A fate, on which nodes: none where a case does not say."""

    fate: Fate
    nodes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join((self.fate, *(("on", *self.nodes) if self.nodes else ())))


def scheduler_action(case: Case) -> Answer:
    """What became of each job. Where jobs are alike, or nodes, any of them may have had the fate of another."""
    rows = {row["name"]: row for row in (*case["running"], *case["pending"])}
    jobs = {name: _job(row) for name, row in rows.items()}
    running = {row["name"]: _places(row["node"], jobs[row["name"]]) for row in case["running"]}
    nodes = {name: exact(gpus) for name, gpus in case["nodes"].items()}
    queues = [queue({"created": n, **row}) for n, row in enumerate(case["queues"])]
    if case["action"] not in get_args(Action):
        raise ValueError(f"no action {case['action']!r}: known are {', '.join(get_args(Action))}")
    got = QuotaActions(QuotaCluster(nodes, queues, jobs.values(), running)).run(case["action"])
    expected = {name: _expected(name, case["expected"], nodes, name in running) for name in jobs}
    alike = {name: (job.queue, job.total, job.tasks, job.priority, name in running) for name, job in jobs.items()}
    said = {name: Said(outcome.fate, tuple(sorted(set(outcome.places)))) for name, outcome in got.items()}
    if _symmetric(expected, said, alike, nodes):
        return Answer(said, said)
    return Answer(expected, {name: one if expected[name].nodes else Said(one.fate) for name, one in said.items()})


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


def _expected(name: str, expected: Mapping[str, str], nodes: Mapping[str, Any], ran: bool) -> Said:
    text = expected.get(name, expected.get(OTHERS, "running" if ran else "pending"))
    fate = next((fate for fate, words in FATES.items() if re.search(words, text)), None)
    if fate is None:
        raise ValueError(f"{name} is expected to be {text!r}: no such fate is known")
    if ran and fate in (Fate.PLACED, Fate.PLACED_AFTER_RELEASE):
        fate = Fate.MOVED
    return Said(fate, tuple(sorted({word for word in re.findall(r"[\w.-]+", text) if word in nodes})))


def _symmetric(
    expected: Mapping[str, Said], said: Mapping[str, Said], alike: Mapping[str, Any], nodes: Mapping[str, Any]
) -> bool:
    """Do those that are alike share the same fates, on the nodes that are named, under some renaming of equal nodes?"""
    groups = {(alike[job], one.fate) for fates in (expected, said) for job, one in fates.items()}

    def places(fates: Mapping[str, Said], group: Any, names: Mapping[str, str]) -> list[Any]:
        mine = [one.nodes for job, one in fates.items() if (alike[job], one.fate) == group]
        return [tuple(sorted(names[node] for node in at)) for at in mine]

    def agree(group: Any, names: Mapping[str, str]) -> bool:
        wanted, got = places(expected, group, {n: n for n in nodes}), places(said, group, names)
        return len(wanted) == len(got) and Counter(at for at in wanted if at) <= Counter(got)

    return any(all(agree(group, names) for group in groups) for names in _renamings(nodes))


def _renamings(nodes: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    for order in permutations(nodes):
        if all(nodes[a] == nodes[b] for a, b in zip(nodes, order, strict=True)):
            yield dict(zip(nodes, order, strict=True))
