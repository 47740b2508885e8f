"""What goes wrong, drawn from the seed: at most one misfortune per turn, each as the console would notice it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

from scheduler_core.observations import HostStale, HostUnreachable, Observation
from scheduler_core.units import HOUR, MINUTE, SECOND

if TYPE_CHECKING:
    from scheduler_core.sim.hosts import SimHost
    from scheduler_core.sim.world import World


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
    slow_stop: int = 20  # it ignores SIGTERM, or its checkpoint takes long
    hang: int = 0  # silent for long, with all that runs there
    die: int = 0  # down for long
    leak: int = 0  # its GPU memory outlives the process
    repeat_command: int = 0
    crash: int = 0  # of the console: before its journal has heard, or before all commands are sent
    takeover: int = 0  # another console leads, and the one before does not know yet


USUAL = Faults()
STORM = replace(USUAL, hang=2, die=2, leak=20, repeat_command=50, crash=15, takeover=8)
NONE = Faults(0, 0, 0, 0, 0, 0, 1000, 0, 0, 0, 0, 0)


def misfortune(world: World) -> list[Observation]:
    """At most one fault now, on one host."""
    draw, faults = world.draw, world.faults
    host = draw.choice(list(world.hosts.values()))
    if not host.reachable and world.now >= host.silent_until and draw.randrange(1000) < faults.reconnect:
        return world.reconnect(host.name)
    for name, strike in STRIKES.items():
        if world.chance(name):
            return strike(world, host, draw)
    return []


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


def _hang(world: World, host: SimHost, draw: Random) -> list[Observation]:
    """Nobody can ask it for hours; what runs there goes on."""
    host.silent_until = world.now + draw.randrange(MINUTE, 3 * HOUR)
    return _cut(world, host, draw)


def _die(world: World, host: SimHost, draw: Random) -> list[Observation]:
    """It is off for hours."""
    before = _cut(world, host, draw)
    world.reboot(host)
    host.silent_until = world.now + draw.randrange(MINUTE, 6 * HOUR)
    return before


STRIKES: dict[str, Callable[[World, SimHost, Random], list[Observation]]] = {
    "cut": _cut,
    "reboot": _reboot,
    "stale": _stale,
    "lag": _lag,
    "gpu": _gpu,
    "outage": _outage,
    "hang": _hang,
    "die": _die,
}
