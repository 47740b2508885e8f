"""What screens say whatever they hold: in every theme, empty, with many GPUs, with hostile names; the ways between."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from textual.color import Color

from opsconsole.settings import Settings
from opsconsole.ui.desk import Desk
from opsconsole.ui.themes import THEMES, Typewriter
from tests.ui.driving import command, console, seen, settled, status
from tests.ui.worlds import HOSTILE, busy_world, empty_world, wide_world

PAGES = {"overview": "1", "hosts": "2", "queue": "3", "budgets": "4", "drains": "5", "timeline": "7"}


async def test_every_theme_shows_the_same_words() -> None:
    async with console(busy_world(), (120, 40), write="") as (app, pilot):
        await pilot.press("2")
        shown = set()
        for theme in ("dark", "light", "contrast", "ansi"):
            await command(pilot, f"theme {theme}")
            await pilot.press("2")
            assert app.theme == theme
            shown.add(await settled(app, pilot))
        assert len(shown) == 1


@pytest.mark.parametrize(("name", "least"), [("dark", 4.5), ("light", 4.5), ("contrast", 7.0)])
def test_every_text_can_be_read_on_every_ground(name: str, least: float) -> None:
    """As WCAG measures it: on the screen, in dialogs, on the header and the footer; and on the cursor's row."""
    theme = THEMES[name]
    texts = [theme.success, theme.warning, theme.error, theme.accent, theme.foreground, theme.secondary]
    texts += [theme.variables["unknown"], theme.variables["quiet"]]
    for ground in (theme.background, theme.surface, theme.panel, theme.variables["cursor"]):
        for text in texts:
            assert contrast(str(text), str(ground)) >= least, (text, ground)


def contrast(one: str, other: str) -> float:
    """1 to 21."""

    def light(colour: str) -> float:
        parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in rgb(colour)]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    brighter, darker = sorted((light(one), light(other)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


def rgb(colour: str) -> list[float]:
    return [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]


async def test_marks_in_ascii_leave_no_other_sign() -> None:
    """Every column stands where it stood."""
    async with console(busy_world(), (120, 40), write="", desk=Desk(Settings(marks="ascii"))) as (app, pilot):
        for key in PAGES.values():
            await pilot.press(key)
            await settled(app, pilot)
            drawn = [segment for line in app.screen._compositor.render_strips() for segment in line]
            shown = Typewriter().apply(drawn, Color(0, 0, 0))
            signs = {c for segment in shown for c in segment.text if not c.isascii() and not c.isalpha()}
            assert not signs and cell_len(shown[0].text) == cell_len(drawn[0].text), signs


async def test_an_empty_cluster_says_that_nothing_is_known() -> None:
    async with console(empty_world(), (80, 24)) as (app, pilot):
        for key in PAGES.values():
            await pilot.press(key)
            await pilot.pause()
            assert "NO LEADER" in seen(app)
        await pilot.press("2")
        await pilot.pause()
        assert "nothing is known yet" in seen(app)


@pytest.mark.parametrize("gpus", [0, 1, 8, 16, 64])
async def test_hosts_with_any_number_of_gpus(gpus: int) -> None:
    """G5-15: content scrolls, nothing overlaps, leaving always works."""
    async with console(wide_world(2, gpus), (80, 24)) as (app, pilot):
        await pilot.press("2", "x")
        await pilot.pause()
        text = seen(app)
        assert "Explain gpu001" in text
        assert "no GPUs" in text if gpus == 0 else "GPU BUSY" in text
        await pilot.press("pagedown", "pagedown", "pagedown", "escape")
        assert len(app.screen_stack) == 1


async def test_markup_in_names_is_shown_and_never_parsed() -> None:
    """G5-04: in tables, details, dialogs, the status line, filters and the palette."""
    source = busy_world()
    async with console(source, (200, 40)) as (app, pilot):
        await pilot.press("3")
        await pilot.pause()
        assert HOSTILE[:20] in seen(app)
        await pilot.press("x")
        await pilot.pause()
        assert HOSTILE in seen(app)
        await pilot.press("escape", "K")
        await pilot.pause()
        assert HOSTILE[:20] in seen(app)
        await pilot.press("escape", "slash", "left_square_bracket", "r", "e", "d", "enter")
        await pilot.pause()
        assert "Waiting (1 of 3)  /[red" in seen(app)
        await command(pilot, "explain [/][@click=app.quit]x[/]")
        await pilot.pause()
        assert "no host, workload or budget '[/][@click=app.quit]x[/]'" in seen(app)
        await pilot.press("escape", "ctrl+p")
        await pilot.press(*"w8")
        await pilot.pause(0.3)
        await pilot.press("escape")


async def test_filters_show_their_errors_as_they_are_typed() -> None:
    async with console(busy_world(), (120, 40)) as (app, pilot):
        await pilot.press("2", "slash", *"busy")
        await pilot.press("greater_than_sign", *"7x")
        await pilot.pause()
        assert "busy>7x: busy counts percent: 50 or 50%" in seen(app)
        await pilot.press("backspace", "5")
        await pilot.press("enter")
        await pilot.pause()
        assert "of 6)" in seen(app) and "/busy>75" in seen(app)
        await pilot.press("escape")
        assert app.table is not None and len(app.table.rowset.rows) == 6


async def test_no_key_leads_to_a_page_that_is_not_there() -> None:
    async with console(busy_world(), (80, 24)) as (app, pilot):
        await pilot.press("6", "9", "W")
        assert app.page == "overview" and "write window open" in status(app)
        await pilot.press("question_mark")
        assert "not in this version" not in seen(app)


async def test_ctrl_c_says_how_to_quit() -> None:
    async with console(busy_world(), (80, 24)) as (app, pilot):
        await pilot.press("ctrl+c")
        assert app.is_running and "Ctrl-Q quits" in status(app)


async def test_moving_between_pages() -> None:
    async with console(busy_world(), (80, 24)) as (app, pilot):
        await pilot.press("2", "3", "minus")
        assert app.page == "hosts"
        await pilot.press("j", "j", "x", "right_square_bracket")
        await pilot.pause()
        assert "Explain gpu004" in seen(app)
        await pilot.press("escape", "q")
        assert app.page == "overview"
        await pilot.press("q")
        assert "Ctrl-Q" in status(app)
        await pilot.press("z", "z", "w", "w", "S", "S", "p", "p", "tab", "ctrl+r")


async def test_the_command_line_completes_and_remembers() -> None:
    async with console(busy_world(), (80, 24)) as (app, pilot):
        await pilot.press("colon", *"bud")
        await pilot.press("tab", "enter")
        await pilot.pause()
        assert app.page == "budgets"
        await pilot.press("1", "colon", "up", "enter")
        await pilot.pause()
        assert app.page == "budgets"
        await pilot.press("colon", *"explain")
        await pilot.press("space", *"gpu")
        await pilot.press("tab", *"3")
        await pilot.press("enter")
        await pilot.pause()
        assert "Explain gpu003" in seen(app)
