"""Commands that change something: the plan first, then a question or --yes, then the outcome, followed if asked."""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
import shlex
import signal
import sys
import time
from collections.abc import Callable, Sequence

from rich.text import Text

from opsconsole.cli.asking import look
from opsconsole.cli.prompting import INTERRUPTED, confirm
from opsconsole.cli.tables import output, print_table
from opsconsole.cli.wiring import view_of
from opsconsole.config.errors import ConfigError, Problem
from opsconsole.config.inventory import current_user
from opsconsole.config.ranges import expand
from opsconsole.config.scalars import suggestion
from opsconsole.config.units import parse_span_ms
from opsconsole.config.workloads import Complain, Site, build_workload, parse_need
from opsconsole.errors import OpsConsoleError, UsageError
from opsconsole.presenting.host_plans import plan_cordon, plan_declare, plan_drain, plan_undrain
from opsconsole.presenting.plans import Plan
from opsconsole.presenting.view import ClusterView
from opsconsole.presenting.workload_plans import plan_cancel, plan_hold, plan_release, plan_requeue
from opsconsole.runtime import Runtime
from scheduler_core.ids import HostName, WorkloadId
from scheduler_core.observations import By, Observation, WorkloadSubmitted
from scheduler_core.workload import Launch, Workload, WorkloadPhase

WAIT_S = 0.3
SIGNALS = [s.name for s in signal.Signals if s not in (signal.SIGKILL, signal.SIGSTOP)]


# -- hosts --------------------------------------------------------------------------------------------------------


def drain(args: argparse.Namespace) -> int:
    """Empties hosts by the contract, or as --mode says."""
    if (args.mode == "finish") != bool(args.deadline):
        raise UsageError("--mode finish and --deadline SPAN belong together: until when may runs go on to their end?")
    deadline = _span(args.deadline, "--deadline") if args.deadline else None
    return act(args, host_names(args.hosts), lambda v, names: plan_drain(v, names, args.mode, deadline), _drained)


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
    return act(args, args.ids, lambda v, ids: plan_requeue(v, ids, args.now), _left_runs)


def cancel(args: argparse.Namespace) -> int:
    return act(args, args.ids, plan_cancel, _ended)


def hold(args: argparse.Namespace) -> int:
    return act(args, args.ids, plan_hold)


def release(args: argparse.Namespace) -> int:
    return act(args, args.ids, plan_release)


def _left_runs(view: ClusterView, ids: Sequence[str]) -> str | None:
    records = [view.state.workloads.get(WorkloadId(w)) for w in ids]
    stopping = [r for r in records if r is not None and r.run and view.state.runs[r.run].stop is not None]
    pending = [r for r in records if r is not None and r.pending is not None]
    return None if stopping or pending else "requeued"


def _ended(view: ClusterView, ids: Sequence[str]) -> str | None:
    records = [view.state.workloads.get(WorkloadId(w)) for w in ids]
    return "ended" if all(r is None or r.phase is WorkloadPhase.ENDED for r in records) else None


def _settled(view: ClusterView, ids: Sequence[str]) -> str | None:
    """Nothing more comes of it by itself."""
    records = [view.state.workloads.get(WorkloadId(w)) for w in ids]
    over = (WorkloadPhase.ENDED, WorkloadPhase.HELD)
    return "over" if all(r is None or r.phase in over for r in records) else None


# -- one way to act -----------------------------------------------------------------------------------------------


def act(
    args: argparse.Namespace,
    targets: Sequence[str],
    make: Callable[[ClusterView, Sequence[str]], Plan],
    done: Callable[[ClusterView, Sequence[str]], str | None] | None = None,
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
    asyncio.run(_send(runtime, plan.observations(by)))
    if getattr(args, "wait", False) and done:
        ended = _wait_for(runtime, plan.targets, done)
    return report(args, plan, ended)


def show_plan(plan: Plan) -> None:
    console = output()
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


async def _send(runtime: Runtime, observations: Sequence[Observation]) -> None:
    for observation in observations:
        await runtime.ask(observation)


def _wait_for(
    runtime: Runtime, targets: Sequence[str], done: Callable[[ClusterView, Sequence[str]], str | None]
) -> str:
    """Follows the journal until the action has truly ended. Ctrl-C stops waiting, not the action."""
    print("waiting; Ctrl-C stops waiting, not what was asked for", file=sys.stderr)
    try:
        while (ended := done(view_of(runtime), targets)) is None:
            time.sleep(WAIT_S)
            runtime.follow()
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


# -- submit -------------------------------------------------------------------------------------------------------


def submit(args: argparse.Namespace) -> int:
    """Queues a workload; everything that is wrong with it is said at once."""
    runtime, view = look(args)
    workload = build(args, view)
    if args.dry_run:
        return _dry_submit(args, view, workload)
    asyncio.run(_send(runtime, [WorkloadSubmitted(workload)]))
    if args.wait:
        return _await_end(args, runtime, workload.id)
    print(json.dumps({"id": workload.id, "outcome": "queued"}) if args.json else workload.id)
    return 0


def _await_end(args: argparse.Namespace, runtime: Runtime, wid: WorkloadId) -> int:
    """Its end, or that it is held: then only a person lets it go on."""
    _wait_for(runtime, [wid], _settled)
    record = view_of(runtime).state.workloads.get(wid)
    held = record is not None and record.phase is WorkloadPhase.HELD
    outcome = "held" if held else record.outcome.value if record is not None and record.outcome else "unknown"
    print(json.dumps({"id": wid, "outcome": outcome}) if args.json else f"{wid} {outcome}")
    if held and record is not None:
        print(f"{record.reason}; see opsconsole logs {wid}, then release or cancel it", file=sys.stderr)
    return 0 if outcome == "succeeded" else 1


def build(args: argparse.Namespace, view: ClusterView) -> Workload:
    """The workload of a command line. Raises ConfigError with all of its problems."""
    problems: list[Problem] = []

    def complain(field: str, what: str, fix: str) -> None:
        problems.append(Problem("submit", 0, "--" + field.replace("_", "-"), what, fix))

    needs = _pairs(args.need, "need", complain, parse_need)
    env = _pairs(args.env, "env", complain, _parse_env)
    if args.unallocated and args.min_runtime not in (None, "0"):
        complain("unallocated", "excludes --min-runtime", "choose one")
    site = Site(view.state.budgets, view.state.policy, [r.host for r in view.state.hosts.values()])
    launch = Launch(
        tuple(args.argv), args.cwd, env, *_checkpoint(args.checkpoint, complain), stop_target=args.stop_target
    )
    wid = WorkloadId(_new_id(args.name))
    workload = build_workload(_fields(args), site, wid, view.state.now, complain, needs, launch)
    if problems or workload is None:
        raise ConfigError(problems)
    return workload


def _fields(args: argparse.Namespace) -> dict[str, str]:
    given = {
        "budget": args.budget,
        "gpus": args.gpus,
        "hosts": args.hosts,
        "gpus_per_host": args.gpus_per_host,
        "min_runtime": "0" if args.unallocated else args.min_runtime,
        "resumable": "true" if args.resumable else None,
        "on_preempt": args.on_preempt,
        "priority": args.priority,
        "name": args.name,
        "owner": args.owner or current_user(),
        "time_limit": args.time_limit,
        "max_retries": args.max_retries,
    }
    return {name: text for name, text in given.items() if text is not None}


def _new_id(name: str | None) -> str:
    stem = "".join(c for c in (name or "w").lower() if c.isalnum() or c in "-_")[:40] or "w"
    return f"{stem}-{secrets.token_hex(3)}"


def _pairs(
    texts: Sequence[str],
    field: str,
    complain: Complain,
    parse: Callable[[str], tuple[str, str]],
) -> tuple[tuple[str, str], ...]:
    found = []
    for text in texts:
        try:
            found.append(parse(text))
        except ValueError as error:
            what, _, fix = str(error).partition("; ")
            complain(field, what, fix)
    return tuple(found)


def _parse_env(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.replace("_", "a").isalnum() or name[0].isdigit():
        raise ValueError(f"{text!r} is no variable; write NAME=VALUE")
    return name, value


def _checkpoint(text: str | None, complain: Complain) -> tuple[str | None, tuple[str, ...]]:
    """A signal's name, or a command."""
    if text is None:
        return None, ()
    if text.startswith("SIG") and text.isalnum():
        if text not in SIGNALS:
            complain("checkpoint", f"{text!r} is no signal that a process can take", suggestion(text, SIGNALS))
        return text, ()
    try:
        return None, tuple(shlex.split(text))
    except ValueError:
        complain("checkpoint", f"the quotes of {text!r} do not close", "check them")
        return None, ()


def _dry_submit(args: argparse.Namespace, view: ClusterView, workload: Workload) -> int:
    """What one pass would make of it, by the code that will decide."""
    from scheduler_core.changes import enqueue
    from scheduler_core.report import plan_report
    from scheduler_core.state import WorkloadRecord

    enqueue(view.state, WorkloadRecord(workload, waiting_since=view.state.now))
    items = [i for i in plan_report(view.state).items if workload.id in (i.workload, i.for_workload)]
    if args.json:
        rows = [{"kind": i.kind, "workload": i.workload, "hosts": i.hosts, "reason": i.reason} for i in items]
        print(json.dumps({"id": workload.id, "outcome": "dry run", "decisions": rows}, indent=2))
    for item in items if not args.json else ():
        hosts = " ".join(f"{host}:{gpus}" for host, gpus in item.hosts.items())
        output().print(Text(f"{item.kind} {item.workload} {hosts}: {item.reason}"))
    return 0
