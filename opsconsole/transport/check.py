"""`opsconsole check --connect`: how far each host comes, with the one thing to do where it stops. Data only.

Decides nothing about scheduling and repairs nothing. It says hello with the fields that `options.hello` gives: with a
store, a host that was never contacted belongs to it afterwards; without one, nothing changes there but the kit.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from opsconsole.transport.address import HostAddress
from opsconsole.transport.errors import ADVICE, TransportError, Unreach, plain
from opsconsole.transport.lines import parse_object
from opsconsole.transport.link import Connected, Disconnected, HostEvent, Line
from opsconsole.transport.pool import HostPool, PoolOptions

CLOCK_OFFSET_WARN_S = 2.0
DISK_FREE_WARN_BYTES = 1 << 30


class Verdict(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"  # not reached, or the host cannot tell


class StepName(StrEnum):
    """In the order in which they are taken."""

    REACHABLE = "reachable"
    HOST_KEY = "host key"
    LOGIN = "login"
    SHELL = "login shell"
    PYTHON = "python"
    STATE_DIR = "state directory"
    AGENT = "agent"
    DRIVER = "driver"
    GPUS = "gpus"
    CLOCK = "clock"
    DISK = "disk"


@dataclass(frozen=True, slots=True)
class Step:
    """One step's outcome: what was found, and what to do (empty when nothing)."""

    name: StepName
    verdict: Verdict
    found: str = ""
    advice: str = ""


@dataclass(frozen=True, slots=True)
class HostCheck:
    """All steps of one host, in order."""

    host: str
    steps: tuple[Step, ...]

    @property
    def ok(self) -> bool:
        """Nothing failed and all was reached; warnings are allowed."""
        return all(step.verdict in (Verdict.OK, Verdict.WARN) for step in self.steps)


_KIND_STEPS = {
    Unreach.HOST_KEY_CHANGED: StepName.HOST_KEY,
    Unreach.HOST_KEY_UNKNOWN: StepName.HOST_KEY,
    Unreach.AUTH_FAILED: StepName.LOGIN,
    Unreach.NO_SHELL: StepName.SHELL,
    Unreach.NO_PYTHON: StepName.PYTHON,
    Unreach.STATE_DIR: StepName.STATE_DIR,
    Unreach.FENCED: StepName.AGENT,
    Unreach.OTHER_STORE: StepName.AGENT,
    Unreach.PROTOCOL: StepName.AGENT,
}
_WHAT_STEPS = (
    ("log in", StepName.LOGIN),
    ("open a session", StepName.SHELL),
    ("wait for the login shell", StepName.SHELL),
    ("login shell", StepName.SHELL),
    ("start the agent", StepName.AGENT),
    ("session", StepName.AGENT),
    ("hello", StepName.AGENT),
)


def stopped_at(kind: Unreach, what: str) -> StepName:
    """Which step an error belongs to: by its kind, else by what was being done."""
    by_what = (step for words, step in _WHAT_STEPS if what.startswith(words))
    return _KIND_STEPS.get(kind) or next(by_what, StepName.REACHABLE)


def failed_steps(error: TransportError) -> tuple[Step, ...]:
    """What came before is fine, what comes after is unknown."""
    stop = stopped_at(error.kind, error.what)
    names = list(StepName)
    steps = [Step(name, Verdict.OK) for name in names[: names.index(stop)]]
    steps.append(Step(stop, Verdict.FAIL, f"{error.kind}: {error.why}", error.advice or ""))
    return (*steps, *(Step(name, Verdict.UNKNOWN, "not reached") for name in names[names.index(stop) + 1 :]))


@dataclass(slots=True)
class _Progress:
    """What one host has said so far."""

    connected: Connected | None = None
    greeted_at_unix_s: float = 0.0
    probe: dict[str, Any] | None = None
    error: TransportError | None = None

    @property
    def finished(self) -> bool:
        return self.probe is not None or self.error is not None


def value(reading: object) -> tuple[Any, str]:
    """A READING of agent-protocol.md as (value, "") or (None, why not)."""
    if not isinstance(reading, dict):
        return None, "not reported"
    if "v" in reading:
        return reading["v"], ""
    return None, plain(str(reading.get("denied") or reading.get("failed") or "absent"))


def agent_step(hello: dict[str, Any], store: object) -> Step:
    """The agent's version, and whether it takes orders from `store` (None: nobody asked)."""
    version, fence = plain(str(hello.get("hostkit", ""))), hello.get("fence")
    if store is None or not isinstance(fence, dict) or fence.get("store") == store:
        return Step(StepName.AGENT, Verdict.OK, version)
    found = f"{version}; it belongs to store {plain(str(fence.get('store')))}"
    return Step(StepName.AGENT, Verdict.FAIL, found, ADVICE[Unreach.OTHER_STORE])


def driver_step(probe: dict[str, Any]) -> Step:
    driver, why = value(probe.get("driver"))
    if driver is not None:
        return Step(StepName.DRIVER, Verdict.OK, f"{plain(str(driver))} by {probe.get('source')}")
    return Step(StepName.DRIVER, Verdict.FAIL, why, "Run nvidia-smi on the host and mend the driver.")


def gpu_step(probe: dict[str, Any], expected: int | None, twins: Sequence[str] = ()) -> Step:
    """As many as expected, and none of them a GPU of one of `twins`. What a driver lacks is said of the driver."""
    found = len(probe.get("gpus") or ())
    if twins:
        advice = "One machine under several names: list it once in the inventory."
        return Step(StepName.GPUS, Verdict.FAIL, f"the same GPUs as {', '.join(twins)}", advice)
    if expected is None:
        return Step(StepName.GPUS, Verdict.OK if found else Verdict.WARN, f"{found} found")
    if found == expected:
        return Step(StepName.GPUS, Verdict.OK, f"{found} of {expected}")
    fallen = "Look for a fallen GPU (dmesg, nvidia-smi), or correct gpus: in the inventory."
    advice = "" if value(probe.get("driver"))[0] is None else fallen
    return Step(StepName.GPUS, Verdict.FAIL, f"{found} of {expected}", advice)


def gpu_uuids(probe: dict[str, Any]) -> set[str]:
    found = (value(gpu.get("uuid"))[0] for gpu in probe.get("gpus") or () if isinstance(gpu, dict))
    return {uuid for uuid in found if isinstance(uuid, str)}


def twins_of(name: str, uuids: Mapping[str, set[str]]) -> list[str]:
    """Other names of the same machine, by the GPUs that each showed."""
    return [other for other in uuids if other != name and uuids[name] & uuids[other]]


def clock_step(hello: dict[str, Any], answered_at_unix_s: float, rtt_s: float | None) -> Step:
    """The host's clock against ours at the middle of the round trip; half of the trip is the doubt."""
    theirs, half_s = hello.get("time_unix_s"), (rtt_s or 0.0) / 2
    if not isinstance(theirs, int | float):
        return Step(StepName.CLOCK, Verdict.UNKNOWN, "the agent does not tell its time")
    offset_s = theirs - (answered_at_unix_s - half_s)
    found = f"{offset_s:+.2f} s ± {half_s:.2f}"
    if abs(offset_s) - half_s <= CLOCK_OFFSET_WARN_S:
        return Step(StepName.CLOCK, Verdict.OK, found)
    return Step(StepName.CLOCK, Verdict.WARN, found, "Start NTP (chrony, systemd-timesyncd) on the host.")


def disk_step(probe: dict[str, Any]) -> Step:
    """Free bytes of the file system that holds the state directory."""
    free, why = value((probe.get("host") or {}).get("state_disk_free_bytes"))
    if not isinstance(free, int | float):
        return Step(StepName.DISK, Verdict.UNKNOWN, why)
    found = f"{free / (1 << 30):.1f} GiB free"
    if free >= DISK_FREE_WARN_BYTES:
        return Step(StepName.DISK, Verdict.OK, found)
    return Step(StepName.DISK, Verdict.WARN, found, "Free space there, or set state_dir: to another local path.")


def passed_steps(
    progress: _Progress, rtt_s: float | None, expected_gpus: int | None, store: object, twins: Sequence[str] = ()
) -> tuple[Step, ...]:
    """The steps of a host that answered."""
    assert progress.connected is not None and progress.probe is not None
    boot, hello = progress.connected.boot, progress.connected.hello
    version = dict(boot.pythons).get(boot.python or "", "")
    return (
        *(Step(name, Verdict.OK) for name in (StepName.REACHABLE, StepName.HOST_KEY, StepName.LOGIN)),
        Step(StepName.SHELL, Verdict.OK, plain(boot.uname)),
        Step(StepName.PYTHON, Verdict.OK, plain(f"{version} at {boot.python}")),
        Step(StepName.STATE_DIR, Verdict.OK, plain(boot.state_dir)),
        agent_step(hello, store),
        driver_step(progress.probe),
        gpu_step(progress.probe, expected_gpus, twins),
        clock_step(hello, progress.greeted_at_unix_s, rtt_s),
        disk_step(progress.probe),
    )


async def check_hosts(
    addresses: Iterable[HostAddress],
    options: PoolOptions,
    *,
    expected_gpus: Mapping[str, int] | None = None,
    store: str | None = None,
    probe_timeout_s: float = 30.0,
    on_done: Callable[[str], None] = lambda host: None,
) -> list[HostCheck]:
    """One try for each host, all at once; in the order given. `store` should own them; None: whoever does.

    `on_done` names each host as it finishes.
    """
    hosts = {address.name: address for address in addresses}
    progress = {name: _Progress() for name in hosts}
    waiting = set(hosts)
    changed = asyncio.Event()

    def take(event: HostEvent) -> None:
        if not note(progress[event.host], event):
            return
        if progress[event.host].finished and event.host in waiting:
            waiting.discard(event.host)
            on_done(event.host)
        changed.set()

    pool = HostPool(hosts.values(), options, take)
    pool.start()
    try:
        await _until_empty(waiting, changed, progress, probe_timeout_s)
        expected = expected_gpus or {}
        uuids = {name: gpu_uuids(progress[name].probe or {}) for name in hosts}
        return [_result(name, progress[name], pool, expected.get(name), store, twins_of(name, uuids)) for name in hosts]
    finally:
        await pool.aclose()


def note(progress: _Progress, event: HostEvent) -> bool:
    """One event of the pool; says whether it told something. The first failure stands."""
    if isinstance(event, Connected):
        progress.connected, progress.greeted_at_unix_s = event, time.time()
    elif isinstance(event, Line) and event.fields.get("event") == "probe":
        progress.probe = parse_object(event.fields["probe"]) or {}
    elif isinstance(event, Disconnected) and not progress.finished:
        progress.error = TransportError(event.host, event.what, event.why, event.kind, advice=event.advice)
    else:
        return False
    return True


async def _until_empty(
    waiting: set[str], changed: asyncio.Event, progress: dict[str, _Progress], probe_timeout_s: float
) -> None:
    """Every host ends by itself: by its connect deadline, or `probe_timeout_s` after the last one answered."""
    while waiting:
        connecting = any(progress[name].connected is None for name in waiting)
        changed.clear()
        try:
            async with asyncio.timeout(None if connecting else probe_timeout_s):
                await changed.wait()
        except TimeoutError:
            return


def _result(
    name: str, progress: _Progress, pool: HostPool, expected: int | None, store: object, twins: Sequence[str]
) -> HostCheck:
    if progress.probe is not None:
        return HostCheck(name, passed_steps(progress, pool.status(name).rtt_s, expected, store, twins))
    error = progress.error or TransportError(
        name, "start the agent", "the agent answers but sends no probe", Unreach.TIMED_OUT
    )
    return HostCheck(name, failed_steps(error))
