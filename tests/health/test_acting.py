"""From verdicts to what is asked for: once for a cause, merged for a host, never from silence."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsconsole.health.acting import Automatic, asks
from opsconsole.health.rules import builtin_rules
from opsconsole.health.verdict import Said, Verdict, judge
from opsconsole.health.watching import Watch
from scheduler_core.ids import HostName
from scheduler_core.observations import AutoDrainProposed, AutoDrainWithdrawn, HostUnreachable, UndrainRequested
from tests.core.clusters import OPS, Cluster
from tests.health.said import GPUS, but, gpu, lost, pci, probe, verdict, xid

DRAIN = Automatic("drain", "drain")
SPLIT = Automatic("propose", "drain")
OFF = verdict(probe(), xid(79))
SICK = verdict(but(3, lost(3)), xid(79))
WELL = verdict()


def fleet(count: int = 4) -> Cluster:
    return Cluster(hosts={f"h{n}": GPUS for n in range(1, count + 1)})


def look(c: Cluster, auto: Automatic = SPLIT, settled: Collection[str] = ("h1",), **verdicts: Verdict) -> list[Any]:
    """Asks, tells the cluster, and looks again: then there is nothing more to ask."""
    found = asks(c.engine.state, verdicts, auto, settled, c.now)
    c.see(*found)
    assert asks(c.engine.state, verdicts, auto, settled, c.now) == []
    c.now += 1
    return found


def test_a_fault_asks_once_with_its_evidence_and_ends_with_it() -> None:
    c = fleet()
    (one,) = look(c, h1=OFF, h2=WELL)
    assert one.host == "h1" and one.causes == (f"xid:79 {pci(3)} F",) and not one.confirm
    assert one.reason.startswith("GPU 3: xid:79, ") and "NVRM: Xid" in one.reason
    assert look(c, h1=WELL) == [AutoDrainWithdrawn(HostName("h1"), "nothing stands against it any more")]
    assert look(c, h1=WELL) == []


@pytest.mark.parametrize(
    ("auto", "kernel", "confirm"),
    [
        (Automatic(), 79, True),
        (SPLIT, 79, False),
        (SPLIT, 94, True),
        (Automatic("off", "propose"), 94, None),
        (Automatic("propose", "off"), 79, None),
    ],
)
def test_each_severity_has_its_mode(auto: Automatic, kernel: int, confirm: bool | None) -> None:
    found = look(fleet(), auto, h1=verdict(probe(), xid(kernel)))
    assert [one.confirm for one in found] == ([] if confirm is None else [confirm])


def test_nothing_is_asked_of_the_well_the_watched_or_the_applications_own() -> None:
    heat = Watch()
    hot = but(3, gpu(3, clock_event_reasons=["hw_thermal_slowdown"]))
    once = judge(Said(GPUS, hot, 0.0), builtin_rules(), heat, 100.0)
    assert look(fleet(), DRAIN, h1=WELL, h2=once, h3=verdict(probe(), xid(31), xid(63))) == []
    later = judge(Said(GPUS, hot, 0.0), builtin_rules(), heat, 200.0)
    assert [one.host for one in look(fleet(), DRAIN, h1=later)] == ["h1"], "it has lasted"


def test_silence_asks_for_nothing_and_ends_nothing() -> None:
    silent = [verdict(probe(), xid(79), fresh=False), judge(Said(GPUS, None), builtin_rules())]
    silent.append(verdict(probe(driver={"failed": "Timeout"}, gpus=[])))
    for one in silent:
        c = fleet()
        assert look(c, DRAIN, h1=one) == []
        look(c, h1=OFF)
        assert look(c, h1=one) == [] and len(c.engine.state.drains) == 1


def test_what_cannot_be_looked_at_is_not_gone() -> None:
    c = fleet()
    look(c, Automatic(), h1=verdict(but(3, lost(3))))
    blind = verdict(probe(driver={"failed": "Timeout"}, gpus=[]), xid(79))
    (one,) = look(c, Automatic(), h1=blind)
    assert one.causes == (f"gpu:lost {pci(3)} F", f"xid:79 {pci(3)} F")


def test_several_faults_are_one_drain() -> None:
    c = fleet()
    look(c, h1=verdict(probe(), xid(94)))
    (one,) = look(c, h1=verdict(probe(), xid(94), xid(79)))
    assert not one.confirm and one.reason.endswith("; 1 more") and len(c.engine.state.drains) == 1
    look(c, h1=SICK)
    assert len(c.engine.state.drains) == 1 and not c.engine.state.proposals


def test_a_person_who_lets_it_serve_is_not_asked_again_by_something_smaller() -> None:
    c = fleet()
    look(c, h1=OFF)
    c.see(UndrainRequested(HostName("h1"), OPS))
    assert look(c, h1=OFF) == []
    (one,) = look(c, h1=verdict(probe(), xid(79), xid(94, 4)))
    assert one.confirm and one.reason.startswith("GPU 4: xid:94")


def test_a_new_leader_withdraws_no_reading_before_it_has_watched_for_long() -> None:
    c = fleet()
    look(c, h1=verdict(but(3, lost(3)), xid(79)))
    (one,) = look(c, settled=(), h1=WELL)
    assert one.causes == (f"gpu:lost {pci(3)} F",), "lines of the log need no memory"
    assert look(c, settled=(), h1=WELL) == []
    assert isinstance(look(c, h1=WELL)[0], AutoDrainWithdrawn)


def test_faults_of_many_hosts_wait_for_a_person() -> None:
    c = fleet(6)
    found = look(c, DRAIN, h1=OFF, h2=OFF, h3=OFF)
    assert [one.confirm for one in found] == [True] * 3 and "one incident with others, cluster" in found[0].reason
    c = fleet(6)
    c.see(*(HostUnreachable(HostName(f"h{n}"), "timeout") for n in (4, 5)))
    assert look(c, DRAIN, h1=OFF)[0].confirm, "two of its neighbours are silent"


seen = st.sampled_from([WELL, OFF, SICK, verdict(probe(), xid(94)), verdict(probe(), xid(79), fresh=False)])


@given(st.lists(st.tuples(seen, st.booleans(), st.sampled_from([DRAIN, SPLIT, Automatic()])), max_size=8))
def test_what_was_told_is_never_told_again(looks: list[tuple[Verdict, bool, Automatic]]) -> None:
    """`look` itself sees to it; between looks a person may return the host."""
    c = fleet()
    for one, undrained, auto in looks:
        found = look(c, auto, settled=("h1",), h1=one)
        assert len(found) <= 1 and all(isinstance(x, AutoDrainProposed | AutoDrainWithdrawn) for x in found)
        if undrained:
            c.see(UndrainRequested(HostName("h1"), OPS))
