"""Asking the person at the terminal. Whatever ends a question without its answer, nothing has been done."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys

from opsconsole.errors import OpsConsoleError, UsageError
from opsconsole.presenting.plans import Plan

INTERRUPTED = 128 + signal.SIGINT


class NotConfirmed(OpsConsoleError):
    """The answer was no, or there was none."""

    def __init__(self, exit_code: int = 1) -> None:
        super().__init__("not confirmed; nothing was done")
        self.exit_code = exit_code


def ask(prompt: str) -> str:
    """A line from the terminal. Raises NotConfirmed on Ctrl-D, and on Ctrl-C with its exit status."""
    try:
        print(prompt, end="", file=sys.stderr, flush=True)
        return _answer(sys.stdin.readline())
    except KeyboardInterrupt:
        print(file=sys.stderr)
        raise NotConfirmed(INTERRUPTED) from None


async def ask_meanwhile(prompt: str) -> str:
    """As `ask`, while everything else goes on. A thread that waits for a line would outlive Ctrl-C."""
    loop, line = asyncio.get_running_loop(), asyncio.Event()
    print(prompt, end="", file=sys.stderr, flush=True)
    loop.add_reader(sys.stdin, line.set)
    try:
        await line.wait()
    except asyncio.CancelledError:
        print(file=sys.stderr)
        raise NotConfirmed(INTERRUPTED) from None
    finally:
        loop.remove_reader(sys.stdin)
    return _answer(sys.stdin.readline())


def _answer(line: str) -> str:
    """Without its end. Nothing at all was Ctrl-D."""
    if not line:
        print(file=sys.stderr)
        raise NotConfirmed
    return line.strip()


def need_answer(args: argparse.Namespace) -> bool:
    """False where --yes has been said. Raises UsageError where nobody can be asked."""
    if args.yes:
        return False
    if not sys.stdin.isatty():
        raise UsageError("not confirmed; nothing was done", advice="say --yes where nobody can be asked")
    return True


def confirm(args: argparse.Namespace, plan: Plan) -> None:
    """Asks on the terminal, unless --yes was said. Raises NotConfirmed."""
    if need_answer(args) and ask(question(plan)) != wanted(plan):
        raise NotConfirmed


async def confirm_meanwhile(args: argparse.Namespace, plan: Plan) -> None:
    if need_answer(args) and await ask_meanwhile(question(plan)) != wanted(plan):
        raise NotConfirmed


def wanted(plan: Plan) -> str:
    """What to type: for more than one target its count, else yes."""
    return str(len(plan.targets)) if len(plan.targets) > 1 else "yes"


def question(plan: Plan) -> str:
    named = ", ".join(plan.targets[:5]) + (" …" if len(plan.targets) > 5 else "")
    return f"Type {wanted(plan)} to {plan.action} {named}: "
