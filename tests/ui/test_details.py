"""The details of hosts and workloads, drains and the log: moving into them, along them, and back; what they say."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot

from opsconsole.ui.app import OpsConsoleApp
from opsconsole.ui.places import Place
from opsconsole.ui.screens.plan import PlanScreen
from opsconsole.ui.source import OutputPiece
from scheduler_core.ids import DrainId, HostName, RunId, WorkloadId
from scheduler_core.observations import (
    By,
    DrainRequested,
    HostSeen,
    MemberExited,
    MemberReleased,
    MemberStarted,
    UndrainRequested,
)
from scheduler_core.units import HOUR, MINUTE
from tests.core.clusters import Cluster
from tests.ui.driving import command, console, seen, settled, status
from tests.ui.worlds import FakeSource, busy_world, told_world

NARROW, WIDE = (80, 24), (120, 40)


async def shows(app: OpsConsoleApp, pilot: Pilot[int], text: str) -> str:
    """All that is seen, once this is: output comes when it comes."""
    for _ in range(100):
        if text in (now := await settled(app, pilot)):
            return now
    raise AssertionError(f"waited for {text!r}; seen:\n{seen(app)}")


def header(app: OpsConsoleApp) -> str:
    return seen(app).splitlines()[0]


# -- moving ------------------------------------------------------------------------------------------------------------


async def test_the_way_into_details_and_back_stands_in_the_header() -> None:
    async with console(busy_world(), WIDE) as (app, pilot):
        await pilot.press("2", "j", "j", "j", "enter")
        assert app.place == Place("host", "gpu004") and header(app).startswith(" hosts › gpu004 |")
        await pilot.press("tab", "j", "enter")
        assert app.place == Place("workload", "w5")
        assert header(app).startswith(" hosts › gpu004 › eval-mmlu w5 |")
        await pilot.press("escape")
        assert app.place == Place("host", "gpu004") and app.pane == "h-runs"
        await pilot.press("minus", "minus")
        assert app.page == "overview"


async def test_brackets_go_along_the_rows_that_a_detail_was_opened_from() -> None:
    async with console(busy_world(), WIDE) as (app, pilot):
        await pilot.press("2", "enter", "right_square_bracket", "right_square_bracket")
        assert app.place == Place("host", "gpu003")
        await pilot.press("left_square_bracket", "left_square_bracket")
        assert app.place == Place("host", "gpu001")
        await pilot.press("left_square_bracket")
        assert app.place == Place("host", "gpu001") and "the first one" in status(app)
        await pilot.press("right_square_bracket", "tab", "enter")
        assert app.place == Place("workload", "w2"), "of gpu002, whose page it was"
        await pilot.press("minus", "minus")
        assert app.page == "hosts" and app.table is not None and app.table.rowset.cursor == "gpu002"


async def test_brackets_follow_what_came_meanwhile() -> None:
    source = busy_world()
    async with console(source, WIDE) as (app, pilot):
        await pilot.press("3", "G", "enter")
        assert app.place == Place("workload", "w9")
        source.cluster.submit("w10", "vision", 8, HOUR, owner="tom", name="late")
        source.changed()
        app.redraw()
        await pilot.press("right_square_bracket")
        assert app.place == Place("workload", "w10")


@pytest.mark.parametrize(("name", "page"), [("gpu005", "host"), ("w6", "workload"), ("olmo-7b", "workload")])
async def test_go_takes_names(name: str, page: str) -> None:
    async with console(busy_world(), WIDE) as (app, pilot):
        await command(pilot, f"go {name}")
        assert app.page == page


async def test_a_gpu_opens_the_workload_that_holds_it_and_nothing_else() -> None:
    """Its row's name is a number, as those of the timeline are."""
    async with console(busy_world(), WIDE) as (app, pilot):
        await pilot.press("2", "enter", "j", "enter")
        assert app.place == Place("workload", "w1")


async def test_a_page_forgets_the_cursor_of_another_subject() -> None:
    async with console(busy_world(), WIDE) as (app, pilot):
        await pilot.press("2", "enter", "j", "j", "space", "right_square_bracket")
        assert app.table is not None and app.table.rowset.cursor == "gpu:0" and not app.table.rowset.marks


# -- acting from details -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pane", range(3))
async def test_on_every_pane_of_a_host_a_drain_is_of_that_host(pane: int) -> None:
    async with console(told_world(), WIDE) as (app, pilot):
        await pilot.press("2", "j", "j", "enter", *["tab"] * pane, "D")
        assert isinstance(app.screen, PlanScreen) and app.screen.plan.targets == ("gpu003",)


async def test_on_the_output_a_cancel_is_of_the_workload() -> None:
    async with console(told_world(), WIDE) as (app, pilot):
        await command(pilot, "go w6")
        await pilot.press("tab", "k", "K")
        assert isinstance(app.screen, PlanScreen) and app.screen.plan.targets == ("w6",)


@pytest.mark.parametrize("pane", range(3))
async def test_on_every_pane_of_the_drains_undrain_is_of_the_selected_one(pane: int) -> None:
    async with console(busy_world(), WIDE) as (app, pilot):
        await pilot.press("5", *["tab"] * pane, "U")
        assert isinstance(app.screen, PlanScreen) and app.screen.plan.targets == ("gpu001",)


# -- what they say -----------------------------------------------------------------------------------------------------


async def test_a_host_that_is_lost_says_so_of_all_that_is_known_of_it() -> None:
    async with console(busy_world(), WIDE) as (app, pilot):
        await command(pilot, "go gpu006")
        text = await settled(app, pilot)
        assert "✖ auth failed: Permission denied (publickey) for 4m20s" in text
        assert "as they were when last read" in text and "was 400W" in text
        assert "Runs, as it was last heard of" in text and "? unverified" in text


async def test_a_contract_is_a_bar_with_words() -> None:
    source = busy_world()
    async with console(source, WIDE) as (app, pilot):
        await command(pilot, "go w1")
        assert "] 56m of 2h, protected for 1h04m, until 15:36" in await settled(app, pilot)
        source.happen(later_ms=65 * MINUTE)
        app.redraw()
        await pilot.pause()
        assert "gpu001: stops it" not in seen(app)
        await command(pilot, "go w4")
        assert "unallocated: free of charge, never protected" in await settled(app, pilot)
        await command(pilot, "go w7")
        assert "waiting, 2nd in the queue" in await settled(app, pilot) and "it has not run yet" in seen(app)


async def test_what_was_forgotten_is_said_and_not_shown_as_empty() -> None:
    async with console(busy_world(), WIDE) as (app, pilot):
        app.go("workload", "gone")
        assert "no workload is called so now" in await settled(app, pilot)
        app.go("host", "gone")
        assert "no host is called so now" in await settled(app, pilot) and "this host is not known" in seen(app)


async def test_output_follows_on_its_last_line_and_stays_further_up() -> None:
    source = told_world()
    async with console(source, WIDE) as (app, pilot):
        await command(pilot, "go w6")
        await pilot.press("tab")
        text = await shows(app, pilot, "saved 20%")
        assert "loss 0.075" in text and "[32m" not in text and "saved 10%" not in text
        assert app.table is not None and app.table.rowset.cursor == "line:41"
        await pilot.press("k", "k")
        app.output.text.feed(b"\nmore\n")
        app.redraw()
        await pilot.pause()
        assert app.table.rowset.cursor == "line:39"
        await pilot.press("G")
        app.output.text.feed(b"and more\n")
        app.redraw()
        await pilot.pause()
        assert app.table.rowset.current is not None and app.table.rowset.current.data["text"] == "and more"


async def test_output_that_cannot_be_read_says_why_and_is_left_behind_with_the_page() -> None:
    source = busy_world()
    source.output_fails = RuntimeError("gpu001 cannot be asked: refused")
    async with console(source, WIDE) as (app, pilot):
        await command(pilot, "go w1")
        await shows(app, pilot, "✖ gpu001 cannot be asked: refused")
        await pilot.press("1")
        await pilot.pause()
        assert app.output.idle


async def test_the_steps_of_a_drain_tell_what_is_done_and_what_comes() -> None:
    source = busy_world()
    async with console(source, WIDE) as (app, pilot):
        await pilot.press("5")
        text = await settled(app, pilot)
        assert "✓ nothing new starts" in text and "… min runtimes pass" in text and "1h04m" in text
        source.happen(UndrainRequested(HostName("gpu001"), By("lee", "the fan is fine")), later_ms=MINUTE)
        app.redraw()
        text = await settled(app, pilot)
        assert "0 running, 1 ended in the last day" in text and "undrained: taken back" in text
        assert source.state.drains[DrainId("d41")].ended == "undrained"


async def test_a_blocked_drain_says_by_what() -> None:
    source = busy_world()
    async with console(source, WIDE) as (app, pilot):
        await pilot.press("2", "G", "D")
        await pilot.press("escape")
        source.happen(DrainRequested(DrainId("d42"), HostName("gpu006"), By("kim", "switch")), later_ms=1000)
        app.redraw()
        await pilot.press("5")
        text = await settled(app, pilot)
        assert "BLOCKED" in text and "✖ known empty" in text


async def test_the_log_tells_of_links_requests_and_what_was_refused() -> None:
    source = busy_world()
    async with console(source, WIDE) as (app, pilot):
        await command(pilot, "nonsense")
        source.happen(HostSeen(HostName("gpu006"), "boot1"), later_ms=1000)
        source.broken = RuntimeError("disk on fire")
        app.redraw()
        source.broken = None
        source.leader = "nobody"
        source.changed()
        app.redraw()
        await pilot.press("8")
        text = await settled(app, pilot)
        for told in (
            "no command 'nonsense'",
            "gpu006 answers again",
            "worker    picture: picture failed: RuntimeError: disk on fire",
            "worker    picture: over",
            "nobody leads: nothing is scheduled",
            "gpu006 unreachable: auth failed",
        ):
            assert told in text, told


async def test_the_smallest_screen_has_room_for_rows_below_the_facts() -> None:
    async with console(busy_world(), (60, 15)) as (app, pilot):
        await command(pilot, "go w7")
        text = await settled(app, pilot)
        assert "x tells the rest" in text and "it has not run yet" in text
        await pilot.resize_terminal(59, 15)
        await pilot.pause()
        assert "needs at least 60×15, this is 59×15" in seen(app)


# -- freshness ---------------------------------------------------------------------------------------------------------


async def test_a_follower_says_whom_it_follows_and_how_far_behind_it_is() -> None:
    source = busy_world()
    source.lag_s = 1.2
    async with console(source, WIDE) as (app, pilot):
        assert "leader: serve at head | 1s behind" in header(app)
        source.lag_s = 12.0
        source.changed()
        app.redraw()
        await pilot.press("2")
        text = await settled(app, pilot)
        assert "picture 12s OLD" in text and "Hosts (6)  as of 14:31:55" in text


async def test_a_held_picture_says_since_when() -> None:
    async with console(busy_world(), WIDE) as (app, pilot):
        await pilot.press("3", "p")
        assert "PAUSED 0s" in header(app)
        assert app.paused_at is not None
        app.paused_at -= 75
        app.redraw()
        text = await settled(app, pilot)
        assert "PAUSED 1m15s" in text and "as of 14:32:07" in text, "the age goes on while the picture does not"
        await pilot.press("p")
        assert "PAUSED" not in header(app)


async def test_runs_on_a_lost_host_are_unverified() -> None:
    async with console(busy_world(), WIDE) as (app, pilot):
        await pilot.press("3")
        text = await settled(app, pilot)
        assert "Running, 1 unverified (6)" in text and "? unverified: gpu006" in text


async def test_output_is_of_the_selected_run_and_goes_on_to_a_newer_one() -> None:
    cluster, host = Cluster({"a": 1}, {"h1": 8}), HostName("h1")
    cluster.running("w", "a", 8, HOUR, resumable=True)
    source = FakeSource(cluster)
    source.outputs = {run: [OutputPiece(f"this is {run}\n".encode())] for run in ("w~1", "w~2")}
    async with console(source, WIDE) as (app, pilot):
        await command(pilot, "go w")
        await shows(app, pilot, "this is w~1")
        source.happen(MemberExited(RunId("w~1"), host, 1), MemberReleased(RunId("w~1"), host), later_ms=1000)
        cluster.later(HOUR)
        assert source.state.workloads[WorkloadId("w")].run == "w~2"
        source.happen(MemberStarted(RunId("w~2"), host), later_ms=1000)
        app.redraw()
        app.redraw()
        await shows(app, pilot, "this is w~2")
        await pilot.press("j")
        assert "failed" in await shows(app, pilot, "this is w~1")
