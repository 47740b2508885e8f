"""The lines around every page: where one is, what one may do, how fresh it all is, what was said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.content import Content

from opsconsole.presenting.overview import host_map, hosts_title
from opsconsole.presenting.rows import Cell
from opsconsole.presenting.summary import drains_running, lag_cells, leader_cell, reach_cells
from opsconsole.presenting.text import clean, clock, span, zone
from opsconsole.presenting.view import ClusterView
from opsconsole.ui.actions import BY_NAME
from opsconsole.ui.keymap import Keymap, shown_key
from opsconsole.ui.pages import MAP, PAGES
from opsconsole.ui.places import name_of, trail
from opsconsole.ui.widgets.lines import Lines, joined
from opsconsole.ui.widgets.painting import entitle

if TYPE_CHECKING:
    from opsconsole.ui.drawing import ConsolePages

ROOMY = 100


def show_map(app: ConsolePages, view: ClusterView) -> None:
    """The one pane that is no table."""
    pane = app.query_one(f"#{MAP}", Lines)
    size = pane.content_size
    pane.show_lines(host_map(view, max(20, size.width), size.height or 3))
    entitle(pane, hosts_title(view))


def tab_cells(app: ConsolePages) -> list[Cell]:
    """The panes of a page of which one is shown at a time; that one stands in brackets."""
    cells = [Cell(" ")]
    for name in PAGES[app.page].panes:
        title = Content.from_markup(str(app.query_one(f"#{name}").border_title or name)).plain
        here = name == app.pane
        cells += [
            Cell(f"[{title}]" if here else f" {title.partition(':')[0]} ", "accent" if here else "dim"),
            Cell(" "),
        ]
    return cells


def alert_cells(app: ConsolePages) -> list[Cell]:
    """What stands against the console or the leader, the newest words first; how many there are."""
    texts = [*app.alerts.texts.values()]
    if app.picture is not None:
        texts += [f"{about}: {text}" for about, text in app.picture.alarms.items()]
    if not texts:
        return []
    more = f" (+{len(texts) - 1} on the overview)" if len(texts) > 1 else ""
    return [Cell(f" ✖ {clean(texts[-1])}{more}", "bad")]


def header_cells(app: ConsolePages, view: ClusterView | None) -> list[Cell]:
    """Where one is, what one may do, who leads, how fresh it all is. What is wrong is never left out."""
    if view is None:
        return joined([crumbs(app), [Cell("reading the store …", "unknown")]], app.size.width, [])
    alerts = len(app.alerts.texts) + len(view.alarms)
    parts = [
        crumbs(app),
        [Cell(clean(view.cluster, 20))],
        [app.window.cell()],
        [leader_cell(view)],
        lag_cells(view),
        [Cell("ssh "), *spaced(reach_cells(view))],
        [Cell(f"PAUSED {span(app.paused_ms)}", "warn")] if app.paused else [Cell(f"drains {drains_running(view)}")],
        [Cell(f"alerts {alerts}", "bad")] if alerts else [],
        [Cell(_clock(app.size.width, view.wall_ms), "dim")],
    ]
    return joined(parts, app.size.width, [1, 4, 8, 6])


def _clock(width: int, wall_ms: int) -> str:
    """With the zone of all times, where there is room for it; the help names it too."""
    return f"{clock(wall_ms)} {zone(wall_ms)}" if width >= ROOMY else clock(wall_ms)


def crumbs(app: ConsolePages) -> list[Cell]:
    """The way here from the last page that is no detail; of a long one, its end."""
    names = [name_of(place, app.picture) for place in trail(app.past, app.place)]
    while len(names) > 2 and sum(len(name) + 3 for name in names) > app.size.width // 3:
        names[:2] = ["…"]
    return [*(Cell(f"{name} › ", "dim") for name in names[:-1]), Cell(names[-1], "accent")]


def spaced(cells: list[Cell]) -> list[Cell]:
    return [part for cell in cells for part in (cell, Cell(" "))][:-1]


def status_cells(app: ConsolePages) -> list[Cell]:
    """What was just said; else how far the newest action has come, and what the selected row had no room for."""
    if app.note:
        return [Cell(f" {clean(app.note)}")]
    cut = clean(app.table.cut()) if app.table is not None else ""
    told = app.asking.cells(app.size.width - cell_len(cut) - 3 if cut else None)
    told = [Cell(" "), *told] if told else []
    return [*told, Cell(f"  {cut}" if told else f" {cut}", "dim")] if cut else told


def footer_cells(page: str, width: int, keymap: Keymap) -> list[Cell]:
    """As many keys as fit; `?` tells the rest."""
    cells: list[Cell] = [Cell(" ")]
    used = 1
    for name in PAGES[page].footer.split():
        if name != "screens" and not keymap.of(name):
            continue
        key, short = ("1-8", "screens") if name == "screens" else (shown_key(keymap.of(name)[0]), _short(name))
        used += len(key) + len(short) + 3
        if used > width:
            break
        cells += [Cell(key, "accent"), Cell(f" {short}  ")]
    return cells


def _short(name: str) -> str:
    return BY_NAME[name].short or name
