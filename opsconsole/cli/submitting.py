"""`opsconsole submit`: the words of a command line to a workload, its plan, its way into the queue."""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
import shlex
import signal
import sys
from collections.abc import Callable, Sequence

from rich.console import Console

from opsconsole.cli.acting import by_of, send, show_plan, wait_for
from opsconsole.cli.asking import look, require_inventory
from opsconsole.cli.prompting import confirm
from opsconsole.cli.wiring import view_of
from opsconsole.config.errors import ConfigError, Problem
from opsconsole.config.inventory import current_user
from opsconsole.config.scalars import suggestion
from opsconsole.config.workloads import Complain, Site, build_workload, parse_need
from opsconsole.presenting.submitting import plan_submit
from opsconsole.presenting.view import ClusterView
from opsconsole.runtime import Runtime
from scheduler_core.ids import WorkloadId
from scheduler_core.workload import Launch, Workload, WorkloadPhase

SIGNALS = [s.name for s in signal.Signals if s not in (signal.SIGKILL, signal.SIGSTOP)]


def submit(args: argparse.Namespace) -> int:
    """Everything that is wrong is said at once; then the plan, a question or --yes, and the id.

    The id alone stands on the standard output, for scripts; the plan is told beside it.
    """
    runtime, view = look(args)
    require_inventory(view)
    workload = build(args, view)
    plan = plan_submit(look(args)[1], workload)
    if not args.json:
        show_plan(plan, None if args.dry_run else Console(stderr=True))
    if args.dry_run:
        if args.json:
            rows = [row.data for row in plan.table.rows]
            print(json.dumps({"id": workload.id, "outcome": "dry run", "decisions": rows}, indent=2))
        return 0
    confirm(args, plan)
    asyncio.run(send(runtime, plan.observations(by_of(args))))
    if args.wait:
        return _await_end(args, runtime, workload.id)
    print(json.dumps({"id": workload.id, "outcome": "queued"}) if args.json else workload.id)
    return 0


def _await_end(args: argparse.Namespace, runtime: Runtime, wid: WorkloadId) -> int:
    """Its end, or that it is held: then only a person lets it go on."""
    wait_for(runtime, lambda view: _settled(view, wid))
    record = view_of(runtime).state.workloads.get(wid)
    held = record is not None and record.phase is WorkloadPhase.HELD
    outcome = "held" if held else record.outcome.value if record is not None and record.outcome else "unknown"
    print(json.dumps({"id": wid, "outcome": outcome}) if args.json else f"{wid} {outcome}")
    if held and record is not None:
        print(f"{record.reason}; see opsconsole logs {wid}, then release or cancel it", file=sys.stderr)
    return 0 if outcome == "succeeded" else 1


def _settled(view: ClusterView, wid: WorkloadId) -> str | None:
    """Nothing more comes of it by itself."""
    record = view.state.workloads.get(wid)
    return "over" if record is None or record.phase in (WorkloadPhase.ENDED, WorkloadPhase.HELD) else None


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
    if not args.argv[0]:
        problems.append(Problem("submit", 0, "CMD", "names no program", "write it behind --"))
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
    """Readable, and never like an option."""
    stem = "".join(c for c in (name or "").lower() if c.isalnum() or c in "-_").lstrip("-_")[:40]
    return f"{stem or 'w'}-{secrets.token_hex(3)}"


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
        words = tuple(shlex.split(text))
    except ValueError:
        complain("checkpoint", f"the quotes of {text!r} do not close", "check them")
        return None, ()
    if not words or not words[0]:
        complain("checkpoint", "names no program", "write a command or a signal, or leave it out")
    return None, words
