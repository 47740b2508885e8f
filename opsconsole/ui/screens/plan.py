"""The dialog of a plan: what it does, to whom, at what cost. It stays live while open; opening it sends nothing.

Cancel has the focus, so Enter on a fresh dialog cancels. Commit asks again: if what the plan rests on has changed since
it was read, the dialog comes back and says what; on facts that are too old it does not commit at all.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Input

from opsconsole.presenting.changes import changes
from opsconsole.presenting.plans import Plan
from opsconsole.presenting.rows import Cell
from opsconsole.presenting.view import ClusterView
from opsconsole.ui.actions import Action, PlanOptions
from opsconsole.ui.widgets.lines import Lines
from opsconsole.ui.widgets.table import Table

if TYPE_CHECKING:
    from opsconsole.ui.app import OpsConsoleApp

READ_S = 0.7  # a key that repeats must not commit what nobody has read
REASONS = ("drain", "cordon", "requeue", "cancel")


class PlanScreen(ModalScreen[None]):
    """`targets` are names: what is acted on is what is named here, whatever the tables do meanwhile."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss_plan", "cancel"),
        Binding("f2", "mode", "mode"),
    ]

    def __init__(self, action: Action, targets: Sequence[str], view: ClusterView) -> None:
        super().__init__()
        self.action, self.targets = action, list(targets)
        self.options = PlanOptions()
        self.plan = self._make(view)
        self.read = self.plan  # what the person has read
        self.opened_at = time.monotonic()
        self.changed: list[str] = []

    def _make(self, view: ClusterView) -> Plan:
        assert self.action.plan is not None
        return self.action.plan(view, self.targets, self.options)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Lines(id="plan-head")
            yield Table(id="plan-table")
            yield Lines(id="plan-effect")
            with Horizontal(classes="fields"):
                yield Input(placeholder="reason", id="reason")
                yield Input(placeholder=f"type {len(self.targets)} to confirm", id="count")
            yield Lines(id="plan-note")
            with Horizontal(classes="buttons"):
                yield Button("Cancel", id="cancel", variant="primary")
                yield Button(f"{self.action.name.capitalize()}", id="commit", variant="error")

    def on_mount(self) -> None:
        self.query_one("#count").display = len(self.targets) > 1
        self.query_one("#cancel").focus()
        self._show()

    @property
    def console(self) -> OpsConsoleApp:
        return cast("OpsConsoleApp", self.app)

    @property
    def reason(self) -> str:
        return self.query_one("#reason", Input).value.strip()

    # -- live ------------------------------------------------------------------------------------------------------

    def update_plan(self, view: ClusterView) -> None:
        """The picture moved on: the plan is computed anew."""
        self.plan = self._make(view)
        if self.is_mounted:
            self._show()

    def action_mode(self) -> None:
        """The next way to do it, for actions that have several."""
        choices = self.action.choices
        if not choices or self.console.picture is None:
            return
        now = "now" if self.options.now else self.options.mode
        then = choices[(choices.index(now) + 1) % len(choices)]
        mode = cast(Literal["contract", "finish", "now"], then)
        self.options = PlanOptions(mode, 3_600_000 if then == "finish" else None, then == "now")
        self.read = self.plan = self._make(self.console.picture)
        self.changed = []
        self._show()

    def _show(self) -> None:
        mode = "now" if self.options.now else self.options.mode
        head = [Cell(self.plan.table.title, "accent"), Cell("  nothing sent yet", "dim")]
        if self.action.choices:
            head.append(Cell(f"   mode: {mode} (F2 changes)", "warn" if mode == "now" else ""))
        self.query_one("#plan-head", Lines).show_lines([head])
        self.query_one("#plan-table", Table).show(self.plan.table)
        effect = [[Cell(line, "bad" if "breaks" in line else "")] for line in self.plan.effect]
        effect += [[Cell(f"✖ {line}", "bad")] for line in self.plan.refused]
        effect.append([Cell(f"the same: {self.plan.command}", "dim")])
        self.query_one("#plan-effect", Lines).show_lines(effect)
        self._note()

    def _note(self) -> None:
        lines = [[Cell(f"changed: {text}", "warn")] for text in self.changed]
        if not self.console.window.open:
            lines.append([Cell("read-only: Esc, then :write 15m reason", "warn")])
        self.query_one("#plan-note", Lines).show_lines(lines)

    # -- ending ----------------------------------------------------------------------------------------------------

    def action_dismiss_plan(self) -> None:
        self.dismiss()

    @on(Button.Pressed, "#cancel")
    def cancel(self) -> None:
        self.dismiss()

    @on(Button.Pressed, "#commit")
    def commit(self) -> None:
        if problem := self._why_not():
            self.query_one("#plan-note", Lines).show_lines([[Cell(problem, "bad")]])
            return
        if self.changed:
            self.read = self.plan
            self._note()
            return
        self.console.commit(self)
        self.dismiss()

    def _why_not(self) -> str:
        """Everything that keeps a plan from being carried out, the nearest first. Empty where nothing does."""
        if time.monotonic() - self.opened_at < READ_S:
            return "read it first"
        if not self.console.window.open:
            return "read-only: Esc, then :write 15m reason"
        view = self.console.picture
        if view is None:
            return "there is no picture of the cluster"
        self.plan = self._make(view)
        if not self.plan.possible:
            return "; ".join(self.plan.refused) or "nothing to do"
        if self.plan.stale:
            return f"facts of {', '.join(self.plan.stale)} are older than two intervals: wait, or Ctrl-R"
        if self.action.name in REASONS and not self.reason:
            return "say why: the reason is kept with it"
        if len(self.targets) > 1 and self.query_one("#count", Input).value.strip() != str(len(self.plan.targets)):
            return f"type {len(self.plan.targets)} to {self.action.name} {len(self.plan.targets)} of them"
        self.changed = changes(self.read, self.plan)
        return ""
