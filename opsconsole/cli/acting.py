"""Commands that change something: the plan first, then a question or --yes, then the outcome, followed if asked."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.text import Text

from opsconsole.cli.asking import look
from opsconsole.cli.prompting import INTERRUPTED, confirm
from opsconsole.cli.tables import output, print_table
from opsconsole.cli.wiring import view_of
from opsconsole.config.inventory import current_user
from opsconsole.config.ranges import expand
from opsconsole.errors import OpsConsoleError, UsageError
from opsconsole.presenting.drains import draining_words
from opsconsole.presenting.host_plans import plan_cordon, plan_declare, plan_drain, plan_undrain
from opsconsole.presenting.naming import find_workload
from opsconsole.presenting.plans import Plan
from opsconsole.presenting.view import ClusterView
from opsconsole.presenting.workload_plans import plan_cancel, plan_hold, plan_release, plan_requeue
from opsconsole.runtime import Runtime
from opsconsole.spans import parse_span_ms
from scheduler_core.ids import HostName, WorkloadId
from scheduler_core.observations import By, Observation
from scheduler_core.workload import WorkloadPhase

WAIT_S = 0.3
Make = Callable[[ClusterView, Sequence[str]], Plan]
Done = Callable[[ClusterView, Sequence[str]], str | None]  # how it ended; None: not yet
Meanwhile = Callable[[ClusterView, Sequence[str]], Sequence[str]]  # what it waits for


# -- hosts --------------------------------------------------------------------------------------------------------


def drain(args: argparse.Namespace) -> int:
    """Empties hosts by the contract, or as --mode says."""
    if (args.mode == "finish") != bool(args.deadline):
        raise UsageError("--mode finish and --deadline SPAN belong together: until when may runs go on to their end?")
    deadline = _span(args.deadline, "--deadline") if args.deadline else None
    hosts = host_names(args.hosts)
    return act(args, hosts, lambda v, names: plan_drain(v, names, args.mode, deadline), _drained, draining_words)


def undrain(args: argparse.Namespace) -> int:
    return act(args, host_names(args.hosts), plan_undrain)


def cordon(args: argparse.Namespace) -> int:
    return act(args, host_names(args.hosts), plan_cordon)


def declare(args: argparse.Namespace) -> int:
    return act(args, host_names(args.hosts), lambda v, names: plan_declare(v, names, args.what))


def host_names(patterns: Sequence[str]) -> list[str]:
    try:
        return list(dict.fromkeys(name for pattern in patterns for name in expand(pattern)))
    except ValueError as error:
        raise UsageError(str(error)) from error


def _span(text: str, option: str) -> int:
    try:
        return parse_span_ms(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from error


def _drained(view: ClusterView, names: Sequence[str]) -> str | None:
    """None while some host still has something to drain; else how it ended."""
    states = {name: view.state.hosts[HostName(name)] for name in names if name in view.state.hosts}
    going = [name for name, record in states.items() if record.state == "draining"]
    if going:
        return None
    return ", ".join(f"{name} {record.state.value}" for name, record in states.items())


# -- workloads ----------------------------------------------------------------------------------------------------


def requeue(args: argparse.Namespace) -> int:
    return act_on_workloads(args, lambda v, ids: plan_requeue(v, ids, args.now), _left_runs)


def cancel(args: argparse.Namespace) -> int:
    return act_on_workloads(args, plan_cancel, _ended)


def hold(args: argparse.Namespace) -> int:
    return act_on_workloads(args, plan_hold)


def release(args: argparse.Namespace) -> int:
    return act_on_workloads(args, plan_release)


def act_on_workloads(args: argparse.Namespace, make: Make, done: Done | None = None) -> int:
    """They are named by ids, or by names that one live workload has."""

    def named(view: ClusterView, words: Sequence[str]) -> Plan:
        return make(view, workload_ids(view, words))

    return act(args, args.ids, named, done)


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


def _left_runs(view: ClusterView, ids: Sequence[str]) -> str | None:
    records = [view.state.workloads.get(WorkloadId(w)) for w in ids]
    stopping = [r for r in records if r is not None and r.run and view.state.runs[r.run].stop is not None]
    pending = [r for r in records if r is not None and r.pending is not None]
    return None if stopping or pending else "requeued"


def _ended(view: ClusterView, ids: Sequence[str]) -> str | None:
    records = [view.state.workloads.get(WorkloadId(w)) for w in ids]
    return "ended" if all(r is None or r.phase is WorkloadPhase.ENDED for r in records) else None


# -- one way to act -----------------------------------------------------------------------------------------------


def act(
    args: argparse.Namespace,
    targets: Sequence[str],
    make: Make,
    done: Done | None = None,
    meanwhile: Meanwhile | None = None,
    ended: str = "requested",
) -> int:
    """Plan, ask, check again, send, and with --wait follow to the true end. `ended`: what it is once journalled."""
    runtime, view = look(args)
    plan = make(view, targets)
    if plan.done:
        return report(args, plan, plan.done)
    if plan.refused:
        raise UsageError("\n".join(plan.refused), advice="nothing was done")
    if not args.json:
        show_plan(plan)
    if args.dry_run:
        if args.json:
            show_plan_json(plan)
        return 0
    confirm(args, plan)
    runtime.follow()
    again = make(view_of(runtime), targets)
    if again.facts != plan.facts:
        raise OpsConsoleError("the cluster changed since the plan was shown; nothing was done", advice="run it again")
    by = By(current_user(), args.reason or "")
    asyncio.run(send(runtime, plan.observations(by)))
    if getattr(args, "wait", False) and done:
        ended = wait_for(runtime, plan.targets, done, meanwhile)
    return report(args, plan, ended)


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
    }
    print(json.dumps(found, indent=2))


async def send(runtime: Runtime, observations: Sequence[Observation]) -> None:
    for observation in observations:
        await runtime.ask(observation)


def wait_for(runtime: Runtime, targets: Sequence[str], done: Done, meanwhile: Meanwhile | None = None) -> str:
    """Follows the journal until the action has truly ended. Ctrl-C stops waiting, not the action."""
    print("waiting; Ctrl-C stops waiting, not what was asked for", file=sys.stderr)
    said: Sequence[str] = ()
    try:
        while (ended := done(view := view_of(runtime), targets)) is None:
            if meanwhile is not None and (words := meanwhile(view, targets)) != said:
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
