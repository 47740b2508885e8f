"""Many hosts at one time are one incident, by what they share; few are their own."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from opsconsole.health.incidents import MANY, TOGETHER_S, Fault, faults_of, incidents
from tests.health.said import but, lost, verdict, xid

LABELS = {f"gpu{n:02}": {"switch": f"leaf{n // 8}", "rack": f"r{n // 16}", "model": "h100"} for n in range(32)}


def faults(*hosts: int, ago_s: float = 10.0) -> list[Fault]:
    return [Fault(f"gpu{n:02}", "xid:74", ago_s + n) for n in hosts]


def test_hosts_of_one_switch_are_one_incident() -> None:
    (found,) = incidents(faults(8, 9, 10, 11, 13, 15), LABELS)
    assert (found.place, len(found.hosts), found.many) == ("switch=leaf1", 6, True)


def test_two_switches_of_one_rack_are_the_racks() -> None:
    (found,) = incidents(faults(*range(16)), LABELS)
    assert found.place == "rack=r0"


def test_a_label_that_sound_hosts_have_too_is_no_cause() -> None:
    (found,) = incidents(faults(0, 8, 17, 25), LABELS)
    assert found.place == "cluster" and found.many


def test_one_or_two_are_their_own() -> None:
    found = incidents(faults(0, 1), LABELS)
    assert [(one.hosts, one.place, one.many) for one in found] == [(("gpu00",), "", False), (("gpu01",), "", False)]


def test_what_is_far_apart_in_time_is_not_one() -> None:
    apart = [Fault(f"gpu{n:02}", "xid:79", n * (TOGETHER_S + 1)) for n in range(8)]
    assert all(not one.many for one in incidents(apart, LABELS))


def test_a_host_of_another_place_at_the_same_time_stands_apart() -> None:
    found = incidents([*faults(8, 9, 10, 11), *faults(30)], LABELS)
    assert sorted((one.place, one.hosts) for one in found) == [
        ("", ("gpu30",)),
        ("switch=leaf1", ("gpu08", "gpu09", "gpu10", "gpu11")),
    ]


def test_faults_are_the_worst_of_hosts_and_those_that_cannot_be_asked() -> None:
    verdicts = {"a": verdict(None, xid(79, ago_s=30)), "b": verdict(), "c": verdict(but(3, lost(3)), xid(94))}
    found = faults_of(verdicts, {"d": 12.0, "a": 3.0})
    assert sorted((f.host, f.rule, f.ago_s) for f in found) == [
        ("a", "silent", 3.0),
        ("c", "gpu:lost", 0.0),
        ("d", "silent", 12.0),
    ]


@given(st.lists(st.tuples(st.integers(0, 31), st.floats(0, 2000)), unique_by=lambda one: one[0]))
def test_every_fault_is_in_one_incident(told: list[tuple[int, float]]) -> None:
    given_faults = [Fault(f"gpu{n:02}", "xid:79", ago) for n, ago in told]
    found = incidents(given_faults, LABELS)
    hosts = [host for one in found for host in one.hosts]
    assert sorted(hosts) == sorted(fault.host for fault in given_faults)
    assert all(len(one.hosts) >= MANY if one.many else len(one.hosts) == 1 for one in found)
