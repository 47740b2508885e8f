"""`opsconsole simulate`: what a policy would have made of a log, on the engine that decides live."""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import resource
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from opsconsole.cli.progress import bar
from opsconsole.cli.tables import Output, output, print_table
from opsconsole.cli.usage import whole
from opsconsole.config.errors import ConfigError, Problem
from opsconsole.config.folders import write_whole
from opsconsole.config.scalars import shown
from opsconsole.errors import OpsConsoleError, UsageError
from opsconsole.presenting.text import count
from opsconsole.simulating import report as reporting
from opsconsole.simulating import telling
from opsconsole.simulating.job import Log
from opsconsole.simulating.oddities import Odd, Oddities
from opsconsole.simulating.pictures import can_draw, draw_waits
from opsconsole.simulating.readers import read_log
from opsconsole.simulating.readers.finding import parse_map
from opsconsole.simulating.readers.values import instant
from opsconsole.simulating.runs import Study, replay_all
from opsconsole.simulating.setup import Variant, parse_cluster, read_budget_file, read_variant
from opsconsole.simulating.workloads import make_stream
from opsconsole.spans import parse_span_ms

MOST_TIMES, MOST_SEEDS, MOST_FAULTS = 1000.0, 1000, 100.0
CANCELLED = 130
REPORT_WIDTH = 160


def run(args: argparse.Namespace) -> int:
    """Exit status 2 for what is wrong with the input, 130 where Ctrl-C ended it: then there is no report."""
    try:
        with bar("replaying") as progress:
            report = _replayed(args, progress)
    except KeyboardInterrupt:
        print("opsconsole: cancelled; no report was written", file=sys.stderr)
        return CANCELLED
    data = reporting.as_json(report)
    if args.json:
        print(json.dumps(data, indent=2))
    else:
        _print(output(), report, data)
    _account(args, report, data)
    return 0


def _replayed(args: argparse.Namespace, progress: Callable[[float], None]) -> reporting.Report:
    times = _number("--scale-demand", args.scale_demand, 0.001, MOST_TIMES)
    faults = _number("--faults", args.faults, 0, MOST_FAULTS)
    seeds, workers = whole("--seeds", args.seeds, MOST_SEEDS), whole("--workers", args.workers, 4096)
    hosts = parse_cluster(args.cluster)
    columns, given = parse_map(args.map or ()), [read_variant(args.policy)] if args.policy else []
    others = [read_variant(path) for path in args.compare or ()]
    log = read_log(args.log, columns)
    own = Variant("default") if log.policy is None else Variant("journal", log.policy)
    variants = [replace(variant, tree=variant.tree or log.tree) for variant in (*(given or [own]), *others)]
    if not log.jobs:
        raise ConfigError(_problems(log.file, log.oddities) or [Problem(log.file, 0, "", "holds no workload")])
    notes: list[str] = []
    if args.budgets:
        tree, note = read_budget_file(args.budgets, log)
        notes += [note] if note else []
        variants = [replace(variant, tree=tree) for variant in variants]
    period = _period(log, args.since, args.until)
    firsts = tuple(variants[0].rules.seed + n for n in range(seeds))
    study = Study(log, hosts, tuple(variants), firsts, times, period, faults, _folders(args.out, variants))
    if args.strict:
        _refuse_faults(study)
    results = replay_all(study, workers or os.cpu_count() or 1, progress)
    for result in (results[at][0] for at in range(len(variants))):
        if not result.figures["workloads"]:  # all of them too large, most often
            raise ConfigError(_problems(log.file, reporting.merged(log.oddities, result.oddities)))
    return reporting.Report(study, results, tuple(notes))


# -- options ------------------------------------------------------------------------------------------------------


def _number(option: str, text: str, least: float, most: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not least <= value <= most:
        raise UsageError(f"{option}: {shown(text)} is no number from {least:g} to {most:g}", advice="such as 2.5")
    return value


def _period(log: Log, since: str | None, until: str | None) -> tuple[int, int | None]:
    """An instant, a day, or how long after the log's first submission."""
    first = log.jobs[0].submitted_at
    begin = first if since is None else _instant("--from", since, first)
    end = None if until is None else _instant("--to", until, first)
    if end is not None and end <= begin:
        raise UsageError(
            f"--to: {until} is not after the beginning", advice="the log begins " + reporting.instant(first)
        )
    if not any(begin <= job.submitted_at and (end is None or job.submitted_at < end) for job in log.jobs):
        last = reporting.instant(log.jobs[-1].submitted_at)
        raise UsageError(
            "nothing was submitted from --from to --to",
            advice=f"the log's submissions go from {reporting.instant(first)} to {last}",
        )
    return begin, end


def _instant(option: str, text: str, first: int) -> int:
    try:
        return first + parse_span_ms(text)
    except ValueError:
        pass
    try:
        if not re.match(r"\d{4}-\d{2}-\d{2}", text):
            raise Odd("bad_time")
        return instant(text).at_ms
    except Odd:
        what = f"{option}: {shown(text)} is neither an instant nor a span after the log's first submission"
        raise UsageError(what, advice="write for example 2020-09-01, 2020-09-01T12:00Z or 3d") from None


def _folders(out: str | None, variants: Sequence[Variant]) -> tuple[Path, ...]:
    """One for each policy, called as its file; a number tells those of one name apart."""
    if out is None:
        return ()
    stems = [Path(variant.name).stem or "policy" for variant in variants]
    names = [stem if stems.count(stem) == 1 else f"{stem}-{at}" for at, stem in enumerate(stems, start=1)]
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out: {out}: {error.strerror}", advice="name a folder that can be written") from None
    return tuple(Path(out) / name for name in names)


# -- what is wrong with the log -----------------------------------------------------------------------------------


def _refuse_faults(study: Study) -> None:
    """`--strict`. Raises ConfigError where anything is wrong with the log."""
    problems: dict[Problem, None] = {}
    for variant in study.variants:
        made = make_stream(study.log, study.hosts, variant, study.seeds[0], 1.0, study.period)
        problems |= dict.fromkeys(_problems(study.log.file, reporting.merged(study.log.oddities, made.oddities)))
    if problems:
        raise ConfigError(list(problems))


def _problems(file: str, oddities: Oddities) -> list[Problem]:
    """The first examples of each fault."""
    return [
        Problem(file, example.line, "", f"{kind.words}: {example.detail}", f"{count(number, 'row')} so in all")
        for _, kind, number, examples in oddities
        if kind.is_fault
        for example in examples
    ]


# -- what is told -------------------------------------------------------------------------------------------------


def _print(console: Console, report: reporting.Report, data: dict[str, Any]) -> None:
    for sentence in telling.sentences(report, data):
        console.print(Text(sentence))
    policies = data.get("policies", [data])
    views = [telling.figures_table(policies), *map(telling.budgets_table, policies)]
    views += [telling.differences_table(policies[0], other) for other in policies[1:]]
    for view in views:
        console.print()
        console.print(Text(view.title, style="bold"))
        print_table(view, console)


def _account(args: argparse.Namespace, report: reporting.Report, data: dict[str, Any]) -> None:
    """What it cost, on the standard error and under --out, where the report is written too: only its cost differs from
    run to run. Raises OpsConsoleError."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cost = {
        "cpu_s": round(sum(u.ru_utime + u.ru_stime for u in used), 2),
        "peak_mb": round(max(u.ru_maxrss for u in used) / 1024, 1),  # of the largest process
    }
    print(f"cpu_s {cost['cpu_s']} peak_mb {cost['peak_mb']}", file=sys.stderr)
    if args.out is None:
        return
    file = io.StringIO()
    _print(Output(file=file, width=REPORT_WIDTH), report, data)
    files = {"report.json": json.dumps(data, indent=2) + "\n", "report.txt": file.getvalue()}
    try:
        for name, content in {**files, "run.json": json.dumps(cost) + "\n"}.items():
            write_whole(Path(args.out) / name, content)
        if can_draw():
            names = [folder.name for folder in report.study.folders]
            draw_waits(Path(args.out), {n: r[0].waits for n, r in zip(names, report.results, strict=True)})
        else:
            print("no pictures: matplotlib is missing; pip install 'opsconsole[pictures]'", file=sys.stderr)
    except OSError as error:
        raise OpsConsoleError(
            f"--out: {args.out}: {error.strerror}", advice="free some space, or name another"
        ) from None
