"""What goes wrong, drawn from the seed: at most one misfortune per turn, each as the console would notice it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from scheduler_core.observations import HostStale, HostUnreachable, Observation
from scheduler_core.units import MINUTE, SECOND

if TYPE_CHECKING:
    from scheduler_core.sim.world import SimHost, World


@dataclass(frozen=True, slots=True)
class Faults:
    """How often things go wrong, per thousand turns or per thousand commands and runs."""

    cut: int = 8
    reboot: int = 4
    stale: int = 6
    lag: int = 10
    gpu: int = 6
    outage: int = 2
    reconnect: int = 300  # of the turns of a host that is out of reach
    lose_command: int = 30
    fail_start: int = 10
    fail_run: int = 60
    vanish: int = 10  # ends that nobody knows: the supervisor died with it
    slow_stop: int = 20


USUAL = Faults()
NONE = Faults(0, 0, 0, 0, 0, 0, 1000, 0, 0, 0, 0, 0)


def misfortune(world: World) -> list[Observation]:
    """At most one fault now, on one host."""
    draw, faults = world.draw, world.faults
    host = draw.choice(list(world.hosts.values()))
    if not host.reachable and draw.randrange(1000) < faults.reconnect:
        return world.reconnect(host.name)
    for strike, per_thousand in _strikes(faults):
        if draw.randrange(1000) < per_thousand:
            return strike(world, host, draw)
    return []


def _strikes(faults: Faults) -> tuple[tuple[Callable[[World, SimHost, Random], list[Observation]], int], ...]:
    return (
        (_cut, faults.cut),
        (_reboot, faults.reboot),
        (_stale, faults.stale),
        (_lag, faults.lag),
        (_gpu, faults.gpu),
        (_outage, faults.outage),
    )


def _cut(world: World, host: SimHost, draw: Random) -> list[Observation]:
    """The link breaks; the host goes on by itself. What was on its way is lost."""
    if not host.reachable:
        return []
    world.cut(host)
    return [HostUnreachable(host.name, "timed out")]


def _outage(world: World, host: SimHost, draw: Random) -> list[Observation]:
    """Our own network is gone: every link breaks at once."""
    return [fact for other in world.hosts.values() for fact in _cut(world, other, draw)]


def _reboot(world: World, host: SimHost, draw: Random) -> list[Observation]:
    """All processes end with the kernel; the host is back at once, or is still out of reach."""
    before: list[Observation] = [HostUnreachable(host.name, "connection reset")] if host.reachable else []
    world.reboot(host)
    return before + (world.reconnect(host.name) if draw.random() < 0.7 else [])


def _stale(world: World, host: SimHost, draw: Random) -> list[Observation]:
    """The readings stop for a while, the link does not."""
    if not host.reachable or host.stale:
        return []
    host.stale = True
    world.agenda.push(world.now + draw.randrange(SECOND, 15 * MINUTE), "fresh", host.name, world.nobody, host.link)
    return [HostStale(host.name)]


def _lag(world: World, host: SimHost, draw: Random) -> list[Observation]:
    """What the host reports arrives late, in its order."""
    host.lag_until = world.now + draw.randrange(SECOND, 2 * MINUTE)
    return []


def _gpu(world: World, host: SimHost, draw: Random) -> list[Observation]:
    """A GPU falls off the bus, or somebody logs in and uses one; or it is well again."""
    slot = 1 << draw.randrange(host.gpus)
    if draw.random() < 0.5:
        host.unfit ^= slot
    else:
        host.foreign ^= slot
    return [world.seen(host.name)] if host.reachable and not host.stale else []
