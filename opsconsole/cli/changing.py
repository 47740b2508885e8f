"""Commands that change hosts, workloads and budgets: each is a plan, carried out in the one way (module acting)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from opsconsole.cli.acting import Make, act, host_names, workload_ids
from opsconsole.cli.usage import lasting_ms
from opsconsole.errors import UsageError
from opsconsole.presenting.budget_plans import plan_forget, plan_weight
from opsconsole.presenting.drain_plans import plan_drain
from opsconsole.presenting.drains import draining_words
from opsconsole.presenting.host_plans import plan_cordon, plan_declare, plan_undrain
from opsconsole.presenting.plans import Plan
from opsconsole.presenting.view import ClusterView
from opsconsole.presenting.workload_plans import (
    plan_cancel,
    plan_hold,
    plan_move,
    plan_priority,
    plan_release,
    plan_requeue,
)


def _for_ms(args: argparse.Namespace) -> int | None:
    return None if args.span is None else lasting_ms("--for", args.span)


# -- hosts --------------------------------------------------------------------------------------------------------


def drain(args: argparse.Namespace) -> int:
    """Empties hosts by the contract, or as --mode says."""
    if (args.mode == "finish") != bool(args.deadline):
        raise UsageError("--mode finish and --deadline SPAN belong together: until when may runs go on to their end?")
    deadline = None if args.deadline is None else lasting_ms("--deadline", args.deadline)
    return act(args, host_names(args.hosts), lambda v, h: plan_drain(v, h, args.mode, deadline), draining_words)


def undrain(args: argparse.Namespace) -> int:
    return act(args, host_names(args.hosts), plan_undrain)


def cordon(args: argparse.Namespace) -> int:
    for_ms = _for_ms(args)
    return act(args, host_names(args.hosts), lambda v, hosts: plan_cordon(v, hosts, for_ms))


def declare(args: argparse.Namespace) -> int:
    return act(args, host_names(args.hosts), lambda v, names: plan_declare(v, names, args.what))


# -- workloads ----------------------------------------------------------------------------------------------------


def requeue(args: argparse.Namespace) -> int:
    return _workloads(args, lambda v, ids: plan_requeue(v, ids, args.now))


def cancel(args: argparse.Namespace) -> int:
    return _workloads(args, plan_cancel)


def hold(args: argparse.Namespace) -> int:
    for_ms = _for_ms(args)
    return _workloads(args, lambda v, ids: plan_hold(v, ids, for_ms))


def release(args: argparse.Namespace) -> int:
    return _workloads(args, plan_release)


def move(args: argparse.Namespace) -> int:
    return _workloads(args, lambda v, ids: plan_move(v, ids, args.to))


def priority(args: argparse.Namespace) -> int:
    return _workloads(args, lambda v, ids: plan_priority(v, ids, args.to))


def _workloads(args: argparse.Namespace, make: Make) -> int:
    """They are named by ids, or by names that one live workload has."""

    def named(view: ClusterView, words: Sequence[str]) -> Plan:
        return make(view, workload_ids(view, words))

    return act(args, args.ids, named)


# -- budgets ------------------------------------------------------------------------------------------------------


def weight(args: argparse.Namespace) -> int:
    return act(args, [args.budget], lambda v, paths: plan_weight(v, paths, args.to))


def forget(args: argparse.Namespace) -> int:
    return act(args, list(dict.fromkeys(args.budgets)), plan_forget)
