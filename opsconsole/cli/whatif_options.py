"""What can be typed behind `opsconsole whatif`."""

from __future__ import annotations

import argparse


def add(whatif: argparse.ArgumentParser) -> argparse.ArgumentParser:
    whatif.add_argument(
        "--set", dest="sets", action="append", default=[], metavar="KNOB=VALUE", help="or budgets.olmo/eval.weight=40"
    )
    whatif.add_argument("--drain", action="append", default=[], metavar="HOST", help="a name or a range, gpu[01-04]")
    whatif.add_argument("--add-hosts", action="append", default=[], metavar="HOSTSxGPUS", help="such as 8x8")
    whatif.add_argument("--remove", action="append", default=[], metavar="HOST", help="it leaves the inventory")
    whatif.add_argument(
        "--submit", action="append", default=[], metavar="FIELD=VALUE,…", help="such as gpus=64,min=2h,budget=olmo/eval"
    )
    whatif.add_argument("--horizon", default="24h", metavar="SPAN", help="how far ahead; default: 24h")
    whatif.add_argument("--futures", type=int, default=20, metavar="N", help="default: 20")
    whatif.add_argument("--seed", type=int, default=1, metavar="N", help="the same gives the same; default: 1")
    whatif.add_argument("--snapshot", metavar="FILE", help="in place of the live state; - reads standard input")
    whatif.add_argument("--workers", type=int, metavar="N", help="processes; default: one for each core")
    return whatif
