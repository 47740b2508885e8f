"""Keys of one's own: how they are written, that none does two things, and the editor."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from textual.widgets import Static

from opsconsole.ui.actions import ACTIONS
from opsconsole.ui.app import OpsConsoleApp
from opsconsole.ui.desk import Desk
from opsconsole.ui.keymap import Keymap, clashes, key_named, shown_key
from opsconsole.ui.screens.help import GROUPS, help_text
from opsconsole.ui.screens.keys import KeysScreen
from opsconsole.ui.screens.plan import PlanScreen
from tests.keys_page import keys_page
from tests.ui.driving import command, console, seen, status
from tests.ui.worlds import busy_world

ROOT = Path(__file__).parents[2]
KEYS = sorted({key for action in ACTIONS for key in action.keys})


def test_the_registry_has_no_clashes_and_new_ones_are_refused_with_both_names() -> None:
    assert clashes(Keymap().of) == []
    with pytest.raises(ValueError, match="key C is claimed by drain and by cordon"):
        Keymap({"drain": ["C"]})
    assert Keymap({"drain": ["X"]}).bindings() == {"drain": "X"}
    assert Keymap({"drain": ["C"], "cordon": ["D"]}).shown("cordon") == "D", "they can change places"


@pytest.mark.parametrize("key", [*KEYS, "ctrl+up", "f12", "alt+x", "tilde", "plus", "shift+f3"])
def test_a_key_is_read_as_it_is_written(key: str) -> None:
    assert key_named(shown_key(key)) == key


@pytest.mark.parametrize("text", ["Dx", "Ctrl-", "Hyper-x", "F99", "Shift-d", "Ctrl-Foo", "  "])
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no key"):
        key_named(text)


async def test_own_keys_are_bound_and_told_everywhere() -> None:
    desk = Desk(keymap=Keymap({"drain": ("f5",), "down": ("e",), "hold": ("H",), "cordon": (), "quit": ("ctrl+x",)}))
    async with console(busy_world(), (120, 60), desk=desk) as (app, pilot):
        await pilot.press("q")
        assert "Ctrl-X quits" in status(app)
        await pilot.press("2", "e", "e", "D", "C")
        assert app.table is not None and app.table.rowset.at == 2
        assert len(app.screen_stack) == 1, "the usual keys of what was changed do nothing"
        await pilot.press("f5")
        assert isinstance(app.screen, PlanScreen) and app.screen.plan.targets == ("gpu003",)
        await pilot.press("escape", "3", "H")
        assert isinstance(app.screen, PlanScreen) and app.screen.plan.action == "hold"
        await pilot.press("escape", "2")
        await pilot.pause()
        assert "F5 drain" in seen(app).splitlines()[-1] and "cordon" not in seen(app).splitlines()[-1]
    told = [part[0] for part in help_text("hosts", desk.keymap).parts if isinstance(part, tuple)]
    assert "F5         :drain [HOST…]" in told and ":cordon [HOST…] [--for 2h]" in told


async def test_the_editor_takes_a_pressed_key_refuses_a_clash_and_writes_the_file() -> None:
    saved: list[Mapping[str, Sequence[str]]] = []

    def save(keys: Mapping[str, Sequence[str]]) -> str:
        saved.append(keys)
        return "/home/kim/keys.toml"

    async with console(busy_world(), (120, 60), desk=Desk(save_keys=save)) as (app, pilot):
        await command(pilot, "keys")
        assert isinstance(app.screen, KeysScreen)
        assert app.screen.table.move_to_key("drain")
        await pilot.press("enter", "C")
        assert note(app) == "Not changed: key C is claimed by drain and by cordon" and saved == []
        await pilot.press("enter", "escape")
        assert isinstance(app.screen, KeysScreen) and saved == []
        await pilot.press("enter", "ctrl+d")
        assert note(app) == "drain: Ctrl-D; written to /home/kim/keys.toml" and saved == [{"drain": ["Ctrl-D"]}]
        assert "Ctrl-D (own)" in seen(app)
        await pilot.press("a", "f6")
        assert saved[-1] == {"drain": ["Ctrl-D", "F6"]}
        await pilot.press("escape", "2", "f6")
        assert isinstance(app.screen, PlanScreen)
        await pilot.press("escape")
        await command(pilot, "keys")
        assert isinstance(app.screen, KeysScreen)
        app.screen.table.move_to_key("drain")
        await pilot.press("backspace")
        assert saved[-1] == {} and app.keymap.of("drain") == ("D",)
        await pilot.press("delete")
        assert saved[-1] == {"drain": []} and note(app).startswith("drain: no key")


async def test_keys_that_cannot_be_written_count_until_the_end() -> None:
    async with console(busy_world(), (120, 60)) as (app, pilot):
        await command(pilot, "keys")
        assert isinstance(app.screen, KeysScreen)
        app.screen.table.move_to_key("zoom")
        await pilot.press("enter", "Z")
        assert note(app) == "zoom: Z until this console ends; not written: this console keeps no files"
        assert app.keymap.of("zoom") == ("Z",)


def test_every_action_stands_in_the_docs() -> None:
    """OPSCONSOLE_UPDATE_SNAPSHOTS=1 writes the page: `make looks`."""
    path = ROOT / "docs/keys.md"
    if os.environ.get("OPSCONSOLE_UPDATE_SNAPSHOTS"):
        path.write_text(keys_page())
    assert path.read_text() == keys_page()
    assert {action.group for action in ACTIONS} == {*GROUPS}


def note(app: OpsConsoleApp) -> str:
    return str(app.screen.query_one("#keys-note", Static).content)
