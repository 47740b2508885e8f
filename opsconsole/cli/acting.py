"""The one way to change something: the plan first, then a question or --yes, then the outcome, followed if asked."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from opsconsole.cli.asking import look
from opsconsole.cli.presence import open_elsewhere, telling
from opsconsole.cli.prompting import INTERRUPTED, confirm
from opsconsole.cli.tables import output, print_table
from opsconsole.cli.wiring import view_of
from opsconsole.config.inventory import current_user
from opsconsole.config.ranges import expand
from opsconsole.errors import OpsConsoleError, UsageError
from opsconsole.presenting.following import followed, progress
from opsconsole.presenting.naming import find_workload
from opsconsole.presenting.plans import Plan
from opsconsole.presenting.presence import looking_words
from opsconsole.presenting.view import ClusterView, OpenPlan
from opsconsole.runtime import Runtime
from scheduler_core.ids import WorkloadId
from scheduler_core.observations import By, Observation
from scheduler_core.units import GPU_HOUR

WAIT_S = 0.3
Make = Callable[[ClusterView, Sequence[str]], Plan]
Done = Callable[[ClusterView], str | None]  # how it ended; None: not yet
Meanwhile = Callable[[ClusterView, Sequence[str]], Sequence[str]]  # what it waits for


def host_names(patterns: Sequence[str]) -> list[str]:
    """Raises UsageError for what is no pattern of names."""
    try:
        return list(dict.fromkeys(name for pattern in patterns for name in expand(pattern)))
    except ValueError as error:
        raise UsageError(str(error)) from error


def workload_ids(view: ClusterView, words: Sequence[str]) -> list[WorkloadId]:
    """Raises UsageError with all words that name nothing, or several."""
    found: list[WorkloadId] = []
    wrong: list[str] = []
    for word in words:
        try:
            found.append(find_workload(view.state, word))
        except ValueError as error:
            wrong.append(str(error))
    if wrong:
        raise UsageError("\n".join(wrong))
    return list(dict.fromkeys(found))


def by_of(args: argparse.Namespace) -> By:
    """Who asks, and why."""
    return By(current_user(), args.reason or "", args.ticket or "")


def act(
    args: argparse.Namespace,
    targets: Sequence[str],
    make: Make,
    meanwhile: Meanwhile | None = None,
    ended: str = "requested",
) -> int:
    """Plan, ask, check again, send, and with --wait follow to the true end. `ended`: what it is once journalled.

    Exit status 1 where it ended otherwise than asked for.
    """
    runtime, view = look(args)
    plan = make(view, targets)
    if plan.done:
        return report(args, plan, plan.done)
    if plan.refused or plan.missing:
        raise UsageError("\n".join((*plan.refused, *[plan.missing] * bool(plan.missing))), advice="nothing was done")
    if not args.json:
        show_plan(plan)
        for line in looking_words(replace(view, others=open_elsewhere(runtime.store)), plan.targets):
            print(line, file=sys.stderr)
    if args.dry_run:
        if args.json:
            show_plan_json(plan)
        return 0
    with telling(runtime.store, OpenPlan(current_user(), plan.action, plan.targets, view.wall_ms)):
        confirm(args, plan)
    runtime.follow()
    view = view_of(runtime)
    if make(view, targets).facts != plan.facts:
        raise OpsConsoleError("the cluster changed since the plan was shown; nothing was done", advice="run it again")
    asked = followed(view, plan.action, plan.targets)
    asyncio.run(send(runtime, plan.observations(by_of(args))))
    if not getattr(args, "wait", False):
        return report(args, plan, ended)
    said = None if meanwhile is None else lambda v: meanwhile(v, plan.targets)
    ended = wait_for(runtime, lambda v: now.outcome if (now := progress(v, asked)).ended else None, said)
    return report(args, plan, ended) or int(not progress(view_of(runtime), asked).well)


def show_plan(plan: Plan, console: Console | None = None) -> None:
    console = console or output()
    console.print(Text(plan.table.title, style="bold"))
    print_table(plan.table, console)
    for line in plan.effect:
        console.print(Text(line))


def show_plan_json(plan: Plan) -> None:
    found = {
        "action": plan.action,
        "targets": list(plan.targets),
        "rows": [row.data or [cell.text for cell in row.cells] for row in plan.table.rows],
        "effect": list(plan.effect),
        "guarantees_broken": plan.guarantees_broken,
        "lost_gpu_h": round(plan.lost_gpu_ms / GPU_HOUR, 3),
    }
    print(json.dumps(found, indent=2))


async def send(runtime: Runtime, observations: Sequence[Observation]) -> None:
    """Raises OpsConsoleError with every refusal, and how many were taken all the same."""
    problems = await runtime.ask_all(observations)
    if problems:
        taken = len(observations) - len(problems)
        part = f"; {taken} of {len(observations)} were taken" if taken else ""
        raise OpsConsoleError("; ".join(dict.fromkeys(map(str, problems))) + part)


def wait_for(runtime: Runtime, done: Done, meanwhile: Callable[[ClusterView], Sequence[str]] | None = None) -> str:
    """Follows the journal until the action has truly ended. Ctrl-C stops waiting, not the action."""
    print("waiting; Ctrl-C stops waiting, not what was asked for", file=sys.stderr)
    said: Sequence[str] = ()
    try:
        while (ended := done(view := view_of(runtime))) is None:
            if meanwhile is not None and (words := meanwhile(view)) != said:
                said = words
                print(*words, sep="\n", file=sys.stderr)
            time.sleep(WAIT_S)
            runtime.follow()
            runtime.read_readings()
    except KeyboardInterrupt:
        raise StoppedWaiting from None
    return ended


class StoppedWaiting(OpsConsoleError):
    """By Ctrl-C."""

    exit_code = INTERRUPTED

    def __init__(self) -> None:
        super().__init__("stopped waiting; what was asked for goes on")


def report(args: argparse.Namespace, plan: Plan, ended: str) -> int:
    if args.json:
        print(json.dumps({"action": plan.action, "targets": list(plan.targets), "outcome": ended}))
    else:
        print(f"{plan.action}: {', '.join(plan.targets)}: {ended}")
    return 0
