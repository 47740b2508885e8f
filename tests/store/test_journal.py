"""Whole ticks, in order, for the highest epoch only; old ones go to files."""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path

import pytest

from opsconsole.errors import LostLease, StoreError
from opsconsole.store.store import Store
from scheduler_core.ids import HostName
from scheduler_core.observations import By, CordonRequested, HostStale, MemberReleased
from tests.store.filling import filled, folded

WISH = CordonRequested(HostName("h1"), By("ann", "why"))


def test_the_tail_is_given_in_whole_ticks(tmp_path: Path) -> None:
    store, _ = filled(tmp_path / "a.db", 60)
    everything = store.tail(0)
    for limit in (1, 2, 3, 7):
        read, after = [], 0
        while events := store.tail(after, limit):
            following = [e for e in everything if e.seq > events[-1].seq]
            assert not following or following[0].tick != events[-1].tick, "a tick was cut in two"
            read += events
            after = events[-1].seq
        assert read == everything


def test_recovery_reads_a_tail_of_any_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, scenario = filled(tmp_path / "a.db", 60)
    whole = store.tail
    monkeypatch.setattr(store, "tail", lambda after: whole(after, 3))
    assert store.recover().engine.state.ledgers == folded(scenario).state.ledgers


def test_an_older_epoch_can_neither_commit_nor_renew_nor_leave_a_snapshot(tmp_path: Path) -> None:
    old, _ = filled(tmp_path / "a.db", 5)
    old.release(1)
    new = Store(old.path)
    assert new.acquire("serve") == 2
    for write in (
        lambda: old.commit(1, 99, 1, [WISH], [], []),
        lambda: old.renew(1),
        lambda: old.snapshot(old.recover().engine, 99, 1, 1),
        lambda: old.refuse(1, 1, "no"),
    ):
        with pytest.raises(LostLease, match="another leader"):
            write()
    old.release(1)
    assert new.lease().live, "an old leader that leaves does not end the new one's lease"


def test_since_gives_the_newest_that_people_care_for(tmp_path: Path) -> None:
    store, _ = filled(tmp_path / "a.db", 60)
    told = [e for e in store.tail(0) if e.told]
    assert store.since(0) == told
    assert store.since(0, limit=5) == told[-5:]
    assert store.since(told[-1].wall_ms + 1_000_000) == []


def test_old_rows_go_to_files_and_recovery_does_not_miss_them(tmp_path: Path) -> None:
    store, scenario = filled(tmp_path / "a.db", 60)
    assert store.archive(keep_ms=-1) == 0, "without a snapshot every row is needed"
    half = [e for e in store.tail(0) if e.tick <= 30]
    store.snapshot(folded(scenario, 30), 30, half[-1].seq, 1)
    assert store.archive() == 0, "nothing is older than 90 days"
    assert store.archive(keep_ms=-1) == len(half)
    assert store.tail(0)[0].seq == half[-1].seq + 1
    (archive,) = (tmp_path / "a.archive").iterdir()
    with gzip.open(archive, "rt") as kept:
        lines = [json.loads(line) for line in kept]
    assert [(line[0], line[5]) for line in lines] == [(e.seq, e.kind) for e in half]
    assert Store(store.path).recover().engine.state.workloads == scenario.engine.state.workloads


def test_a_journal_with_a_gap_is_refused(tmp_path: Path) -> None:
    """Its beginning is archived, the snapshots that hold it cannot be read: what is left would be another cluster."""
    store, scenario = filled(tmp_path / "a.db", 60)
    half = [e for e in store.tail(0) if e.tick <= 30]
    store.snapshot(folded(scenario, 30), 30, half[-1].seq, 1)
    assert store.archive(keep_ms=-1) == len(half)
    with sqlite3.connect(store.path) as db:
        db.execute("UPDATE snapshots SET body = x'00'")
    with pytest.raises(StoreError, match=f"no snapshot can be read, and the first {len(half)} journal rows"):
        Store(store.path).recover()


# -- requests ------------------------------------------------------------------------------------------------------


def test_a_request_is_answered_by_the_tick_that_holds_it(tmp_path: Path) -> None:
    store = Store(tmp_path / "a.db")
    assert store.acquire("serve") == 1
    rid = store.another().ask(WISH)
    assert store.outcome(rid) is None
    (request,) = store.open_requests()
    store.commit(1, 1, 1, [request.observation], [], [], [request.id])
    assert store.outcome(rid) == "accepted" and not store.open_requests()
    assert not store.withdraw(rid)
    assert store.tail(0)[0].value == WISH


def test_a_request_can_be_refused_or_taken_back(tmp_path: Path) -> None:
    store = Store(tmp_path / "a.db")
    assert store.acquire("serve") == 1
    first, second = store.ask(WISH), store.ask(WISH)
    store.refuse(1, first, "no such host")
    assert store.outcome(first) == "refused: no such host"
    assert store.withdraw(second) and store.outcome(second) is None
    assert not store.open_requests()


def test_nobody_may_speak_for_a_host(tmp_path: Path) -> None:
    store = Store(tmp_path / "a.db")
    with pytest.raises(StoreError, match="cannot be asked for"):
        store.ask(MemberReleased("r1", "h1"))  # type: ignore[arg-type]
    with store._db as db:
        for kind, body in (("HostStale", '{"host": "h1"}'), ("Teleported", "{}"), ("CordonRequested", "{")):
            db.execute("INSERT INTO requests (wall_ms, kind, body) VALUES (0, ?, ?)", (kind, body.encode()))
    reasons = [request.refused for request in store.open_requests()]
    assert "cannot be asked for" in reasons[0] and "does not know" in reasons[1] and "damaged" in reasons[2]
    assert HostStale.__name__ in reasons[0]
