"""Beyond the screen: copying, being told, the mouse; logging in and the shell have a real terminal of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from opsconsole.settings import Settings
from opsconsole.ui.app import OpsConsoleApp
from opsconsole.ui.desk import Desk
from opsconsole.ui.screens.watches import WatchesScreen
from opsconsole.ui.terminal import desktop_notice
from scheduler_core.ids import HostName
from scheduler_core.observations import By, HostUnreachable, UndrainRequested
from tests.ui.driving import command, console, seen, select, status
from tests.ui.worlds import FakeSource, busy_world

OTHER = By("lee", "is done")


async def test_what_is_selected_or_marked_is_copied_to_the_clipboard_and_a_file() -> None:
    saved: list[str] = []

    def save(text: str) -> str:
        saved.append(text)
        return "/state/copied.txt"

    async with console(busy_world(), (160, 40), desk=Desk(save_copy=save)) as (app, pilot):
        await pilot.press("2", "j", "y")
        assert app.clipboard == "gpu002" and saved == ["gpu002"]
        assert status(app).strip() == (
            "copied to /state/copied.txt, and to the clipboard where the terminal takes it: gpu002"
        )
        await pilot.press("space", "space", "y")
        assert app.clipboard == "gpu002\ngpu003" and "2 lines" in status(app)
        await command(pilot, "copy row")
        assert app.clipboard.startswith("gpu002\t") and app.clipboard.count("\n") == 1
        await command(pilot, "copy screen")
        assert "HOST" in app.clipboard and len(app.clipboard.splitlines()) == 40
        await command(pilot, "copy all")
        assert "name, row, screen can be copied" in status(app)


async def test_a_copy_that_cannot_be_written_says_so() -> None:
    async with console(busy_world(), (160, 40)) as (app, pilot):
        await pilot.press("2", "y")
        assert app.clipboard == "gpu001"
        assert "to no file (this console keeps no files): gpu001" in status(app)


@pytest.mark.parametrize(
    ("page", "row", "what"),
    [("2", "gpu001", "drain gpu001"), ("2", "gpu002", "host gpu002"), ("3", "w7", "workload w7")],
)
async def test_one_key_watches_and_drops(page: str, row: str, what: str) -> None:
    async with console(busy_world(), (160, 40)) as (app, pilot):
        await select(app, pilot, page, row)
        await pilot.press("n")
        assert [*app.watches] == [what] and f"you will be told of {what}" in status(app)
        await pilot.press("n")
        assert not app.watches and f"no more of {what}" in status(app)


async def test_the_end_of_a_drain_a_run_and_a_host_is_told_once() -> None:
    source = busy_world()
    async with console(source, (160, 40)) as (app, pilot):
        told = notices(app)
        await command(pilot, "notify gpu001 gpu002 w5~1 w5")
        assert {*app.watches} == {"drain gpu001", "host gpu002", "run w5~1", "workload w5"}
        await pilot.press("p")
        source.happen(UndrainRequested(HostName("gpu001"), OTHER))
        await pilot.pause(1.2)
        assert told == ["drain of gpu001 ended: the host is serving"], "also while the picture is held still"
        assert "✓ drain of gpu001 ended" in status(app)
        await pilot.press("p")
        source.happen(HostUnreachable(HostName("gpu002"), "timed out"))
        source.cluster.finish("w5")
        source.changed()
        await pilot.pause(1.2)
        assert len(told) == 2 and not app.watches
        assert "host gpu002 is serving, unreachable, was serving" in told[1]
        assert "run eval-mmlu w5~1 ended: succeeded; workload eval-mmlu w5 ended: succeeded" in told[1]


async def test_what_is_watched_is_listed_and_can_be_dropped() -> None:
    source = busy_world()
    async with console(source, (160, 40)) as (app, pilot):
        await command(pilot, "notify gpu001 gpu002")
        source.happen(UndrainRequested(HostName("gpu001"), OTHER))
        await pilot.pause(1.2)
        await command(pilot, "watches")
        assert isinstance(app.screen, WatchesScreen)
        await pilot.pause()
        assert "host gpu002" in seen(app) and "drain of gpu001 ended: the host is serving" in seen(app)
        await pilot.press("delete")
        await pilot.pause()
        assert not app.watches and "host gpu002" not in seen(app)


async def test_what_has_no_end_is_not_watched() -> None:
    async with console(busy_world(), (160, 40)) as (app, pilot):
        await command(pilot, "notify nonsense")
        assert "nonsense is nothing that will end" in status(app) and not app.watches


async def test_one_host_at_a_time_is_logged_in_on() -> None:
    async with console(busy_world(), (160, 40)) as (app, pilot):
        await pilot.press("4")
        await command(pilot, "ssh")
        assert "select a host first" in status(app)
        await pilot.press("2", "space", "space", "s")
        assert "one host at a time" in status(app)
        await command(pilot, "ssh gpu003")
        await pilot.pause()
        assert "elsewhere: ssh -p 22 gpu003" in status(app), "a terminal that is none"


async def test_a_login_that_cannot_be_is_said() -> None:
    class Homeless(FakeSource):
        async def login(self, host: str) -> list[str]:
            raise OSError("ProxyJump runs in a circle")

    async with console(Homeless(busy_world().cluster), (160, 40)) as (app, pilot):
        await command(pilot, "ssh gpu003")
        await pilot.pause()
        assert "ProxyJump runs in a circle" in seen(app)


async def test_the_mouse_can_be_given_away() -> None:
    async with console(busy_world(), (160, 40), desk=Desk(Settings(mouse=False))) as (app, pilot):
        assert not app.mouse
        await command(pilot, "mouse")
        assert app.mouse and "the console takes the mouse" in status(app)


def test_a_notice_is_plain_text_and_passes_tmux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMUX", raising=False)
    assert desktop_notice("w;7\x1b]0;x\x07 ended") == "\x1b]777;notify;opsconsole;w,7]0,x ended\x1b\\"
    monkeypatch.setenv("TMUX", str(Path("/tmp/tmux")))
    assert desktop_notice("w7") == "\x1bPtmux;\x1b\x1b]777;notify;opsconsole;w7\x1b\x1b\\\x1b\\"


def notices(app: OpsConsoleApp) -> list[str]:
    """What is told, as it is told."""
    told: list[str] = []
    tell = app._notice

    def listening(text: str) -> None:
        told.append(text)
        tell(text)

    app._notice = listening  # type: ignore[method-assign]
    return told
