"""The scheduler in worlds full of faults, one from each seed, on all cores. Exit status 1 when an invariant broke.

A violation is printed with its seed and the last decisions; the same seed and hours tell the same story. With 100 seeds
or more a kind of observation that never came is a hole in the storm, and fails it too.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any, get_args

from scheduler_core.observations import Observation
from scheduler_core.units import HOUR
from tests.storm.story import Story, tell

KINDS = tuple(kind.__name__ for kind in get_args(Observation))
MANY = 100  # seeds, in which every kind should have come


@dataclass
class Storm:
    """What came of all seeds."""

    hours: float
    seeds: int = 0
    ticks: int = 0
    simulated_ms: int = 0
    checks: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    decisions: Counter[str] = field(default_factory=Counter)
    broken: list[Story] = field(default_factory=list)

    def add(self, story: Story) -> None:
        self.seeds += 1
        for part in ("ticks", "simulated_ms", "checks", "faults", "events", "decisions"):
            setattr(self, part, getattr(self, part) + getattr(story, part))
        if story.broken:
            self.broken.append(story)

    @property
    def never(self) -> list[str]:
        return [kind for kind in KINDS if not self.events[kind]] if self.seeds >= MANY else []

    def as_json(self, seconds: float) -> dict[str, Any]:
        return {
            "seeds": self.seeds,
            "hours": self.hours,
            "seconds": round(seconds, 1),
            "seeds_per_s": round(self.seeds / seconds, 2),
            "simulated_hours": round(self.simulated_ms / HOUR, 1),
            "steps": self.ticks,
            "events": dict(self.events.most_common()),
            "decisions": dict(self.decisions.most_common()),
            "faults": dict(self.faults.most_common()),
            "invariant_checks": self.checks,
            "never_drawn": self.never,
            "violations": [{"seed": s.seed, "what": s.broken, "decisions": s.last} for s in self.broken],
        }


def told(story: Story, hours: float) -> str:
    again = f"python -m tests.storm --first {story.seed} --seeds 1 --hours {hours:g}"
    return "\n  ".join((f"seed {story.seed}: {story.broken}", *story.last, f"again: {again}"))


def summary(storm: Storm, seconds: float) -> str:
    def kinds(counts: Counter[str]) -> str:
        return f"{counts.total()}: {', '.join(f'{kind} {count}' for kind, count in counts.most_common())}"

    lines = [
        f"{storm.seeds} seeds in {seconds:.0f} s, {storm.seeds / seconds:.2f} seeds/s",
        f"{storm.simulated_ms / HOUR:.0f} simulated hours, {storm.ticks} steps, {storm.checks} invariant checks",
        f"events {kinds(storm.events)}",
        f"decisions {kinds(storm.decisions)}",
        f"faults {kinds(storm.faults)}",
        *([f"never drawn: {', '.join(storm.never)}"] if storm.never else []),
        f"{len(storm.broken)} violations",
    ]
    return "\n".join(lines)


def stories(seeds: Sequence[int], hours: float, jobs: int) -> Iterator[Story]:
    """In the order of the seeds."""
    if jobs == 1:
        yield from map(partial(tell, hours), seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(partial(tell, hours), seeds)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.storm", description=__doc__)
    parser.add_argument("--seeds", type=at_least(1, int), default=500, help="how many (default 500)")
    parser.add_argument("--first", type=at_least(0, int), default=0, help="the first one (default 0)")
    parser.add_argument("--hours", type=at_least(0, float), default=8, help="of faults in each (default 8)")
    parser.add_argument(
        "--jobs", type=at_least(1, int), default=os.cpu_count(), help="processes (default: one per core)"
    )
    parser.add_argument("--json", action="store_true", help="the figures as data")
    args = parser.parse_args(arguments)
    storm, began = Storm(args.hours), monotonic()
    for story in stories(range(args.first, args.first + args.seeds), args.hours, args.jobs):
        storm.add(story)
        if story.broken and not args.json:
            print(f"\r{told(story, args.hours)}", flush=True)
        progress = f"\r{storm.seeds}/{args.seeds} seeds, {len(storm.broken)} violations"
        print(progress, end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    seconds = max(monotonic() - began, 0.001)
    print(json.dumps(storm.as_json(seconds), indent=1) if args.json else summary(storm, seconds))
    return 1 if storm.broken or storm.never else 0


def at_least(least: int, kind: Callable[[str], float]) -> Callable[[str], float]:
    def number(text: str) -> float:
        if (value := kind(text)) < least:
            raise argparse.ArgumentTypeError(f"{text} is less than {least}")
        return value

    number.__name__ = "number"
    return number


if __name__ == "__main__":
    sys.exit(main())
