"""The newest readings, for followers: what is put comes back, and only what the follower does not know yet."""

from __future__ import annotations

import os
from pathlib import Path

from opsconsole.store.store import Store

BODY = b'{"gpus": [' + b", ".join(b'{"readings": {"temperature_c": {"v": 60}}}' for _ in range(500)) + b"]}"


def test_only_what_is_news_is_read(tmp_path: Path) -> None:
    leader = Store(tmp_path / "a.db")
    follower = leader.another()
    assert follower.readings({}) == {}
    leader.put_readings({"h1": (1000, BODY), "h2": (1001, b"{}")})
    assert follower.readings({}) == {"h1": (1000, BODY), "h2": (1001, b"{}")}
    leader.put_readings({"h2": (900, b"[]")})  # the wall clock may step back
    assert follower.readings({"h1": 1000, "h2": 1001}) == {"h2": (900, b"[]")}
    assert follower.readings({"h1": 1000, "h2": 900}) == {}
    leader.put_readings({"h1/kernel": (1002, b"{}")})
    assert follower.readings({}, ending="/kernel") == {"h1/kernel": (1002, b"{}")}


def test_readings_do_not_wear_the_disk_out(tmp_path: Path) -> None:
    """They are written every few seconds, for ever: a tenth of their size is enough."""
    store = Store(tmp_path / "a.db")
    before = os.path.getsize(f"{store.path}-wal")
    store.put_readings({f"gpu{n:03}": (n, BODY) for n in range(100)})
    assert os.path.getsize(f"{store.path}-wal") - before < 100 * len(BODY) / 10
