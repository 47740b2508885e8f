"""Actions while the world changes between key and commit: the thing acted on is the thing named."""

from __future__ import annotations

import pytest
from textual.widgets import Button, Input

from opsconsole.ui.actions import ACTIONS
from opsconsole.ui.screens.plan import PlanScreen
from opsconsole.ui.widgets.table import Table
from scheduler_core.ids import HostName, WorkloadId
from scheduler_core.observations import (
    By,
    CancelRequested,
    CordonRequested,
    DrainRequested,
    HostUnreachable,
    RequeueRequested,
    UndrainRequested,
)
from scheduler_core.units import HOUR
from tests.ui.driving import command, commit, console, fill_plan, filled_plan, open_plan, plan_notes, seen, status
from tests.ui.worlds import OTHER, FakeSource, busy_world

pytestmark = pytest.mark.usefixtures("fast")


async def test_read_only_is_the_start_and_opening_a_plan_sends_nothing() -> None:
    source = busy_world()
    async with console(source, write="") as (app, pilot):
        await pilot.press("2", "D", *"why", "f2")
        await pilot.pause()
        assert "read-only: Esc, then :write" in plan_notes(app) and "(•) finish" in seen(app), "ways can be compared"
        assert "Reason" not in seen(app) and "Drain 1 host" not in seen(app)
        await pilot.press("tab", "enter")
        assert source.asked == []


@pytest.mark.parametrize(
    ("page", "row", "key", "says"),
    [
        ("2", "gpu003", "U", "gpu003: undrain does nothing to a serving host"),
        ("3", "w7", "R", "w7: no run that could be stopped"),
    ],
)
async def test_where_nothing_could_be_done_there_is_nothing_to_fill_in(
    page: str, row: str, key: str, says: str
) -> None:
    async with console(busy_world()) as (app, pilot):
        await open_plan(app, pilot, page, row, key)
        await pilot.pause()
        assert says in seen(app) and "[>Back<]" in seen(app)
        assert not any(word in seen(app) for word in ("Reason", "Type ", "$ opsconsole", "Undrain 1", "Requeue 1"))


async def test_a_button_says_what_it_does_and_to_how_many() -> None:
    async with console(busy_world()) as (app, pilot):
        await open_plan(app, pilot, "3", "w9", "K")
        await pilot.pause()
        assert "[ Cancel 1 workload ]" in seen(app) and "[>Back<]" in seen(app)


async def test_a_reason_that_is_typed_at_once_is_kept_and_commits_nothing() -> None:
    source = busy_world()
    async with console(source) as (app, pilot):
        await open_plan(app, pilot, "2", "gpu003", "C")
        await pilot.press(*"fan", "space", *"2D")
        assert isinstance(app.focused, Input) and app.focused.value == "fan 2D"
        await pilot.press("enter")
        assert app.focused is not None and app.focused.id == "ticket"
        await pilot.press("enter")
        assert source.asked == [] and isinstance(app.focused, Button) and app.focused.id == "commit"
        await commit(pilot)
        assert [type(o) for o in source.asked] == [CordonRequested]


@pytest.mark.parametrize("key", [a.keys[0] for a in ACTIONS if a.where == "app" and a.keys and a.name != "quit"])
async def test_no_single_key_changes_anything_and_enter_on_a_fresh_dialog_cancels(key: str) -> None:
    source = busy_world()
    async with console(source) as (app, pilot):
        await pilot.press("2", key)
        await commit(pilot)
        assert source.asked == []
        assert not isinstance(app.screen, PlanScreen)


async def test_a_drain_is_requested_then_followed_to_its_end() -> None:
    source = busy_world()
    async with console(source) as (app, pilot):
        await pilot.press("2", "j", "j", "D")
        await fill_plan(app, pilot, "fan")
        await commit(pilot)
        (asked,) = source.asked
        assert isinstance(asked, DrainRequested)
        assert (asked.host, asked.mode, asked.by) == ("gpu003", "contract", By("kim", "fan"))
        app.redraw()
        assert "requested at 14:3" in status(app) and "0 of 1 done" in status(app)
        source.happen(UndrainRequested(HostName("gpu003"), OTHER))
        app.redraw()
        assert "✓" not in status(app), "undrained by somebody is not drained"


@pytest.mark.parametrize(
    ("page", "key", "kind"),
    [("2", "C", CordonRequested), ("2", "U", UndrainRequested), ("3", "K", CancelRequested)],
)
async def test_each_action_asks_for_what_it_names(page: str, key: str, kind: type) -> None:
    source = busy_world()
    async with console(source) as (app, pilot):
        row = "gpu001" if key == "U" else "gpu003" if page == "2" else "w9"
        screen = await filled_plan(app, pilot, page, row, key)
        named = screen.plan.targets
        await commit(pilot)
        assert [type(o) for o in source.asked] == [kind]
        assert getattr(source.asked[0], "host", None) == named[0] or source.asked[0].workload == named[0]  # type: ignore[union-attr]


async def test_requeue_of_a_run_from_the_lower_pane() -> None:
    source = busy_world()
    async with console(source) as (app, pilot):
        await pilot.press("3", "tab")
        assert app.table is not None and app.table.id == "t-runs"
        app.table.move_to_key("w5~1")
        await pilot.press("R")
        await fill_plan(app, pilot)
        await commit(pilot)
        assert source.asked == [RequeueRequested(WorkloadId("w5"), By("kim", "because"), False)]


async def test_rows_that_move_between_key_and_commit_do_not_change_the_target() -> None:
    source = busy_world()
    async with console(source) as (app, pilot):
        await pilot.press("2")
        table = app.query_one("#t-hosts", Table)
        table.move_to_key("gpu003")
        await pilot.press("D")
        table.sort(["-host"])
        table.move_to(0)
        source.changed()
        app.redraw()
        await fill_plan(app, pilot)
        await commit(pilot)
        assert [o.host for o in source.asked if isinstance(o, DrainRequested)] == ["gpu003"]


async def test_a_run_that_ends_meanwhile_brings_the_dialog_back_with_what_changed() -> None:
    source = busy_world()
    async with console(source) as (app, pilot):
        await filled_plan(app, pilot, "2", "gpu003", "D")
        source.cluster.finish("w3")
        await commit(pilot)
        assert source.asked == []
        assert "w3~1: is gone" in plan_notes(app)
        await commit(pilot)
        assert len(source.asked) == 1, "read again, it may be carried out"


async def test_a_host_that_is_lost_meanwhile_is_said_before_anything_is_sent() -> None:
    source = busy_world()
    async with console(source) as (app, pilot):
        await filled_plan(app, pilot, "2", "gpu003", "D")
        source.cluster.later(1000, HostUnreachable(HostName("gpu003"), "timed out"))
        await commit(pilot)
        assert source.asked == []
        assert "unreachable" in plan_notes(app)


async def test_another_operator_was_faster() -> None:
    source = busy_world()
    async with console(source) as (app, pilot):
        await filled_plan(app, pilot, "2", "gpu003", "C")
        source.happen(CordonRequested(HostName("gpu003"), OTHER))
        await commit(pilot)
        assert source.asked == []
        assert "nothing starts there anyway" in plan_notes(app)


async def test_facts_older_than_two_intervals_do_not_commit() -> None:
    source = busy_world()
    async with console(source) as (app, pilot):
        await filled_plan(app, pilot, "2", "gpu003", "D")
        source.ages["gpu003"] = 30.0
        await commit(pilot)
        assert source.asked == [] and "older than two intervals" in plan_notes(app)
        source.ages["gpu003"], source.lag_s = 0.5, 20.0
        await commit(pilot)
        assert source.asked == [] and "20 s old" in plan_notes(app)
        source.lag_s, source.leader = 0.0, "nobody"
        await commit(pilot)
        assert source.asked == [] and "nobody leads" in plan_notes(app)


async def test_several_hosts_need_their_count_typed() -> None:
    source = busy_world()
    async with console(source) as (app, pilot):
        await pilot.press("2", "j", "space", "space", "C")
        screen = await fill_plan(app, pilot)
        assert screen.plan.targets == ("gpu002", "gpu003")
        await commit(pilot)
        assert source.asked == [] and "type 2" in plan_notes(app)
        await fill_plan(app, pilot, "", "2")
        await commit(pilot)
        assert [o.host for o in source.asked if isinstance(o, CordonRequested)] == ["gpu002", "gpu003"]


async def test_a_reason_is_needed_and_a_refusal_stays_on_the_screen() -> None:
    source = busy_world()
    source.refuse = "the leader did not answer; nothing was done"
    async with console(source) as (app, pilot):
        await pilot.press("2", "j", "C")
        await fill_plan(app, pilot, "")
        await commit(pilot)
        assert "say why" in plan_notes(app)
        await fill_plan(app, pilot, "noise")
        await commit(pilot)
        app.redraw()
        assert "did not answer" in status(app) and "✖" in status(app)
        await pilot.press("3", "1")
        assert "did not answer" in status(app), "it stays"


async def test_a_success_is_news_until_somebody_was_there_and_esc_reads_it() -> None:
    source = busy_world()
    async with console(source) as (app, pilot):
        for host in ("gpu003", "gpu004"):
            await filled_plan(app, pilot, "2", host, "C")
            await commit(pilot)
            app.redraw()
            assert f"✓ cordon {host}: cordoned" in status(app)
            if host == "gpu003":
                await pilot.press("escape")
                assert "✓" not in status(app) and app.page == "hosts", "what was said first, the page later"
        source.cluster.now += 31_000
        app.redraw()
        assert "✓" in status(app), "nobody has been there to see it"
        await pilot.press("j")
        source.cluster.now += 31_000
        app.redraw()
        assert "✓" not in status(app)
        await command(pilot, "results")
        assert "cordon gpu003: cordoned" in seen(app)


async def test_a_key_that_repeats_does_not_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opsconsole.ui.screens.plan.READ_S", 60.0)
    source = busy_world()
    async with console(source) as (app, pilot):
        await pilot.press("2", "j", "D", "D", "D")
        assert len(app.screen_stack) == 2
        await fill_plan(app, pilot)
        await pilot.press("enter", "enter")
        await pilot.pause()
        assert source.asked == [] and "read it first" in plan_notes(app)


async def test_the_plan_stays_live_while_it_is_open() -> None:
    source = busy_world()
    async with console(source) as (app, pilot):
        await open_plan(app, pilot, "2", "gpu003", "D")
        await pilot.pause()
        source.cluster.finish("w3")
        source.changed()
        app.redraw()
        await pilot.pause()
        assert "empty at once" in seen(app)


async def test_a_mode_that_breaks_a_guarantee_says_so() -> None:
    source = busy_world()
    async with console(source) as (app, pilot):
        await pilot.press("2")
        assert app.table is not None
        app.table.move_to_key("gpu003")
        await pilot.press("D", "f2", "f2")
        await pilot.pause()
        assert "breaks 1 guarantee" in seen(app) and "--mode now" in seen(app)


async def test_a_drain_that_lets_runs_finish_asks_until_when() -> None:
    source = busy_world()
    async with console(source) as (app, pilot):
        await open_plan(app, pilot, "2", "gpu003", "D")
        assert "Until" not in seen(app)
        await pilot.press("f2")
        await pilot.pause()
        assert "(•) finish" in seen(app) and "--deadline 1h" in seen(app)
        deadline = app.screen.query_one("#until", Input)
        deadline.value = "soon"
        await fill_plan(app, pilot)
        await commit(pilot)
        assert source.asked == [] and "until 'soon': say for how long, 2h, or until when, 17:30" in plan_notes(app)
        deadline.value = "17:32"
        await pilot.pause()
        await commit(pilot)
        (asked,) = source.asked
        assert isinstance(asked, DrainRequested) and asked.mode == "finish"
        assert asked.deadline_at == source.state.now + 3 * HOUR - 7_000


async def test_the_window_closes_by_itself() -> None:
    source = busy_world()
    async with console(source) as (app, pilot):
        assert "WRITE 1" in seen(app)
        app.window.until = 0.0
        await pilot.press("2", "j", "C")
        await fill_plan(app, pilot)
        await commit(pilot)
        assert source.asked == [] and "read-only" in plan_notes(app)


async def test_the_inventory_may_forbid_writing() -> None:
    source = busy_world()
    source.write_refused = "the inventory says allow_write: false"
    async with console(source) as (app, pilot):
        assert "READ-ONLY" in seen(app)
        await command(pilot, "write 15m why")
        assert "allow_write" in status(app) and not app.window.open


async def test_commands_name_their_targets() -> None:
    source = busy_world()
    async with console(source) as (app, pilot):
        await command(pilot, "drain gpu002 gpu003")
        assert isinstance(app.screen, PlanScreen) and app.screen.plan.targets == ("gpu002", "gpu003")
        await pilot.press("escape")
        await command(pilot, "drain gpu999")
        assert "no host" in seen(app)
        await pilot.press("escape")
        await command(pilot, "cancel eval-mmlu")
        assert isinstance(app.screen, PlanScreen) and [*app.screen.plan.targets] == ["w5"], "by its name"
        await pilot.press("escape")
        await command(pilot, "explain eval-mmlu")
        assert "past its min runtime" in seen(app)
        await pilot.press("escape")
        await command(pilot, "drian gpu002")
        assert "did you mean drain" in status(app)
        await command(pilot, "submit --gpus 1")
        assert "submit is a command of the shell: opsconsole submit" in status(app)


async def test_who_leads_is_said_once_it_is_true() -> None:
    source = busy_world()
    async with console(source) as (app, pilot):
        await command(pilot, "lead night shift")
        await pilot.pause()
        assert "looking at every host" in status(app)
        await pilot.press("tab", "enter")
        await pilot.pause()
        assert source.leader == "this console" and "this console leads now" in status(app)
        source.changed()
        app.redraw()
        await command(pilot, "lead once more")
        assert "this console leads already" in status(app)


async def test_leading_asks_first_and_enter_says_no() -> None:
    source = busy_world()
    async with console(source) as (app, pilot):
        await command(pilot, "lead night shift")
        await pilot.pause()
        assert "2 runs go on" in seen(app)
        assert isinstance(app.focused, Button) and app.focused.id == "no"
        await commit(pilot)
        assert source.leader == "serve at head"


def test_fake_sources_are_sources() -> None:
    from opsconsole.ui.source import ConsoleSource

    source: ConsoleSource = FakeSource(busy_world().cluster)
    assert source.actor == "kim"
