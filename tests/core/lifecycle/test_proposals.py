"""What health asks for: one drain for what stands against a host, within the brakes, and no second time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler_core.decisions import BreakerTripped, HostMoved
from scheduler_core.fleet import HostState
from scheduler_core.hosttable import HostEvent
from scheduler_core.ids import DrainId, HostName
from scheduler_core.image import from_image, to_image
from scheduler_core.observations import (
    AutoDrainProposed,
    AutoDrainWithdrawn,
    BreakerReset,
    DrainRequested,
    HostUnreachable,
    UndrainRequested,
)
from scheduler_core.policy import Policy
from scheduler_core.proposals import known_causes, refusal_now
from scheduler_core.units import HOUR, PPM
from tests.core.clusters import OPS, Cluster, of_kind

H1 = HostName("h1")
FLEET = {f"h{n}": 8 for n in range(1, 5)}


def asks(name: str, *causes: str, host: str = "h1", confirm: bool = True) -> AutoDrainProposed:
    return AutoDrainProposed(DrainId(name), HostName(host), ", ".join(causes), False, causes, confirm)


def test_what_a_person_is_to_confirm_waits_for_one() -> None:
    c = Cluster(hosts=FLEET)
    c.see(asks("d1", "xid:79"))
    assert not of_kind(c.later(HOUR, BreakerReset(OPS)), HostMoved) and c.host("h1").state is HostState.SERVING
    c.see(DrainRequested(DrainId("mine"), H1, OPS))
    assert c.host("h1").state is HostState.DRAINING and not c.engine.state.proposals
    c.see(UndrainRequested(H1, OPS), asks("d2", "xid:79", confirm=False))
    assert not of_kind(c.later(HOUR), HostMoved), "it was decided"


def test_a_person_turns_it_down_while_the_host_serves() -> None:
    c = Cluster(hosts=FLEET)
    assert refusal_now(c.engine.state, H1, HostEvent.UNDRAIN)
    c.see(asks("d1", "xid:79"))
    assert not refusal_now(c.engine.state, H1, HostEvent.UNDRAIN)
    c.later(HOUR, UndrainRequested(H1, OPS))
    record = c.host("h1")
    assert (record.state, record.by, record.since) == (HostState.SERVING, OPS, c.now)
    c.see(asks("d2", "xid:79"))
    assert not c.engine.state.proposals and known_causes(c.engine.state, H1) == {"xid:79"}
    c.see(asks("d3", "xid:79", "xid:48"))
    assert c.engine.state.proposals[H1].drain == "d3", "something else broke"


def test_what_is_gone_asks_no_longer_and_may_ask_again() -> None:
    c = Cluster(hosts=FLEET)
    c.see(asks("d1", "xid:79"), AutoDrainWithdrawn(H1, "gone"))
    assert not c.engine.state.proposals and not known_causes(c.engine.state, H1)
    c.see(asks("d2", "xid:79"), UndrainRequested(H1, OPS), AutoDrainWithdrawn(H1, "gone"), asks("d3", "xid:79"))
    assert c.engine.state.proposals[H1].drain == "d3"
    c.see(UndrainRequested(H1, OPS), asks("d4", "xid:48"), UndrainRequested(H1, OPS), asks("d5", "xid:79"))
    assert c.engine.state.proposals[H1].drain == "d5", "the first was gone in between"


def test_faults_of_one_host_are_one_drain_and_a_worse_one_supersedes() -> None:
    c = Cluster(hosts=FLEET)
    c.see(asks("d1", "heat"), asks("d2", "heat", "xid:79", confirm=False))
    assert c.host("h1").state is HostState.DRAINING and c.host("h1").drain == "d2"
    c.see(asks("d3", "heat", "xid:79", "xid:48"))
    assert len(c.engine.state.drains) == 1 and known_causes(c.engine.state, H1) == {"heat", "xid:79", "xid:48"}
    c.see(UndrainRequested(H1, OPS))
    assert not of_kind(c.later(HOUR, asks("d4", "heat", "xid:48", confirm=False)), HostMoved)


def test_what_was_decided_is_known_after_a_restart() -> None:
    c = Cluster(hosts=FLEET)
    c.see(asks("d1", "xid:79"), asks("e1", "xid:48", host="h2"), UndrainRequested(H1, OPS))
    again = from_image(to_image(c.engine.state))
    assert known_causes(again, H1) == {"xid:79"} and again.proposals == c.engine.state.proposals


def test_a_withdrawn_proposal_takes_along_what_the_breaker_held_back() -> None:
    c = Cluster(hosts=FLEET, policy=Policy(breaker_hosts=0, breaker_hosts_ppm=0))
    c.see(asks("d1", "xid:79", confirm=False))
    assert list(c.engine.state.tripped) == ["host h1"]
    c.see(AutoDrainWithdrawn(H1, "gone"))
    assert not c.engine.state.tripped
    assert of_kind(c.see(asks("d2", "xid:79", confirm=False)), BreakerTripped), "said anew"


@pytest.mark.parametrize("floor", [Policy(serving_floor=3), Policy(serving_floor_ppm=3 * PPM // 4)])
def test_the_floor_of_serving_hosts_holds_whoever_resets_the_breaker(floor: Policy) -> None:
    c = Cluster(hosts=FLEET, policy=replace(floor, breaker_hosts=9))
    step = c.see(*(asks(f"d{n}", "xid:79", host=f"h{n}", confirm=False) for n in (1, 2)))
    (tripped,) = of_kind(step, BreakerTripped)
    assert len(of_kind(step, HostMoved)) == 1 and "2 hosts would serve, fewer than the floor of 3" in tripped.reason
    assert not of_kind(c.later(HOUR, BreakerReset(OPS)), HostMoved)
    assert of_kind(c.see(UndrainRequested(H1, OPS)), HostMoved), "enough serve, and a person let it go"


def test_hosts_that_cannot_be_asked_do_not_hold_the_floor() -> None:
    c = Cluster(hosts=FLEET, policy=Policy(serving_floor=3))
    c.see(HostUnreachable(HostName("h4"), "timeout"))
    assert not of_kind(c.see(asks("d", "xid:79", confirm=False)), HostMoved)
    c.see(DrainRequested(DrainId("mine"), H1, OPS))
    assert c.host("h1").state is HostState.DRAINING, "a person may"
