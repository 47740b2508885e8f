"""The long run: `python -m tests.sim.soak --seeds 200 --steps 10000`. Prints each seed that fails."""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from scheduler_core.errors import InvariantBroken
from scheduler_core.sim.scenario import Scenario


def soak(steps: int, seed: int) -> str:
    """What broke with this seed, or nothing."""
    try:
        Scenario(seed).run(steps)
    except InvariantBroken as error:
        return str(error)
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--steps", type=int, default=10_000)
    args = parser.parse_args()
    failed = 0
    with ProcessPoolExecutor() as pool:
        seeds = range(args.first, args.first + args.seeds)
        for number, broken in enumerate(pool.map(partial(soak, args.steps), seeds), start=1):
            if broken:
                failed += 1
                print(broken, flush=True)
            print(f"\r{number}/{args.seeds} seeds, {failed} failed", end="", file=sys.stderr, flush=True)
    print(f"\n{args.seeds - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
