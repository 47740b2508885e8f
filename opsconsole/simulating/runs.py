"""Every policy with every seed, on as many cores as there are. The same input gives the same results on any number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from opsconsole.memory import set_apart
from opsconsole.simulating.cores import on_cores
from opsconsole.simulating.faults import FaultyWorld
from opsconsole.simulating.files import write_events, write_hours
from opsconsole.simulating.gantt import Runs, draw_gantt
from opsconsole.simulating.job import Log
from opsconsole.simulating.metrics import figures, waits_by_class
from opsconsole.simulating.oddities import Oddities
from opsconsole.simulating.pictures import can_draw, draw_balance
from opsconsole.simulating.replay import Outcome, World
from opsconsole.simulating.setup import Variant
from opsconsole.simulating.workloads import Stream, make_stream
from scheduler_core.fleet import Host


@dataclass(frozen=True, slots=True)
class Study:
    """What is replayed. `period`: from the first instant on, up to the second, or until everything has ended (None)."""

    log: Log
    hosts: tuple[Host, ...]
    variants: tuple[Variant, ...]
    seeds: tuple[int, ...]
    times: float = 1.0
    period: tuple[int, int | None] = (0, None)
    faults: float = 0.0  # failures of a host in a day
    folders: tuple[Path, ...] = ()  # of the variants, for events and hours of the first seed

    def tasks(self) -> list[tuple[int, int]]:
        """Places of variant and seed."""
        return [(v, s) for v in range(len(self.variants)) for s in range(len(self.seeds))]


@dataclass(slots=True)
class Result:
    """Of one replay. `oddities` and `declared` are of its stream, `drawn`: does anything depend on the seed?"""

    figures: dict[str, Any]
    begin: int
    end: int
    oddities: Oddities = field(default_factory=Oddities)
    declared: dict[str, int] = field(default_factory=dict)
    drawn: bool = False
    waits: dict[str, list[int]] = field(default_factory=dict)  # ms in order by class, where pictures are wanted


def replay_one(study: Study, variant_at: int, seed_at: int, progress: Callable[[float], bool]) -> Result:
    """Raises Cancelled."""
    variant, log = study.variants[variant_at], study.log
    begin = max(study.period[0], log.jobs[0].submitted_at if log.jobs else 0)
    stream = make_stream(log, study.hosts, variant, study.seeds[seed_at], study.times, study.period)
    set_apart()
    world = make_world(study, variant, stream, begin, study.seeds[seed_at])
    if study.folders and seed_at == 0:
        outcome = _kept(study, variant_at, world, progress)
    else:
        outcome = world.run(study.period[1], progress)
    return _result(outcome, study, log.skipped)


def make_world(study: Study, variant: Variant, stream: Stream, begin: int, seed: int) -> World:
    """With faults each host has a fence: what was on it is known dead before it is back."""
    if not study.faults:
        return World(stream, study.hosts, variant.policy, variant.rules, begin)
    stream.drawn = True
    hosts = [replace(host, fence=True) for host in study.hosts]
    return FaultyWorld(stream, hosts, variant.policy, variant.rules, begin, study.faults, seed)


def _kept(study: Study, variant_at: int, world: World, progress: Callable[[float], bool]) -> Outcome:
    """A replay that leaves its events, hours and pictures."""
    folder, runs = study.folders[variant_at], Runs(world.stream)
    with write_events(folder, world.stream) as write:
        world.tell = [write, runs.hear]
        outcome = world.run(study.period[1], progress)
    write_hours(folder, outcome)
    if can_draw():
        draw_gantt(folder, outcome, study.hosts, runs)
        draw_balance(folder, outcome, study.hosts, study.variants[variant_at].policy.lookback_ms)
    return outcome


def _result(outcome: Outcome, study: Study, skipped: int) -> Result:
    stream = outcome.stream
    found = figures(outcome, study.hosts, skipped + stream.oddities.left_out)
    waits = waits_by_class(outcome) if study.folders else {}
    return Result(found, outcome.begin, outcome.end, stream.oddities, stream.declared, stream.drawn, waits)


def replay_all(study: Study, workers: int, progress: Callable[[float], None]) -> list[list[Result]]:
    """By variant and seed. `progress` hears the part that is done. Ctrl-C ends all of it: KeyboardInterrupt."""
    results = on_cores(partial(_replay, study), study.tasks(), workers, progress)
    seeds = len(study.seeds)
    return [results[at : at + seeds] for at in range(0, len(results), seeds)]


def _replay(study: Study, task: tuple[int, int], progress: Callable[[float], bool]) -> Result:
    return replay_one(study, *task, progress)
