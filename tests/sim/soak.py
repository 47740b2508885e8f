"""The long run: `python -m tests.sim.soak --seeds 200 --steps 10000`. Prints each seed that fails, and what was drawn.

An observation of a kind that no seed ever drew is a hole in the soak, and fails it too.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import get_args

from scheduler_core.errors import InvariantBroken
from scheduler_core.observations import Observation
from scheduler_core.sim.scenario import Scenario

KINDS = tuple(kind.__name__ for kind in get_args(Observation))


def soak(steps: int, seed: int) -> tuple[str, Counter[str]]:
    """What broke with this seed, or nothing; and how often each kind of observation and decision came."""
    scenario, broken = Scenario(seed), ""
    try:
        scenario.run(steps)
    except InvariantBroken as error:
        broken = str(error)
    facts = (fact for tick in scenario.ticks for fact in (*tick.observations, *tick.step.decisions))
    return broken, Counter(type(fact).__name__ for fact in facts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at once (default: one per core)")
    args = parser.parse_args()
    failed, drawn = 0, Counter[str]()
    with ProcessPoolExecutor(args.jobs) as pool:
        seeds = range(args.first, args.first + args.seeds)
        for number, (broken, kinds) in enumerate(pool.map(partial(soak, args.steps), seeds), start=1):
            drawn += kinds
            if broken:
                failed += 1
                print(broken, flush=True)
            print(f"\r{number}/{args.seeds} seeds, {failed} failed", end="", file=sys.stderr, flush=True)
    print(f"\n{args.seeds - failed} passed, {failed} failed")
    print(", ".join(f"{kind} {count}" for kind, count in drawn.most_common()))
    if never := [kind for kind in KINDS if not drawn[kind]]:
        print(f"never drawn: {', '.join(never)}")
    return 1 if failed or never else 0


if __name__ == "__main__":
    sys.exit(main())
