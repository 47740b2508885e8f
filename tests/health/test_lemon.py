"""Cards and slots that break again and again, and which of both the fault follows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsconsole.health.lemon import (
    HALF_LIFE_MS,
    MOST_FAULTS,
    Fault,
    Lemon,
    faults_of,
    grown,
    lemons,
    read_book,
    write_book,
)
from tests.health.said import but, gpu, lost, pci, probe, verdict, xid


def fault(card: str, host: str = "h1", slot: int = 0, at_ms: int = 0, boot: str = "b1", **more: Any) -> Fault:
    return Fault(at_ms, host, boot, more.get("rule", "xid:79"), more.get("severity", "F"), pci(slot), slot, card)


def named(found: list[Lemon], kind: str) -> dict[str, Lemon]:
    return {one.name: one for one in found if one.kind == kind}


def test_what_drains_and_is_about_a_gpu_counts() -> None:
    said = but(3, lost(3))
    found = faults_of("h1", verdict(said, xid(79, slot=3), xid(94, slot=5), xid(31, slot=6)), said, 7)
    assert [(f.rule, f.slot, f.card, f.severity) for f in found] == [
        ("xid:79", 3, "GPU-0003", "F"),
        ("gpu:lost", 3, "GPU-0003", "F"),
        ("xid:94", 5, "GPU-0005", "D"),
    ]
    assert found[2].serial, "of one that can be read"
    host = probe(driver={"failed": "driver hang"})
    assert faults_of("h1", verdict(host), host, 7) == []
    watched = but(3, gpu(3, clock_event_reasons=["hw_thermal_slowdown"]))
    assert faults_of("h1", verdict(watched), watched, 7) == [], "not yet"


def test_each_counts_once_a_boot() -> None:
    first = fault("c1")
    book = grown([], [first])
    assert book == [first]
    assert grown(book, [fault("c1", at_ms=99)]) is None
    assert grown(book, [fault("c1", boot="b2")]) == [first, fault("c1", boot="b2")]
    assert len(grown([fault("c", boot=str(n)) for n in range(MOST_FAULTS)], [first]) or ()) == MOST_FAULTS


def test_a_fault_that_moves_with_its_card() -> None:
    found = lemons([fault("c1", slot=0), fault("c1", slot=4, boot="b2"), fault("c2", slot=7)], 0)
    cards = named(found, "card")
    assert (cards["c1"].follows, cards["c1"].score, cards["c1"].seen) == ("card", 4, ("h1 GPU 0", "h1 GPU 4"))
    assert cards["c2"].follows == "" and not any(one.follows for one in named(found, "slot").values())
    assert found[0].name == "c1"


def test_a_fault_that_stays_where_it_was() -> None:
    found = lemons([fault("c1"), fault("c2", boot="b2"), fault("", boot="b3")], 0)
    slot = named(found, "slot")["h1 GPU 0"]
    assert (slot.follows, slot.score, slot.seen) == ("slot", 6, ("c1", "c2")), "nobody knows the third card"


def test_what_is_old_counts_less() -> None:
    (card, _) = lemons([fault("c1"), fault("c1", boot="b2", severity="D", at_ms=HALF_LIFE_MS)], HALF_LIFE_MS)
    assert card.score == pytest.approx(2.0)


faults = st.builds(fault, st.sampled_from(["", "c1", "c2"]), st.sampled_from(["h1", "h2"]), st.integers(0, 2))


@given(st.lists(faults))
def test_every_fault_counts_once_for_its_slot_and_once_for_its_card(book: list[Fault]) -> None:
    found = lemons(book, 0)
    assert sum(len(one.faults) for one in named(found, "slot").values()) == len(book)
    assert sum(len(one.faults) for one in named(found, "card").values()) == sum(bool(f.card) for f in book)
    assert read_book(write_book(book)) == book


def test_a_book_that_nobody_can_read_is_empty() -> None:
    assert read_book(None) == read_book('[{"at": 1}]') == read_book("{") == []
