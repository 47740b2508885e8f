"""The `:` line and the palette: what can be said there, and how it is completed."""

from __future__ import annotations

import pytest

from opsconsole.ui.actions import ACTIONS, BY_NAME
from opsconsole.ui.commands import CommandError, command_words, parse_command
from opsconsole.ui.completing import complete_command
from opsconsole.ui.palette import RegistryCommands
from opsconsole.ui.themes import THEMES
from tests.ui.driving import console, seen
from tests.ui.worlds import HOSTILE, busy_world

VIEW = busy_world().view()
HOSTS = sorted(VIEW.state.hosts)


@pytest.mark.parametrize(
    ("text", "among"),
    [
        ("", {"drain", "theme", "notify", "keys"}),
        ("drain ", set(HOSTS)),
        ("drain gpu001 ", set(HOSTS)),
        ("drain gpu001 -", {"--mode", "--deadline", "--reason", "--ticket", "--now"}),
        ("drain gpu001 --mode ", {"contract", "finish", "now"}),
        ("drain gpu001 --deadline ", {"2h"}),
        ("kill ", {"w5", "eval-mmlu"}),
        ("requeue w5 --", {"--now"}),
        ("ssh ", set(HOSTS)),
        ("notify ", {"gpu001", "w5", "w5~1"}),
        ("explain ", {"gpu001", "w5", "w5~1", *VIEW.state.budgets.paths.values()}),
        ("theme ", set(THEMES)),
        ("copy ", {"name", "row", "screen"}),
        ("write ", {"15m", "2h"}),
    ],
)
def test_what_could_stand_there(text: str, among: set[str]) -> None:
    assert among <= set(complete_command(text, VIEW))


@pytest.mark.parametrize(
    "text", ["drain gpu001 --reason ", "theme dark ", "write 15m ", "quit ", "nonsense ", "drain x --ticket "]
)
def test_where_nothing_can_be_known_nothing_is_said(text: str) -> None:
    assert list(complete_command(text, VIEW)) == []


def test_names_with_blanks_come_as_one_word() -> None:
    source = busy_world()
    source.cluster.submit("odd", "vision", 1, name="two words")
    assert "'two words'" in complete_command("cancel ", source.view())


def test_without_a_picture_the_commands_are_still_known() -> None:
    assert "hosts" in complete_command("", None) and not complete_command("drain ", None)


@pytest.mark.parametrize("name", command_words())
def test_every_action_is_a_command_by_its_whole_name(name: str) -> None:
    assert parse_command(name) == (BY_NAME[name], "")


def test_themes_are_those_that_there_are() -> None:
    assert BY_NAME["theme"].words == [*THEMES]


@pytest.mark.parametrize(("line", "says"), [("dran x", "did you mean drain?"), ("submit", "command of the shell")])
def test_what_is_no_command_says_what_was_meant(line: str, says: str) -> None:
    with pytest.raises(CommandError, match=says.replace("?", r"\?")):
        parse_command(line)


async def test_the_palette_knows_actions_hosts_workloads_budgets_and_themes() -> None:
    async with console(busy_world(), (120, 40)) as (app, pilot):
        await pilot.pause()
        palette = RegistryCommands(app.screen)
        found = {(text, kind) for text, kind, _ in palette._names()}
        assert {("gpu003", "host"), ("olmo/eval", "budget"), ("light", "theme")} <= found
        assert any(kind == "workload" and "w5" in text for text, kind in found)
        assert all(HOSTILE not in text or kind == "workload" for text, kind in found)
        offered = {text.partition("  ")[0] for text, _, _ in palette._actions()}
        assert offered == set(command_words()) <= {action.name for action in ACTIONS}
        await pilot.press("ctrl+p", *"olmo/eval")
        await pilot.pause(0.5)
        await pilot.press("enter")
        await pilot.pause(0.3)
        assert "Explain olmo/eval" in seen(app)
