"""The dialog of a plan: what it does, to whom, at what cost. It stays live while open; opening it sends nothing.

Cancel has the focus, so Enter on a fresh dialog cancels. Commit asks again: if what the plan rests on has changed since
it was read, the dialog comes back and says what; on facts that are too old it does not commit at all.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Input

from opsconsole.presenting.changes import changes
from opsconsole.presenting.host_plans import Mode
from opsconsole.presenting.plans import Plan
from opsconsole.presenting.rows import Cell
from opsconsole.presenting.text import clean
from opsconsole.presenting.view import ClusterView
from opsconsole.ui.actions import Action, PlanOptions
from opsconsole.ui.widgets.lines import Lines
from opsconsole.ui.widgets.table import Table

if TYPE_CHECKING:
    from opsconsole.ui.app import OpsConsoleApp

READ_S = 0.7  # a key that repeats must not commit what nobody has read
FINISH_MS = 3_600_000  # offered for `finish`; the command line takes any
READ_ONLY = "read-only: Esc, then :write 15m reason"


class PlanScreen(ModalScreen[None]):
    """`targets` are names: what is acted on is what is named here, whatever the tables do meanwhile."""

    CSS_PATH = "plan.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "cancel"),
        Binding("f2", "mode", "mode"),
        Binding("pageup", "page(-1)"),
        Binding("pagedown", "page(1)"),
    ]

    def __init__(self, action: Action, targets: Sequence[str], view: ClusterView) -> None:
        super().__init__()
        self.action, self.targets = action, list(targets)
        self.options = PlanOptions()
        self.plan = self._make(view)
        self.read = self.plan  # what the person has read
        self.opened_at = time.monotonic()
        self.problem = ""
        self.came_back: list[str] = []  # what had changed when it was to be carried out

    def _make(self, view: ClusterView) -> Plan:
        assert self.action.plan is not None
        return self.action.plan(view, self.targets, self.options)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Lines(id="plan-head")
            table = Table(id="plan-table")
            table.can_focus = False
            yield table
            yield Lines(id="plan-effect")
            with Horizontal(id="plan-fields"):
                yield Input(placeholder="reason, kept with it", id="reason", compact=True)
                yield Input(placeholder=f"type {len(self.targets)} to confirm", id="count", compact=True)
            yield Lines(id="plan-note")
            with Horizontal(id="plan-buttons"):
                yield Button("Cancel", id="cancel", compact=True)
                yield Button(self.action.name.capitalize(), id="commit", compact=True)

    def on_mount(self) -> None:
        self.query_one("#count").display = len(self.targets) > 1
        self.query_one("#cancel").focus()
        self._show()

    @property
    def console(self) -> OpsConsoleApp:
        return cast("OpsConsoleApp", self.app)

    @property
    def reason(self) -> str:
        return clean(self.query_one("#reason", Input).value.strip())

    # -- live ------------------------------------------------------------------------------------------------------

    def update_plan(self, view: ClusterView) -> None:
        """The picture moved on: the plan is computed anew. What has changed since it was read is said."""
        self.plan = self._make(view)
        if self.is_mounted:
            self._show()

    def action_mode(self) -> None:
        """The next way to do it, for actions that have several. It is read anew."""
        choices, view = self.action.choices, self.console.picture
        if not choices or view is None:
            return
        then = choices[(choices.index(self._mode) + 1) % len(choices)]
        self.options = PlanOptions(cast(Mode, then), FINISH_MS if then == "finish" else None, then == "now")
        self.read = self.plan = self._make(view)
        self.problem, self.came_back, self.opened_at = "", [], time.monotonic()
        self._show()

    @property
    def _mode(self) -> str:
        return "now" if self.options.now else self.options.mode

    def action_page(self, by: int) -> None:
        self.query_one("#plan-table", Table).action_page(by)

    def _show(self) -> None:
        head = [Cell(self.plan.table.title, "accent"), Cell("  nothing sent yet", "dim")]
        if self.action.choices:
            head.append(Cell(f"  mode {self._mode} (F2 changes)", "warn" if self._mode == "now" else ""))
        self.query_one("#plan-head", Lines).show_lines([head])
        table = self.query_one("#plan-table", Table)
        table.show(self.plan.table)
        table.styles.height = max(2, min(len(self.plan.table.rows) + 1, self.app.size.height - 13))
        effect = [[Cell(clean(line, 120), "bad" if "breaks" in line else "")] for line in self.plan.effect[:4]]
        effect += [[Cell(f"✖ {clean(line, 120)}", "bad")] for line in self.plan.refused[:3]]
        effect.append([Cell(f"the same: {clean(self.plan.command, 200)}", "dim")])
        self.query_one("#plan-effect", Lines).show_lines(effect)
        self._note()

    def _note(self) -> None:
        """What keeps it from being carried out, and what has changed under the reader's eyes."""
        lines = [[Cell(self.problem, "bad")]] if self.problem else []
        changed = self.came_back or changes(self.read, self.plan)
        lines += [[Cell(f"changed: {text}", "warn")] for text in changed[:3]]
        standing = self._standing()
        if standing and standing != self.problem:
            lines.append([Cell(standing, "warn")])
        self.query_one("#plan-note", Lines).show_lines(lines)

    # -- ending ----------------------------------------------------------------------------------------------------

    def action_leave(self) -> None:
        self.dismiss()

    @on(Input.Submitted)
    def next_field(self) -> None:
        """Enter in a field goes on to the next: it never commits."""
        self.focus_next()

    @on(Button.Pressed, "#cancel")
    def cancel(self) -> None:
        self.dismiss()

    @on(Button.Pressed, "#commit")
    def commit(self) -> None:
        """With the world as it is now, not as it was drawn."""
        view = self.console.fresh_picture()
        if view is None:
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
        self.console.commit(self.plan, self.reason)
        self.dismiss()

    def _standing(self) -> str:
        return "" if self.console.window.open else READ_ONLY

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
            return clean("; ".join(self.plan.refused)) or "there is nothing left to do"
        if not self.reason:
            return "say why: the reason is kept with it"
        count = str(len(self.plan.targets))
        if len(self.targets) > 1 and self.query_one("#count", Input).value.strip() != count:
            return f"type {count} to {self.action.name} {count} of them"
        return ""
