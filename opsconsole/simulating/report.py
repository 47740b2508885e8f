"""Results as data for `--json`; for people: `telling`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import Any

from opsconsole.config.units import format_instant
from opsconsole.presenting.text import span
from opsconsole.simulating.job import EARLIEST_DATE_MS
from opsconsole.simulating.metrics import pooled
from opsconsole.simulating.oddities import Oddities
from opsconsole.simulating.rules import Rules
from opsconsole.simulating.runs import Result, Study

# What rests on which rule: the attribute in words, the keys of --json that would differ with another rule.
RESTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "min_runtime": (
        "min runtime",
        (
            "owed_gpu_h",
            "delivered_over_owed",
            "unallocated_share",
            "preemptions",
            "lost_gpu_h",
            "wait_s",
            "wait_s_by_class",
        ),
    ),
    "resumable": ("whether they are resumable", ("lost_gpu_h", "delivered_gpu_h")),
    "hosts": ("on how many hosts they run", ("wait_s",)),
}


@dataclass(frozen=True, slots=True)
class Report:
    """`notes` are sentences about the input, such as which day's weights count."""

    study: Study
    results: Sequence[Sequence[Result]]  # by policy, by seed
    notes: tuple[str, ...] = ()

    @property
    def drawn(self) -> bool:
        return any(result.drawn for results in self.results for result in results)


# -- data ---------------------------------------------------------------------------------------------------------


def as_json(report: Report) -> dict[str, Any]:
    """The keys of docs/simulate.md. Several policies stand in a list under `policies`."""
    study, first = report.study, report.results[0][0]
    log = study.log
    about = {
        "log": {
            "file": log.file,
            "format": log.format,
            "rows": log.rows,
            "oddities": merged(log.oddities, first.oddities).as_json(),
        },
        "cluster": {"hosts": len(study.hosts), "gpus": sum(host.gpus for host in study.hosts)},
        "period": {"from": instant(first.begin), "to": instant(max(r.end for rs in report.results for r in rs))},
        "notes": list(report.notes),
    }
    policies = [_policy_json(report, at) for at in range(len(report.results))]
    return {**about, **policies[0]} if len(policies) == 1 else {**about, "policies": policies}


def _policy_json(report: Report, at: int) -> dict[str, Any]:
    """With several seeds each figure is the median of them, with the least and the most beside them."""
    results, variant = report.results[at], report.study.variants[at]
    found: dict[str, Any] = {"policy": variant.name, "seeds": list(report.study.seeds)}
    found["hours"] = round((results[0].end - results[0].begin) / 3_600_000, 6)
    found["declared"] = declared(results[0], variant.rules, report.study.faults > 0)
    runs = [result.figures for result in results]
    if len(runs) == 1:
        return found | runs[0]
    return found | pooled(runs, median_low) | {"low": pooled(runs, min), "high": pooled(runs, max)}


def declared(result: Result, rules: Rules, hosts_fail: bool) -> list[dict[str, Any]]:
    """What the log did not say and rules did, and which figures rest on it."""
    found = [
        {"attribute": name, "workloads": number, "figures": list(RESTS[name][1])}
        for name, number in result.declared.items()
    ]
    delays = {"start_delay_s": rules.start_delay_ms, "stop_delay_s": rules.stop_delay_ms}
    delays["checkpoint_every_s"] = rules.checkpoint_every_ms
    if hosts_fail:
        delays["repair_s"] = rules.repair_ms
    for name, ms in delays.items():
        found.append({"attribute": name, "value": ms / 1000, "figures": ["wait_s", "lost_gpu_h"]})
    return found


def merged(*parts: Oddities) -> Oddities:
    """Of the log and of the stream that was made from it."""
    whole = Oddities()
    for part in parts:
        for kind, number, examples in ((name, n, found) for name, _, n, found in part):
            whole.counts[kind] = whole.counts.get(kind, 0) + number
            whole.examples.setdefault(kind, []).extend(examples)
    return whole


def instant(at_ms: int) -> str:
    """A date, or how long after its beginning a log without dates has it."""
    return format_instant(at_ms) if at_ms >= EARLIEST_DATE_MS else f"{span(at_ms)} of the log"
