"""The dialog of a plan: what it does, to whom, at what cost. It stays live while open; opening it sends nothing.

Back has the focus, so Enter on a fresh dialog goes back; what is typed there goes into the reason. Where nothing could
be carried out there is nothing to fill in. Commit asks again: if what the plan rests on has changed since
it was read, the dialog comes back and says what; on facts that are too old it does not commit at all.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Button, Input

from opsconsole.presenting.changes import changes
from opsconsole.presenting.drain_plans import Mode
from opsconsole.presenting.facts import folded
from opsconsole.presenting.naming import leaf_paths
from opsconsole.presenting.plans import Plan, first_lines, snug
from opsconsole.presenting.presence import looking_words
from opsconsole.presenting.rows import Cell
from opsconsole.presenting.text import clean, clock, count, parse_until
from opsconsole.presenting.view import ClusterView
from opsconsole.ui.actions import Action, PlanOptions
from opsconsole.ui.given import Given
from opsconsole.ui.screens.live import LiveScreen
from opsconsole.ui.screens.plan_fields import PlanFields
from opsconsole.ui.widgets.choice import Choice
from opsconsole.ui.widgets.lines import Lines
from opsconsole.ui.widgets.painting import entitle
from opsconsole.ui.widgets.table import Table

if TYPE_CHECKING:
    from opsconsole.ui.app import OpsConsoleApp

READ_S = 0.7  # a key that repeats must not commit what nobody has read
FRAME = 7  # lines of the dialog that are always there
LEAST = 2  # lines of its table
MOST_WIDE = 150  # cells, as its style says
READ_ONLY = "read-only: Esc, then :write 15m reason"


class PlanScreen(LiveScreen[None]):
    """`targets` are names: what is acted on is what is named here, whatever the tables do meanwhile."""

    CSS_PATH = "plan.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back"),
        Binding("f2", "mode", "mode"),
        Binding("pageup", "page(-1)"),
        Binding("pagedown", "page(1)"),
    ]

    def __init__(
        self,
        action: Action,
        targets: Sequence[str],
        view: ClusterView,
        known: Given | None = None,
        chosen: str = "",
    ) -> None:
        """`chosen`: how the targets were, where not by name; it stands behind the title."""
        super().__init__()
        self.chosen = chosen
        self.action, self.targets, self.known = action, list(targets), known or Given()
        self.mode = cast(Mode, self.known.mode or (action.choices or ("contract",))[0])
        self.plan = self._make(view)
        self.asks = False  # is there anything that could be carried out?
        self.early, self.ready = "", False
        self.read = self.plan  # what the person has read
        self.opened_at = time.monotonic()
        self.problem = ""
        self.came_back: list[str] = []  # what had changed when it was to be carried out

    def _make(self, view: ClusterView) -> Plan:
        assert self.action.plan is not None
        self.computed_ms = view.wall_ms
        to, until = (self._typed(name) for name in ("to", "until"))
        for_ms = parse_until(until, view.wall_ms) if until else None
        return self.action.plan(view, self.targets, PlanOptions(self.mode, for_ms, to))

    def compose(self) -> ComposeResult:
        dialog = Vertical(classes="dialog")
        dialog.border_title = "Plan"
        with dialog:
            table = Table(id="plan-table")
            table.can_focus = False
            yield table
            yield Lines(id="plan-effect")
            yield PlanFields(self.action, len(self.targets), self._suggested(), self.known.fields)
            yield Lines(id="plan-note")
            with Horizontal(id="plan-buttons"):
                yield Choice(self._deed(), "commit")
                yield Choice("Back", "back")

    def _deed(self) -> str:
        """What the button does, with how many: "Cancel 1 workload" can be taken for nothing else."""
        what = f" {count(len(self.targets), self.action.about)}" if self.action.about else ""
        return f"{self.action.name.capitalize()}{what}"

    def on_mount(self) -> None:
        self.asks, self.ready = self._may_ask(), True
        self._show_until()
        self.fields.display = self.query_one("#commit").display = self.asks
        self.set_focus(self.query_one("#back"))
        self._type_early()
        self._show()

    def _may_ask(self) -> bool:
        return self.asks if self.ready else self.plan.possible and self.console.window.open

    def takes(self, event: events.Key) -> bool:
        """A reason that is typed at once, on the button, is not lost."""
        if not (event.is_printable and event.character and self._may_ask()):
            return False
        self.early += event.character
        if self.ready:
            self._type_early()
        return True

    def _type_early(self) -> None:
        """What was typed before anything had the focus."""
        if self.early:
            self.fields.type_early(self.early)
            self.early = ""

    @property
    def console(self) -> OpsConsoleApp:
        return cast("OpsConsoleApp", self.app)

    @property
    def fields(self) -> PlanFields:
        return self.query_one(PlanFields)

    def _typed(self, field: str) -> str:
        """What stands in a field, or will once the dialog stands."""
        if self.is_mounted and self.ready:
            return self.fields.typed(field)
        return self.known.fields.get(field, "")

    def _show_until(self) -> None:
        self.fields.show_field("until", self.action.lasts or self.mode == "finish")

    def _suggested(self) -> Sequence[str]:
        """Budgets that workloads can be moved to."""
        view = self.console.picture
        if self.action.name != "move" or view is None:
            return ()
        return leaf_paths(view.state)

    # -- live ------------------------------------------------------------------------------------------------------

    def update_from(self, view: ClusterView) -> None:
        """The picture moved on: the plan is computed anew. What has changed since it was read is said."""
        self.plan = self._make(view)
        if self.is_mounted:
            self._show()

    def action_mode(self) -> None:
        """The next way to do it, for actions that have several. It is read anew."""
        choices = self.action.choices
        if choices:
            self.mode = choices[(choices.index(self.mode) + 1) % len(choices)]
            self._show_until()
            self._read_anew()

    @on(Input.Changed, "#until")
    @on(Input.Changed, "#to")
    def _read_anew(self) -> None:
        """Something else was chosen: what is seen from now on is what counts."""
        view = self.console.picture
        if view is not None and self.ready:
            self.read = self.plan = self._make(view)
            self.problem, self.came_back, self.opened_at = "", [], time.monotonic()
            self._show()

    def action_page(self, by: int) -> None:
        self.query_one("#plan-table", Table).action_page(by)

    def _show(self) -> None:
        does = [
            [Cell(line, "bad" if "breaks" in line or "nobody" in line else "")]
            for line in first_lines(self.plan.effect)
        ]
        does += [[Cell(f"✖ {line}", "bad")] for line in first_lines(self.plan.refused)]
        does += [[Cell(f"$ {self.plan.command}", "dim")]] * bool(self.plan.command)
        if self.action.choices and self.plan.possible:
            does.append(self._modes())
        title = f"{self.plan.table.title}{self.chosen}, computed {clock(self.computed_ms)}, nothing sent yet"
        entitle(self.query_one(".dialog"), title)
        width, high = min(MOST_WIDE, self.app.size.width * 96 // 100) - 4, FRAME + (self.asks and self.fields.tall)
        noted = folded(self._notes(), width, self.app.size.height - len(does) - high - LEAST)
        does = folded(does, width, self.app.size.height - len(noted) - high - LEAST)
        self.query_one("#plan-effect", Lines).show_lines(does)
        self.query_one("#plan-note", Lines).show_lines(noted)
        table = self.query_one("#plan-table", Table)
        table.show(snug(self.plan.table))
        room = self.app.size.height - len(does) - len(noted) - high
        table.styles.height = max(LEAST, min(len(self.plan.table.rows) + 1, room))

    def _modes(self) -> list[Cell]:
        """Each way to do it; the chosen one is marked."""
        cells = []
        for mode in self.action.choices:
            here = mode == self.mode
            cells.append(
                Cell(f"({'•' if here else ' '}) {mode}  ", ("warn" if mode == "now" else "accent") if here else "")
            )
        return [*cells, Cell("F2 changes", "dim")]

    def _notes(self) -> list[list[Cell]]:
        """What keeps it from being carried out, and what has changed under the reader's eyes."""
        lines = [[Cell(self.problem, "bad")]] if self.problem else []
        changed = self.came_back or changes(self.read, self.plan)
        lines += [[Cell(f"changed: {text}", "warn")] for text in changed[:3]]
        lines += [[Cell(text, "warn")] for text in self._others()[:2]]
        standing = self._standing()
        if standing and standing != self.problem:
            lines.append([Cell(standing, "warn")])
        return lines

    def _others(self) -> list[str]:
        """Who else has a plan open for one of these."""
        view = self.console.picture
        return looking_words(view, self.targets) if view is not None else []

    # -- ending ----------------------------------------------------------------------------------------------------

    @on(Input.Submitted)
    def next_field(self) -> None:
        """Enter in a field goes on to the next: it never commits."""
        self.focus_next()

    @on(Button.Pressed, "#back")
    def back(self) -> None:
        self.dismiss()

    @on(Button.Pressed, "#commit")
    def commit(self) -> None:
        """With the world as it is now, not as it was drawn."""
        view = self.console.fresh_picture()
        if view is None or not self.is_active:
            return
        self.plan = self._make(view)
        self.problem = self._why_not(view)
        self.came_back = [] if self.problem else changes(self.read, self.plan)
        if self.came_back:
            self.problem = f"the world changed; {self.action.name} again if it is still right:"
            self.read, self.opened_at = self.plan, time.monotonic()
        if self.problem:
            self._show()
            return
        self.console.commit(self.plan, self._typed("reason"), self._typed("ticket"))
        self.dismiss()

    def _standing(self) -> str:
        """Nothing is said of writing where there is nothing to write."""
        return "" if self.console.window.open or not self.plan.possible else READ_ONLY

    def _why_not(self, view: ClusterView) -> str:
        """Everything that keeps a plan from being carried out, the nearest first. Empty where nothing does."""
        if time.monotonic() - self.opened_at < READ_S:
            return "read it first"
        return self._standing() or self._too_old(view) or self._not_said()

    def _too_old(self, view: ClusterView) -> str:
        if "picture" in self.console.alerts.texts:
            return "there is no picture of the cluster as it is now"
        if view.leader in ("", "nobody"):
            return "nobody leads this cluster, so nobody would do it"
        if view.lag_s > 2 * view.interval_s:
            return f"this picture is {view.lag_s:.0f} s old: wait, or Ctrl-R"
        if self.plan.stale:
            return f"facts of {', '.join(self.plan.stale[:3])} are older than two intervals: wait, or Ctrl-R"
        return ""

    def _not_said(self) -> str:
        if not self.plan.possible:
            return clean("; ".join(self.plan.refused)) or self.plan.done or "there is nothing left to do"
        if self.plan.missing:
            return self.plan.missing
        until = self._typed("until")
        if (until or self.mode == "finish") and not parse_until(until, self.computed_ms):
            return f"until {until!r}: say for how long, 2h, or until when, 17:30"
        if not self._typed("reason"):
            return "say why: the reason is kept with it"
        count = str(len(self.plan.targets))
        if len(self.targets) > 1 and self._typed("count") != count:
            return f"type {count} to {self.action.name} {count} of them"
        return ""
