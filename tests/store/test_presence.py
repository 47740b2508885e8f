"""Who has which plan open, between consoles of one store: told, renewed, forgotten; never in the journal."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

import opsconsole.store.store as module
from opsconsole.cli import presence
from opsconsole.cli.presence import Presence
from opsconsole.clock import wall_now_ms
from opsconsole.presenting.view import OpenPlan
from opsconsole.store.presence import LIVES_MS
from opsconsole.store.store import Store

DRAIN = OpenPlan("kim", "drain", ("gpu001", "gpu002"), 1_000)
CORDON = OpenPlan("lee", "cordon", ("gpu002",), 2_000)


def console(path: Path) -> tuple[Presence, list[int]]:
    """As a console keeps it; the list grows when there is news."""
    heard: list[int] = []
    store = Store(path)
    return Presence(store, lambda: heard.append(1)), heard


def test_others_hear_of_a_plan_and_that_it_was_left(tmp_path: Path) -> None:
    (kim, _), (lee, heard) = console(tmp_path / "a.db"), console(tmp_path / "a.db")
    kim.tell(DRAIN)
    lee.tell(CORDON)
    for each in (kim, lee):
        each.look()
    assert (list(kim.others), list(lee.others), heard) == ([CORDON], [DRAIN], [1]), "never of its own"
    kim.tell(None)
    lee.look()
    assert (list(lee.others), heard) == ([], [1, 1])
    assert Store(tmp_path / "a.db").tail(0) == []


def test_a_console_that_died_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (kim, _), (lee, _) = console(tmp_path / "a.db"), console(tmp_path / "a.db")
    kim.tell(DRAIN)
    later = wall_now_ms() + LIVES_MS + 1
    monkeypatch.setattr(module, "wall_now_ms", lambda: later)
    lee.look()
    assert list(lee.others) == []
    lee.tell(CORDON)
    rows = Store(tmp_path / "a.db")._db.execute("SELECT count(*) FROM meta WHERE key LIKE 'presence%'").fetchone()
    assert rows == (1,), "and taken away by the next who tells something"


async def test_a_plan_that_stays_open_is_told_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "LOOK_S", 0.01)
    monkeypatch.setattr(presence, "RENEW_S", 0.05)
    kim, _ = console(tmp_path / "a.db")
    kim.tell(DRAIN)
    kim.store.put_presence(kim.console, "")
    lee, _ = console(tmp_path / "a.db")
    running = asyncio.create_task(kim.run())
    async with asyncio.timeout(10):
        while not lee.others:
            lee.look()
            await asyncio.sleep(0.01)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


def test_what_another_version_says_harms_nobody(tmp_path: Path) -> None:
    kim, _ = console(tmp_path / "a.db")
    Store(tmp_path / "a.db").put_presence("other", '{"who": 7}')
    kim.look()
    assert list(kim.others) == []
