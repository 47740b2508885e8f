"""Driving the console in tests: what is on the screen as text, and a clock that stands still."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from textual import events
from textual.pilot import Pilot

from opsconsole.ui.app import OpsConsoleApp
from opsconsole.ui.desk import Desk
from opsconsole.ui.screens.plan import PlanScreen
from opsconsole.ui.widgets.lines import Line, Lines
from tests.ui.worlds import FakeSource

SNAPSHOTS = Path(__file__).parent / "snapshots"
PATIENCE_S = 10.0  # on a machine that does much else
WRITE = "15m test of the console"


def seen(app: OpsConsoleApp) -> str:
    """The screen as text, line by line, as the terminal would show it."""
    lines = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in line).rstrip() for line in lines)


def status(app: OpsConsoleApp) -> str:
    return "".join(cell.text for cell in app.query_one("#status", Line).cells)


def plan_notes(app: OpsConsoleApp) -> str:
    """What the open dialog says against being carried out."""
    lines = app.screen.query_one("#plan-note", Lines).lines
    return "\n".join("".join(cell.text for cell in line) for line in lines)


@asynccontextmanager
async def console(
    source: FakeSource, size: tuple[int, int] = (120, 40), write: str = WRITE, desk: Desk | None = None
) -> AsyncIterator[tuple[OpsConsoleApp, Pilot[int]]]:
    app = OpsConsoleApp(source, write, desk)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield app, pilot


async def fill_plan(app: OpsConsoleApp, pilot: Pilot[int], reason: str = "because", count: str = "") -> PlanScreen:
    """What a person says in an open dialog; the commit button has the focus then."""
    screen = app.screen
    assert isinstance(screen, PlanScreen), f"no plan is open: {status(app)}"
    screen.query_one("#reason").focus()
    await paste(pilot, reason)
    if count:
        screen.query_one("#count").focus()
        await paste(pilot, count)
    screen.query_one("#commit").focus()
    await pilot.pause()
    return screen


async def select(app: OpsConsoleApp, pilot: Pilot[int], page: str, row: str) -> None:
    """To a page, onto a row."""
    await pilot.press(page)
    assert app.table is not None and app.table.move_to_key(row), f"{row} is not on page {page}"


async def open_plan(app: OpsConsoleApp, pilot: Pilot[int], page: str, row: str, key: str) -> None:
    """To a page, onto a row, and the key of an action."""
    await select(app, pilot, page, row)
    await pilot.press(key)


async def filled_plan(app: OpsConsoleApp, pilot: Pilot[int], page: str, row: str, key: str) -> PlanScreen:
    """Open, with a reason, and ready to be carried out."""
    await open_plan(app, pilot, page, row, key)
    return await fill_plan(app, pilot)


async def commit(pilot: Pilot[int]) -> None:
    """Enter on the button that has the focus."""
    await pilot.press("enter")
    await pilot.pause()


async def paste(pilot: Pilot[int], text: str) -> None:
    """Into what has the focus, at once: Pilot waits after each key until nothing moves."""
    assert pilot.app._driver is not None
    pilot.app._driver.send_message(events.Paste(text))
    await pilot.pause()


async def command(pilot: Pilot[int], line: str) -> None:
    """To the command line, and entered."""
    await pilot.press("colon")
    await paste(pilot, line)
    await pilot.press("enter")
    await pilot.pause()


async def carry_out(app: OpsConsoleApp, pilot: Pilot[int], line: str, reason: str = "because") -> None:
    """A command with a plan, from the first key to the last."""
    await command(pilot, line)
    await fill_plan(app, pilot, reason)
    await commit(pilot)


async def settled(app: OpsConsoleApp, pilot: Pilot[int]) -> str:
    """What is seen once nothing moves any more: what lies behind a dialog is painted a little later."""
    before, now = "", seen(app)
    while before != now:
        app.screen.refresh()
        await pilot.pause(0.1)
        await pilot.pause()
        before, now = now, seen(app)
    return now


async def check_snapshot(app: OpsConsoleApp, pilot: Pilot[int], name: str) -> None:
    """What is seen, against what is kept. OPSCONSOLE_UPDATE_SNAPSHOTS=1 keeps what is seen now: `make looks`."""
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("OPSCONSOLE_UPDATE_SNAPSHOTS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(await settled(app, pilot) + "\n")
    kept, end = path.read_text(), time.monotonic() + PATIENCE_S
    while seen(app) + "\n" != kept and time.monotonic() < end:
        app.screen.refresh()  # a look at a dialog that the app has not painted yet leaves nothing behind it
        await pilot.pause(0.1)
    await pilot.pause()
    text = seen(app) + "\n"
    assert kept == text, f"{name} looks different; the new look:\n{text}"
