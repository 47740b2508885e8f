"""What can be typed behind `opsconsole simulate`."""

from __future__ import annotations

import argparse
from typing import Any


def add(commands: Any) -> argparse.ArgumentParser:
    what = "replay a log of workloads on the engine that decides live, and compare policies: docs/simulate.md"
    simulate: argparse.ArgumentParser = commands.add_parser("simulate", help=what, description=what)
    simulate.add_argument(
        "log", metavar="LOG", help="Slurm, SWF, Philly, Helios, Alibaba or CSV; - reads standard input"
    )
    simulate.add_argument("--cluster", required=True, metavar="HOSTSxGPUS", help="such as 128x8, or 16x8,4x4")
    simulate.add_argument("--policy", metavar="FILE", help="knobs, budgets, and what the log lacks; default: defaults")
    simulate.add_argument("--compare", nargs="+", action="extend", metavar="FILE", help="other policies beside it")
    simulate.add_argument("--budgets", metavar="FILE", help="a budget tree for all of them, or GPUs by day and budget")
    simulate.add_argument("--from", dest="since", metavar="WHEN", help="submitted from then on: 2020-09-01, or 3d")
    simulate.add_argument("--to", dest="until", metavar="WHEN", help="the replay ends then; default: with the last run")
    simulate.add_argument("--scale-demand", default="1", metavar="TIMES", help="so many times the work, such as 2.5")
    simulate.add_argument("--faults", default="0", metavar="RATE", help="failures of a host in a day, such as 0.01")
    simulate.add_argument("--seeds", type=int, default=1, metavar="N", help="medians and ranges over N seeds")
    simulate.add_argument("--map", action="append", metavar="FIELD=COLUMN", help="where columns have other names")
    simulate.add_argument("--strict", action="store_true", help="refuse a log with anything wrong in it")
    simulate.add_argument("--out", metavar="DIR", help="report, events and hours as files")
    simulate.add_argument("--workers", type=int, metavar="N", help="processes; default: one for each core")
    simulate.set_defaults(run="simulate:run")
    return simulate
