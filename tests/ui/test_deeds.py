"""Every action that changes the cluster, while the world changes between key and commit; what becomes of it after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from textual.widgets import Input

from opsconsole.presenting.view import OpenPlan
from opsconsole.ui.actions import ACTIONS
from opsconsole.ui.app import OpsConsoleApp
from opsconsole.ui.commands import CommandError
from opsconsole.ui.completing import complete_command
from opsconsole.ui.given import given
from opsconsole.ui.screens.plan import PlanScreen
from scheduler_core.ids import BudgetId, DrainId, HostName, WorkloadId
from scheduler_core.observations import (
    By,
    CancelRequested,
    CordonRequested,
    DrainRequested,
    HoldRequested,
    HostUnreachable,
    Observation,
    ReleaseRequested,
    RequeueRequested,
    UndrainRequested,
    UsageForgotten,
    WeightChanged,
    WorkloadMoved,
)
from scheduler_core.units import HOUR, MINUTE, WEIGHT
from tests.ui.driving import (
    carry_out,
    command,
    commit,
    console,
    fill_plan,
    open_plan,
    plan_notes,
    seen,
    select,
    status,
)
from tests.ui.worlds import OTHER, FakeSource, busy_world

pytestmark = pytest.mark.usefixtures("fast")


@dataclass(frozen=True)
class Deed:
    """`line` is typed; on `page` the cursor stands on `row`. `rival`: what somebody else asks for meanwhile."""

    line: str
    page: str
    row: str
    kind: type
    rival: Callable[[], Observation]

    @property
    def name(self) -> str:
        return self.line.partition(" ")[0]


H3, W5, W7, W8 = HostName("gpu003"), WorkloadId("w5"), WorkloadId("w7"), WorkloadId("w8")
EVAL = BudgetId("olmo/eval")
DEEDS = [
    Deed("drain", "2", "gpu003", DrainRequested, lambda: DrainRequested(DrainId("x"), H3, OTHER)),
    Deed("cordon", "2", "gpu003", CordonRequested, lambda: CordonRequested(H3, OTHER)),
    Deed("undrain", "2", "gpu005", UndrainRequested, lambda: UndrainRequested(HostName("gpu005"), OTHER)),
    Deed("requeue w5", "3", "w7", RequeueRequested, lambda: RequeueRequested(W5, OTHER)),
    Deed("cancel", "3", "w7", CancelRequested, lambda: CancelRequested(W7, OTHER)),
    Deed("hold", "3", "w7", HoldRequested, lambda: HoldRequested(W7, OTHER)),
    Deed("release", "3", "w8", ReleaseRequested, lambda: ReleaseRequested(W8, OTHER)),
    Deed("move --to nlp", "3", "w7", WorkloadMoved, lambda: WorkloadMoved(W7, OTHER, BudgetId("vision"))),
    Deed("priority --to 5", "3", "w7", WorkloadMoved, lambda: WorkloadMoved(W7, OTHER, priority=9)),
    Deed("weight --to 7", "4", "vision", WeightChanged, lambda: WeightChanged(BudgetId("vision"), 2 * WEIGHT, OTHER)),
    Deed("forget", "4", "olmo/eval", UsageForgotten, lambda: UsageForgotten(EVAL, OTHER)),
]
each = pytest.mark.parametrize("deed", DEEDS, ids=lambda deed: deed.name)


def world() -> FakeSource:
    """The busy one, with something held."""
    source = busy_world()
    source.happen(HoldRequested(W8, By("kim", "quota")))
    return source


def of(asked: Observation) -> str:
    """The one thing that it names."""
    (name,) = [str(at) for field in ("host", "workload") if (at := getattr(asked, field, None))] or [str(asked.budget)]  # type: ignore[union-attr]
    return name


def open_dialog(app: OpsConsoleApp) -> PlanScreen:
    assert isinstance(app.screen, PlanScreen), status(app)
    return app.screen


def test_every_action_with_a_plan_is_tried_here() -> None:
    """Going by a changed file and the breaker have tests of their own."""
    tried = {deed.name for deed in DEEDS} | {"reload", "breaker"}
    assert tried == {action.name for action in ACTIONS if action.plan is not None}


@each
async def test_rows_that_move_do_not_change_what_is_acted_on(deed: Deed) -> None:
    source = world()
    async with console(source) as (app, pilot):
        await select(app, pilot, deed.page, deed.row)
        await command(pilot, deed.line)
        named = open_dialog(app).plan.targets
        assert app.table is not None
        app.table.move_to(0)
        await pilot.pause()
        await fill_plan(app, pilot)
        await commit(pilot)
        (asked,) = source.asked
        assert isinstance(asked, deed.kind) and (of(asked),) == named
        assert named == (deed.line.split()[1],) if "w5" in deed.line else (deed.row,)
        assert asked.by == By("kim", "because")  # type: ignore[union-attr]


@each
async def test_somebody_else_was_faster(deed: Deed) -> None:
    source = world()
    async with console(source) as (app, pilot):
        await select(app, pilot, deed.page, deed.row)
        await command(pilot, deed.line)
        await fill_plan(app, pilot)
        source.happen(deed.rival())
        await commit(pilot)
        assert source.asked == [] and isinstance(app.screen, PlanScreen)
        assert "changed" in plan_notes(app) or "already" in plan_notes(app) or "nothing" in plan_notes(app)


@pytest.mark.parametrize("line", ["requeue w5", "cancel w5", "hold w7", "move w5 --to nlp", "priority w5 --to 3"])
async def test_a_run_that_ended_or_began_meanwhile_brings_the_dialog_back(line: str) -> None:
    source = world()
    async with console(source) as (app, pilot):
        await command(pilot, line)
        await fill_plan(app, pilot)
        if "w5" in line:
            source.cluster.finish("w5")
        else:
            source.happen(CancelRequested(W7, OTHER))
        await commit(pilot)
        assert source.asked == [] and line.split()[1] in plan_notes(app)


@pytest.mark.parametrize(("line", "host"), [("drain gpu003", H3), ("cordon gpu003", H3)])
async def test_a_host_that_is_lost_meanwhile_brings_the_dialog_back(line: str, host: HostName) -> None:
    source = world()
    async with console(source) as (app, pilot):
        await command(pilot, line)
        await fill_plan(app, pilot)
        source.cluster.later(1000, HostUnreachable(host, "timed out"))
        await commit(pilot)
        assert source.asked == [] and "gpu003" in plan_notes(app)
        await commit(pilot)
        assert len(source.asked) == 1, "read again, it may be carried out"


async def test_the_leader_may_still_refuse_and_that_is_kept() -> None:
    source = world()
    source.refuse = "refused: w7: it is running, not waiting"
    async with console(source) as (app, pilot):
        await carry_out(app, pilot, "hold w7")
        app.redraw()
        assert "✖ hold w7: refused: w7: it is running, not waiting" in status(app)
        await pilot.press("j")
        source.cluster.now += HOUR
        app.redraw()
        assert "✖" in status(app), "until somebody says that it was read"
        await pilot.press("escape")
        assert "✖" not in status(app)


# -- what is said with it ----------------------------------------------------------------------------------------------


async def test_a_ticket_is_kept_where_one_is_given() -> None:
    source = world()
    async with console(source, (180, 40)) as (app, pilot):
        await carry_out(app, pilot, "cordon gpu003 --ticket OPS-118", "fan")
        assert source.asked == [CordonRequested(H3, By("kim", "fan", "OPS-118"))]
        await pilot.press("2")
        app.redraw()
        assert "cordoned: fan [OPS-118]" in seen(app)


async def test_a_cordon_for_a_while_shows_how_long_it_still_lasts() -> None:
    source = world()
    async with console(source, (160, 40)) as (app, pilot):
        await open_plan(app, pilot, "2", "gpu003", "C")
        until = app.screen.query_one("#until", Input)
        await fill_plan(app, pilot, "fan")
        for wrong in ("soon", "0s"):
            until.value = wrong
            app.screen.query_one("#commit").focus()
            await commit(pilot)
            assert source.asked == [] and f"until {wrong!r}: say for how long" in plan_notes(app)
        until.value = "2h"
        await pilot.pause()
        assert "until 16:32" in seen(app) and "--for 2h" in seen(app)
        app.screen.query_one("#commit").focus()
        await commit(pilot)
        assert source.asked == [CordonRequested(H3, By("kim", "fan"), source.state.now + 2 * HOUR)]
        source.cluster.later(30 * MINUTE)
        app.redraw()
        assert "cordoned for 1h30m more: fan" in seen(app)


async def test_a_hold_for_a_while_says_when_it_ends() -> None:
    source = world()
    async with console(source, (160, 40)) as (app, pilot):
        await command(pilot, "hold w7 --for 2h")
        assert "does not start until 16:32" in seen(app)
        await fill_plan(app, pilot)
        await commit(pilot)
        assert source.asked == [HoldRequested(W7, By("kim", "because"), source.state.now + 2 * HOUR)]
        await pilot.press("3")
        app.redraw()
        assert "16:32" in seen(app)


async def test_what_is_missing_is_asked_for_in_the_dialog() -> None:
    source = world()
    async with console(source) as (app, pilot):
        await select(app, pilot, "3", "w7")
        await carry_out(app, pilot, "move")
        assert source.asked == [] and "say to which budget: nlp, olmo/eval" in plan_notes(app)
        app.screen.query_one("#to", Input).value = "olmo/eval"
        await pilot.pause()
        assert "$ opsconsole move w7 --to olmo/eval" in seen(app) and "in the queue" in seen(app)
        app.screen.query_one("#commit").focus()
        await commit(pilot)
        assert source.asked == [WorkloadMoved(W7, By("kim", "because"), EVAL)]


async def test_marked_rows_are_one_plan_and_need_their_count() -> None:
    source = world()
    async with console(source) as (app, pilot):
        await pilot.press("3", "asterisk")
        await command(pilot, "priority --to 4")
        named = open_dialog(app).plan.targets
        assert {*named} == {"w7", "w8", "w9"} and "Type 3" in seen(app)
        await fill_plan(app, pilot, count="3")
        await commit(pilot)
        assert [of(asked) for asked in source.asked] == [*named]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("drain gpu003 --for 2h", "drain takes no --for; it takes --reason, --ticket, --mode, --deadline"),
        ("drain gpu003 --mode soon", "drain has no mode 'soon'; it has contract, finish, now"),
        ("cancel w7 --to nlp", "cancel takes no --to; it takes --reason, --ticket"),
        ("move w7 --to", "move --to needs a value behind it"),
    ],
)
async def test_options_that_an_action_does_not_take_are_refused(line: str, says: str) -> None:
    source = world()
    async with console(source) as (app, pilot):
        await command(pilot, line)
        assert says in status(app) and len(app.screen_stack) == 1


def test_what_a_plan_prints_can_be_said_in_the_console_too() -> None:
    by_name = {action.name: action for action in ACTIONS}
    found = given(by_name["drain"], ["gpu1", "--mode", "finish", "--deadline", "1h", "--reason", "fan"])
    assert (found.targets, found.mode, found.fields) == (["gpu1"], "finish", {"until": "1h", "reason": "fan"})
    assert given(by_name["requeue"], ["w1", "--now"]).mode == "now"
    with pytest.raises(CommandError):
        given(by_name["cancel"], ["w1", "--now"])


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("forget ", ["nlp", "olmo", "olmo/eval", "olmo/pretrain", "vision"]),
        ("move w7 --to ", ["nlp", "olmo/eval", "olmo/pretrain", "vision"]),
        ("drain gpu003 --mode ", ["contract", "finish", "now"]),
        ("cordon gpu003 -", ["--reason", "--ticket", "--for"]),
        ("cancel w7 --reason ", []),
    ],
)
def test_what_can_stand_behind_an_action_is_offered(typed: str, offered: list[str]) -> None:
    assert [*complete_command(typed, world().view())] == offered


# -- taking it back ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "undo", "kind"),
    [
        ("cordon gpu003", "undrain gpu003", UndrainRequested),
        ("drain gpu003", "undrain gpu003", UndrainRequested),
        ("hold w7", "release w7", ReleaseRequested),
        ("release w8", "hold w8", HoldRequested),
        ("move w7 --to nlp", "move w7 --to olmo/pretrain", WorkloadMoved),
        ("priority w7 --to 5", "priority w7 --to 0", WorkloadMoved),
        ("weight vision --to 7", "weight vision --to 30", WeightChanged),
    ],
)
async def test_undo_opens_the_plan_that_takes_it_back(line: str, undo: str, kind: type) -> None:
    source = world()
    async with console(source, (160, 40)) as (app, pilot):
        await carry_out(app, pilot, line)
        app.redraw()
        assert f":undo is {undo}" in status(app)
        await command(pilot, "undo")
        assert len(source.asked) == 1, "only a plan is opened"
        await fill_plan(app, pilot, "by mistake")
        await commit(pilot)
        assert [type(asked) for asked in source.asked[1:]] == [kind]
        assert of(source.asked[0]) == of(source.asked[1])


@pytest.mark.parametrize("line", ["cancel w7", "requeue w5", "forget vision", "undrain gpu005", "drain gpu005"])
async def test_what_nothing_takes_back_offers_no_undo(line: str) -> None:
    """A drain of what was cordoned: undrained it would serve."""
    source = world()
    async with console(source) as (app, pilot):
        await carry_out(app, pilot, line)
        app.redraw()
        assert len(source.asked) == 1 and "undo" not in status(app)
        await command(pilot, "undo")
        assert "nothing that was done from here can be taken back" in status(app)


async def test_what_was_taken_back_is_not_taken_back_again() -> None:
    source = world()
    async with console(source) as (app, pilot):
        for line in ("cordon gpu003", "undo"):
            await carry_out(app, pilot, line)
        await command(pilot, "undo")
        assert "nothing that was done from here can be taken back" in status(app)


async def test_an_end_that_will_not_come_any_more_is_said() -> None:
    source = world()
    async with console(source) as (app, pilot):
        await carry_out(app, pilot, "drain gpu003")
        source.happen(UndrainRequested(H3, OTHER))
        app.redraw()
        assert "✖ drain gpu003: overtaken: serving by lee: was faster" in status(app)


async def test_a_requeue_is_done_when_the_workload_waits_again() -> None:
    source = world()
    async with console(source) as (app, pilot):
        await carry_out(app, pilot, "requeue w5")
        app.redraw()
        assert "0 of 1 done" in status(app)
        source.cluster.finish("w5", 143, signalled=True)
        app.redraw()
        assert "✓ requeue w5: waits again" in status(app) or "✓ requeue w5: runs again" in status(app)


async def test_what_is_under_way_leaves_room_for_what_a_row_has_none_for() -> None:
    source = world()
    async with console(source, (80, 24)) as (app, pilot):
        await carry_out(app, pilot, "drain gpu003")
        await select(app, pilot, "2", "gpu001")
        assert "… drain gpu003 0/1  STATE: draining: fan change, ticket 118" in seen(app)
        await select(app, pilot, "2", "gpu002")
        await pilot.pause()
        assert "… drain gpu003: requested at 14:3" in seen(app), "it has the line to itself"


async def test_several_results_are_told_with_how_many_there_are() -> None:
    source = world()
    async with console(source, (160, 40)) as (app, pilot):
        for line in ("cordon gpu003", "hold w7"):
            await carry_out(app, pilot, line)
        app.redraw()
        assert "✓ hold w7: held" in status(app) and "and 1 more: :results" in status(app)


# -- who else is there -------------------------------------------------------------------------------------------------


async def test_who_else_has_a_plan_open_is_said_and_others_hear_of_ours() -> None:
    source = world()
    async with console(source) as (app, pilot):
        await command(pilot, "drain gpu003 gpu004")
        assert source.told_plan is not None
        assert (source.told_plan.who, source.told_plan.targets) == ("kim", ("gpu003", "gpu004"))
        source.others = [
            OpenPlan("lee", "cordon", ("gpu002", "gpu003"), source.view().wall_ms),
            OpenPlan("ann", "drain", ("gpu001",), source.view().wall_ms),
        ]
        app.redraw()
        await pilot.pause()
        assert "lee has a plan open since 14:32:07: cordon gpu003" in plan_notes(app) and "ann" not in plan_notes(app)
        await pilot.press("escape")
        await pilot.pause()
        assert source.told_plan is None


async def test_the_details_of_a_host_and_a_workload_say_who_is_about_to_act_there() -> None:
    source = world()
    source.others = [OpenPlan("lee", "drain", ("gpu003",), source.view().wall_ms)]
    async with console(source) as (app, pilot):
        await open_plan(app, pilot, "2", "gpu003", "enter")
        await pilot.pause()
        assert "lee has a plan open since 14:32:07: drain gpu003" in seen(app)
        source.others = [OpenPlan("ann", "cancel", ("w7",), source.view().wall_ms)]
        app.redraw()
        await open_plan(app, pilot, "3", "w7", "enter")
        await pilot.pause()
        assert "ann has a plan open since 14:32:07: cancel w7" in seen(app) and "lee" not in seen(app)
