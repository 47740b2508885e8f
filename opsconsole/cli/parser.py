"""The command line: what can be typed. Each command names the function that runs it, imported only when it is."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from typing import Any

from opsconsole.cli import simulate_options, whatif_options
from opsconsole.cli.usage import Parser
from opsconsole.settings import ABOUT, About, Settings

SUBMIT_EPILOG = """\
example:
  opsconsole submit --budget olmo/eval --gpus 2 --min-runtime 30m --resumable -- python train.py --resume
"""

HEALTH_EPILOG = """\
words in place of a host:
  rules           what each error and reading means, by whose word
  lemons          cards and slots that broke again and again
  test FILE       what follows from a kernel's log, or from readings
  parse-smi FILE  any output of nvidia-smi as readings in JSON
"""


def build_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="opsconsole",
        description="Budgets, min-runtime contracts and drains for GPU clusters. Without a command: the console.",
    )
    parser.add_argument("--version", action=Version, nargs=0, help="show the version and exit")
    _cluster_options(parser)
    parser.add_argument("--lead", action="store_true", help="lead the cluster from this console, once confirmed")
    parser.add_argument("--write", metavar="SPAN", help="open a write window at start, for example 15m")
    _console_options(parser)
    parser.set_defaults(run="console:run")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    for add in (_leading, _asking, _acting_on_workloads, _acting_on_hosts, _acting_on_budgets, _offline):
        add(commands)
    return parser


def runner(args: argparse.Namespace) -> Callable[[argparse.Namespace], int]:
    """The function behind the chosen command: takes the arguments, returns the exit status."""
    module, _, name = args.run.partition(":")
    function: Callable[[argparse.Namespace], int] = getattr(import_module(f"opsconsole.cli.{module}"), name)
    return function


class Version(argparse.Action):
    """Looks the version up only where somebody asks for it: that takes as long as a tenth of a first frame."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"opsconsole {version('opsconsole')}")
        parser.exit()


def _cluster_options(parser: argparse.ArgumentParser, default: Any = None) -> None:
    parser.add_argument(
        "--inventory", metavar="FILE", default=default, help="default: $OPSCONSOLE_INVENTORY, ./inventory.yaml"
    )
    parser.add_argument("--cluster", metavar="NAME", default=default, help="needed where the inventory has several")


def _console_options(parser: argparse.ArgumentParser, default: Any = None) -> None:
    """Settings of the console; where else they may stand: docs/config.md."""
    group = parser.add_argument_group("the console")
    for name, about in ABOUT.items():
        flag = "--" + name.replace("_", "-")
        if isinstance(getattr(Settings(), name), bool):
            group.add_argument(flag, action=argparse.BooleanOptionalAction, default=default, help=about.help)
        else:
            metavar = about.metavar or name.upper()
            choices = about.choices or None
            group.add_argument(flag, choices=choices, metavar=metavar, default=default, help=_with_choices(about))


def _with_choices(about: About) -> str:
    return f"{about.help} ({', '.join(about.choices)})" if about.choices else about.help


def _command(commands: Any, name: str, run: str, help: str, **more: Any) -> argparse.ArgumentParser:
    """A command that works on a cluster. Its options may stand before or after the command's name."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=help, description=help, **more)
    _cluster_options(parser, default=argparse.SUPPRESS)
    parser.set_defaults(run=run)
    return parser


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="for scripts: stable keys, documented in docs/cli.md")


def _reason(text: str) -> str:
    """One that says nothing would be kept as if somebody had given one."""
    if not text.strip():
        raise argparse.ArgumentTypeError("say why; it is kept with the action")
    return text.strip()


def _action(parser: argparse.ArgumentParser, reason: bool = False, wait: bool = True) -> None:
    """What every action takes: the plan is shown first, then asked for, or taken with --yes."""
    parser.add_argument("--reason", type=_reason, required=reason, help="why; kept with the action")
    parser.add_argument("--ticket", help="where more is written about it; kept with the action")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="show the plan and change nothing")
    if wait:
        parser.add_argument("--wait", action="store_true", help="wait for the end of what was asked for")
    _json(parser)


def _leading(commands: Any) -> None:
    serve = _command(commands, "serve", "serve:run", "lead the cluster without a screen")
    serve.add_argument("--reason", default="serve", help="kept with the change of leader")
    serve.add_argument("--standby", action="store_true", help="lead as soon as nobody else does")
    serve.add_argument("--quiet", action="store_true", help="tell alarms alone, not what happens")
    serve.add_argument("--yes", action="store_true", help="do not ask before the first action")
    serve.add_argument("--dry-run", action="store_true", help="reconcile, show what would happen, change nothing")
    reload = _command(commands, "reload", "reloading:run", "show what a changed inventory changes, and apply it")
    _action(reload, wait=False)
    breaker = _command(commands, "breaker", "cluster:breaker", "what the breaker stopped; reset lets it go on")
    breaker.add_argument("what", nargs="?", choices=("reset",), help="default: show it")
    _action(breaker, wait=False)
    adopt = _command(commands, "adopt", "adopting:run", "take hosts over from another store, listing their live runs")
    adopt.add_argument("hosts", nargs="*", metavar="HOST", help="default: every host of another store")
    _action(adopt, reason=True, wait=False)
    web = _command(commands, "web", "web:run", "the console in a browser on this machine, to look")
    web.add_argument("--write", action="store_true", help="print a token with which one page may change things, once")
    web.add_argument("--port", type=int, default=8000, help="default: 8000; 0 takes a free one")
    web.add_argument("--address", default="127.0.0.1", help="default: 127.0.0.1")
    web.add_argument("--i-have-a-proxy", action="store_true", help="that encrypts and asks who comes: any address goes")
    web.add_argument("--public-url", metavar="URL", help="where browsers find it, behind a proxy")
    demo = _command(commands, "demo", "demo:run", "a small living cluster on loopback, and the console on it")
    demo.add_argument("--hosts", type=int, default=8, choices=range(2, 9), metavar="2..8")
    demo.add_argument("--seed", type=int, default=1)
    demo.add_argument(
        "--script", choices=("drain", "fault"), help="tell a story without a terminal; exit 0 if every promise held"
    )
    _console_options(demo, default=argparse.SUPPRESS)
    _json(demo)


def _asking(commands: Any) -> None:
    for name, what in (
        ("queue", "waiting workloads in order, each with its reason"),
        ("hosts", "hosts: freshness, health, runs, state"),
        ("budgets", "the budget tree: owed, got, balance, rank"),
        ("runs", "runs that hold GPUs, and with --all the finished ones"),
    ):
        parser = _command(commands, name, f"asking:{name}", what)
        _json(parser)
        parser.add_argument(
            "--filter", metavar="WORDS", default="", help="words and key=value, as behind / in the console: docs/cli.md"
        )
        if name == "runs":
            parser.add_argument("--all", action="store_true", help="finished ones too")
    explain = _command(commands, "explain", "asking:explain", "why it waits, stops or stands as it does")
    explain.add_argument("id", metavar="ID", help="workload, run, budget path or host")
    _json(explain)
    logs = _command(commands, "logs", "logs:run", "the output of a run")
    logs.add_argument("id", metavar="RUN", help="a run, or a workload: its newest")
    logs.add_argument("-f", "--follow", action="store_true")
    logs.add_argument("--host", metavar="HOST", help="of a gang: which member (default: the first)")
    logs.add_argument("--tail", type=int, metavar="BYTES", help="only the last BYTES")
    events = _command(commands, "events", "asking:events", "what happened: hardware, scheduler, people")
    events.add_argument("-f", "--follow", action="store_true")
    events.add_argument("--since", metavar="SPAN", default="24h")
    _json(events)
    handover = _command(commands, "handover", "handover:run", "what happened, what is open and whose it is")
    handover.add_argument("--since", metavar="SPAN", default="12h", help="how far back (default: 12h)")
    _json(handover)
    _command(commands, "snapshot", "asking:snapshot", "the live state as a file for `opsconsole plan`")


def _acting_on_workloads(commands: Any) -> None:
    submit = _command(
        commands,
        "submit",
        "submitting:submit",
        "queue a workload",
        epilog=SUBMIT_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    submit.add_argument("--budget", required=True, metavar="PATH", help="a leaf, for example olmo/eval")
    submit.add_argument("--gpus", required=True, metavar="N", help="whole GPUs over all hosts")
    submit.add_argument("--hosts", metavar="H", help="of a gang: how many hosts")
    submit.add_argument("--gpus-per-host", metavar="G")
    submit.add_argument("--min-runtime", metavar="SPAN", help="protected for so long; default: the budget's")
    submit.add_argument("--unallocated", action="store_true", help="min runtime 0: free of charge, never protected")
    submit.add_argument("--resumable", action="store_true", help="requeued when preempted")
    submit.add_argument("--on-preempt", choices=("end", "restart"), default="end", help="for what is not resumable")
    submit.add_argument("--priority", default="0", help="among the workloads of the same budget")
    submit.add_argument("--name")
    submit.add_argument("--owner", help="default: you")
    submit.add_argument("--need", action="append", default=[], metavar="LABEL=VALUE", help="only hosts with this label")
    submit.add_argument("--time-limit", metavar="SPAN")
    submit.add_argument("--max-retries", metavar="N")
    submit.add_argument(
        "--checkpoint", metavar="CMD", help="a command, or a signal such as SIGUSR1, sent before a stop"
    )
    submit.add_argument(
        "--stop-target", choices=("main", "group", "tree"), default="tree", help="who gets SIGTERM; SIGKILL gets all"
    )
    submit.add_argument("--cwd", help="working directory on the host")
    submit.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")
    submit.add_argument("argv", nargs="+", metavar="CMD", help="behind `--`")
    _action(submit)
    for name, what in (
        ("requeue", "stop a run at the end of its min runtime and put it back in the queue"),
        ("cancel", "end a workload for good"),
        ("hold", "keep waiting workloads from starting"),
        ("release", "let held workloads wait again"),
        ("move", "to another budget; what they have used stays where it was charged"),
        ("priority", "of workloads within their budget: higher goes first"),
    ):
        parser = _command(commands, name, f"changing:{name}", what)
        parser.add_argument("ids", nargs="+", metavar="WORKLOAD", help="its id, or its name where no other has it")
        if name == "requeue":
            parser.add_argument("--now", action="store_true", help="at once, even if that breaks the guarantee")
        if name == "hold":
            _for(parser, "then they wait again by themselves")
        if name == "move":
            parser.add_argument("--to", required=True, metavar="PATH", help="a leaf, for example olmo/eval")
        if name == "priority":
            parser.add_argument("--to", required=True, metavar="N", help="among the workloads of the same budget")
        _action(parser)


def _acting_on_hosts(commands: Any) -> None:
    drain = _command(commands, "drain", "changing:drain", "empty hosts by the contract")
    drain.add_argument("hosts", nargs="+", metavar="HOST", help="names or ranges, gpu[01-04]")
    drain.add_argument(
        "--mode",
        choices=("contract", "finish", "now"),
        default="contract",
        help="when runs stop: past their min runtime; at their own end until --deadline; or at once, which says whose "
        "guarantee breaks",
    )
    drain.add_argument(
        "--deadline", metavar="SPAN", help="with --mode finish: 2h; then the drain goes on by the contract"
    )
    _action(drain, reason=True)
    for name, what in (
        ("undrain", "back to serving: lifts a drain, a cordon or a suspicion"),
        ("cordon", "nothing new starts on the hosts; their runs go on"),
    ):
        parser = _command(commands, name, f"changing:{name}", what)
        parser.add_argument("hosts", nargs="+", metavar="HOST", help="names or ranges, gpu[01-04]")
        if name == "cordon":
            _for(parser, "then they serve again by themselves")
        _action(parser, reason=name == "cordon", wait=False)
    declare = _command(commands, "declare", "changing:declare", "your word that a host is empty, or that it is dead")
    declare.add_argument("what", choices=("empty", "dead"))
    declare.add_argument("hosts", nargs="+", metavar="HOST")
    _action(declare, reason=True, wait=False)


def _for(parser: argparse.ArgumentParser, then: str) -> None:
    parser.add_argument("--for", dest="span", metavar="SPAN", help=f"for so long, 2h; {then}")


def _acting_on_budgets(commands: Any) -> None:
    weight = _command(commands, "weight", "changing:weight", "of a budget, until the inventory says another")
    weight.add_argument("budget", metavar="BUDGET")
    weight.add_argument("--to", required=True, metavar="WEIGHT", help="0 or more, such as 3 or 2.5")
    _action(weight, reason=True, wait=False)
    forget = _command(commands, "forget", "changing:forget", "the usage of budgets, and of all below them, up to now")
    forget.add_argument("budgets", nargs="+", metavar="BUDGET")
    _action(forget, reason=True, wait=False)


def _offline(commands: Any) -> None:
    config = _command(
        commands, "config", "config:run", "the console's settings: where they lie, whether they are right"
    )
    config.add_argument("what", choices=("path", "validate", "print"), help="print: those that count, and from where")
    _console_options(config, default=argparse.SUPPRESS)
    _json(config)
    check = _command(commands, "check", "check:run", "every error of an inventory; with --connect its hosts too")
    check.add_argument("file", nargs="?", metavar="FILE")
    check.add_argument("--connect", action="store_true", help="try each host at once")
    _json(check)
    health = _command(
        commands,
        "health",
        "health:run",
        "how hosts are, by which rule and evidence",
        epilog=HEALTH_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    health.add_argument("what", nargs="?", metavar="HOST", help="default: every host; or one of the words below")
    health.add_argument("file", nargs="?", metavar="FILE", help="of `test` and `parse-smi`; - reads standard input")
    health.add_argument("--fields", metavar="NAMES", help="of an output without header: those that were asked for")
    _json(health)
    plan = commands.add_parser("plan", help="one pass on a snapshot: what would happen and why")
    plan.add_argument("file", metavar="FILE", help="from `opsconsole snapshot` or by hand; - reads standard input")
    plan.set_defaults(run="offline:plan")
    _json(plan)
    _json(simulate_options.add(commands))
    whatif = "what comes of the live state, as it is and with changes that nobody has made: docs/whatif.md"
    _json(whatif_options.add(_command(commands, "whatif", "whatif:run", whatif)))
    completion = commands.add_parser("completion", help="the lines that complete words in a shell: docs/cli.md")
    completion.add_argument("shell", choices=("bash", "zsh", "fish"))
    completion.set_defaults(run="completing:completion")
    served = commands.add_parser("served")  # for `web` alone: the console of one page
    _cluster_options(served)
    served.add_argument("--may-write", action="store_true")
    served.set_defaults(run="web:session")
    complete = commands.add_parser("complete")  # for those lines alone: help does not list it
    complete.add_argument("words", nargs="*")
    complete.set_defaults(run="completing:complete")
