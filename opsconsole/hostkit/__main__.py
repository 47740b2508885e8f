"""The command line on a host: `agent` for the console, the rest for people who look after the host by hand."""

from __future__ import annotations

import argparse
import os
import sys

from . import VERSION


def main(argv: list[str] | None = None) -> int:
    given = parser().parse_args(argv)
    try:
        return int(COMMANDS[given.command](given))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 0


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="hostkit", description="What opsconsole runs on a GPU host.")
    commands = top.add_subparsers(dest="command", metavar="COMMAND")
    commands.required = True

    def add(name: str, text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, description=text)
        made.add_argument("--state-dir", metavar="DIR", help="default: $OPSCONSOLE_STATE_DIR, /var/tmp/opsconsole-UID")
        return made

    add("agent", "serve a console on stdin and stdout, in JSON lines")
    probe = add("probe", "print readings as JSON lines")
    probe.add_argument("--once", action="store_true", help="one reading, then leave")
    probe.add_argument("--interval", type=float, default=2.0, metavar="SECONDS")
    listing = add("list", "print all runs")
    listing.add_argument("--json", action="store_true")
    stop = add("stop", "stop a run as rule 13 says: checkpoint, SIGTERM, SIGKILL")
    stop.add_argument("token")
    stop.add_argument("--reason", default="stopped by hand on the host")
    stop.add_argument("--checkpoint-grace", type=float, metavar="SECONDS")
    stop.add_argument("--stop-grace", type=float, metavar="SECONDS")
    stop.add_argument("--min-ran", type=float, default=0.0, metavar="SECONDS", help="refuse if it has run for less")
    run = add("run", "start a run by hand")
    run.add_argument("--token", required=True)
    run.add_argument("--gpu", action="append", default=[], metavar="UUID")
    run.add_argument("argv", nargs="+", metavar="-- PROGRAM ARGUMENT")
    supervise = add("supervise", "internal: look after one run")
    supervise.add_argument("--ready-fd", type=int, required=True)
    supervise.add_argument("--rescue", action="store_true")
    supervise.add_argument("run_dir")
    add("version", "print the version")
    return top


def do_agent(given: argparse.Namespace) -> int:
    from .agent import run_agent

    return run_agent(given.state_dir)


def do_supervise(given: argparse.Namespace) -> int:
    from .state import open_state
    from .supervise import supervise

    return supervise(open_state(given.state_dir), given.run_dir, given.ready_fd, given.rescue)


def do_version(given: argparse.Namespace) -> int:
    print(VERSION)
    return 0


def do_probe(given: argparse.Namespace) -> int:
    """Through an agent's own loop would need a client; here one reading at a time is enough."""
    from . import by_hand

    return by_hand.probe(given.state_dir, None if given.once else given.interval)


def do_list(given: argparse.Namespace) -> int:
    from . import by_hand

    return by_hand.show_runs(given.state_dir, given.json)


def do_stop(given: argparse.Namespace) -> int:
    from . import by_hand

    fields = {
        "token": given.token,
        "reason": given.reason,
        "checkpoint_grace_s": given.checkpoint_grace,
        "stop_grace_s": given.stop_grace,
        "min_ran_s": given.min_ran,
    }
    return by_hand.stop(given.state_dir, fields)


def do_run(given: argparse.Namespace) -> int:
    from . import by_hand

    return by_hand.start(given.state_dir, given.token, {"argv": given.argv, "cwd": os.getcwd(), "gpus": given.gpu})


COMMANDS = {
    "agent": do_agent,
    "supervise": do_supervise,
    "version": do_version,
    "probe": do_probe,
    "list": do_list,
    "stop": do_stop,
    "run": do_run,
}

if __name__ == "__main__":
    sys.exit(main())
