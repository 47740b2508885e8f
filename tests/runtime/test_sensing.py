"""What hosts say, as observations: readings that are late, out of order, incomplete or by another clock."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pytest

from opsconsole.machines import Machines
from opsconsole.readings import HostReading
from opsconsole.sensing import Sensing
from scheduler_core.ids import HostName
from scheduler_core.observations import HostSeen, HostStale, MemberExited, MemberReleased, MemberStarted, Observation
from scheduler_core.workload import Outcome
from tests.core.clusters import Cluster

GIB = 1 << 30
H1 = HostName("h1")


def gpu(slot: int, uuid: str = "", used: Any = 0, processes: Any = ()) -> dict[str, Any]:
    listed = processes if isinstance(processes, dict) else {"v": list(processes)}
    readings = {"memory_used_bytes": used if isinstance(used, dict) else {"v": used}}
    return {"slot": slot, "uuid": {"v": uuid or f"GPU-{slot}"}, "processes": listed, "readings": readings}


class Clock:
    """Stands in for `time`; each line of a host comes a second after the one before."""

    now_s = 5000.0

    def monotonic(self) -> float:
        return self.now_s

    def time_ns(self) -> int:
        return int(self.now_s * 1e9)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    clock = Clock()
    monkeypatch.setattr("opsconsole.sensing.time", clock)
    return Host(clock)


class Host:
    """A host with 4 GPUs as the leader hears it; `said` is what became of its words."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.cluster = Cluster(hosts={"h1": 4})
        self.said: list[Observation] = []
        self.sensing = Sensing(
            "store",
            lambda host: 4,
            lambda facts: self.said.extend(facts),
            lambda: 1024,
            1.0,
            defaultdict(HostReading),
            lambda: self.cluster.engine.state,
            Machines(lambda: self.cluster.engine.state, lambda host: True),
        )

    def hello(self, uptime_s: float = 1000.0, runs: Iterable[Any] = ()) -> None:
        self.sensing.connected("h1", {"boot_id": "boot1", "uptime_s": uptime_s, "runs": list(runs)})

    def probe(self, uptime_s: float = 1000.0, *gpus: dict[str, Any], **more: Any) -> list[Observation]:
        before, self.clock.now_s = len(self.said), self.clock.now_s + 1
        listed = list(gpus) or [gpu(slot) for slot in range(4)]
        body = json.dumps({"uptime_s": uptime_s, "gpus": listed, **more}).encode()
        self.sensing.line("h1", {"event": "probe", "probe": body})
        self.sensing.tick()
        return self.said[before:]


def test_a_reading_that_was_long_on_its_way_changes_nothing(host: Host) -> None:
    """G3-25: five minutes old, told now. It is as old as it is, the host stale until a fresh one comes."""
    host.hello(1000)
    assert [type(fact) for fact in host.probe(1001)] == [HostSeen]
    foreign = [gpu(0, processes=[{"pid": 1, "run": None, "system": False}])]
    assert host.probe(700, *foreign) == [HostStale(H1)]
    assert host.probe(701, *foreign) == [] and host.probe(702, *foreign) == []
    assert host.sensing.readings["h1"].probe_at == pytest.approx(host.clock.now_s - 302, abs=0.01)
    (seen,) = host.probe(1005)
    assert isinstance(seen, HostSeen) and not seen.foreign


def test_a_slow_link_is_no_old_reading(host: Host) -> None:
    """Every line as late as the others: the fastest one so far is the measure."""
    host.hello(400)  # its answer waited for Python
    facts = [fact for n in range(100) for fact in host.probe(1000 + n + n % 3)]
    assert [type(fact) for fact in facts] == [HostSeen]


@pytest.mark.parametrize("wall_s", [-300.0, 300.0, 1e12])
def test_the_clock_of_a_host_moves_nothing(host: Host, wall_s: float) -> None:
    """G7-03: minutes ahead or behind; how long a run has run is the host's own difference of two readings."""
    host.cluster.submit("w", gpus=4)
    run = host.cluster.run("w")
    told = {"token": run, "store": "store", "started_unix_s": wall_s, "at_unix_s": wall_s, "ran_s": 1.0}
    host.hello(runs=[{**told, "phase": "released", "exit": {"code": 0}}])
    assert host.said == [MemberStarted(run, H1, 1000), MemberExited(run, H1, 0), MemberReleased(run, H1)]
    (seen,) = host.probe(1001, at_unix_s=wall_s)
    assert isinstance(seen, HostSeen)


def test_one_record_that_cannot_be_read_does_not_hide_the_others(host: Host) -> None:
    """G1-23: each run that ended is told, whatever stands beside it."""
    for wid in ("a", "b"):
        host.cluster.submit(wid, gpus=2)
    good = [{"token": f"{w}~1", "store": "store", "phase": "released", "exit": {"code": 0}} for w in "ab"]
    host.hello(runs=[good[0], None, {"token": {}}, {"phase": "released"}, [1], good[1]])
    assert [fact.run for fact in host.said if isinstance(fact, MemberReleased)] == ["a~1", "b~1"]


@pytest.mark.parametrize(
    "held",
    [
        gpu(1, used=10 * GIB),
        gpu(1, used={"failed": "GPU is lost"}),
        gpu(1, processes={"denied": "no permission"}),
        {"slot": 1, "uuid": {"failed": "GPU is lost"}},
    ],
)
def test_memory_that_nobody_explains_is_not_free(host: Host, held: dict[str, Any]) -> None:
    """G3-18: left behind by a killed run, or unreadable. Free again by itself when a reading says so."""
    host.hello()
    (seen,) = host.probe(1001, gpu(0), held, gpu(2), gpu(3))
    assert isinstance(seen, HostSeen) and seen.unfit == 0b10 and not seen.foreign
    (seen,) = host.probe(1002)
    assert isinstance(seen, HostSeen) and not seen.unfit


def test_gpus_are_known_by_slot_and_uuid_whatever_order_they_are_listed_in(host: Host) -> None:
    """G3-24."""
    host.hello()
    (seen,) = host.probe(1001, *(gpu(slot) for slot in (2, 0, 3, 1)))
    assert isinstance(seen, HostSeen) and seen.gpu_ids == ("GPU-0", "GPU-1", "GPU-2", "GPU-3")


def test_processes_of_a_run_that_is_over_are_no_strangers(host: Host) -> None:
    """A reading may be older than the word of an end: GPUs that are held for somebody stay so."""
    host.cluster.submit("w", gpus=2)
    run = host.cluster.run("w")
    told = {"token": run, "store": "store", "ran_s": 1.0, "gpus": ["GPU-0", "GPU-1"]}
    host.hello(runs=[{**told, "phase": "running"}])
    busy = [gpu(slot, used=40 * GIB, processes=[{"pid": 7, "run": run}]) for slot in (0, 1)]
    host.probe(1001, *busy, gpu(2), gpu(3))
    host.cluster.see(*host.said)
    host.said.clear()
    host.sensing.line("h1", {"event": "run", "run": {**told, "phase": "released", "exit": {"code": 0}}})
    host.cluster.see(*host.said)
    assert host.cluster.workload("w").outcome is Outcome.SUCCEEDED
    host.probe(1002, *busy, gpu(2), gpu(3))
    assert foreign(host) == 0
    host.probe(1003, gpu(0, processes=[{"pid": 8, "run": "strange~1"}]), gpu(1), gpu(2), gpu(3))
    assert foreign(host) == 1


def foreign(host: Host) -> int:
    seen = host.sensing.readings["h1"].seen
    assert seen is not None
    return seen.foreign
