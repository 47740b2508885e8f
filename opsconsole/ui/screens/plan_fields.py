"""What a person fills in before a plan is carried out. Only the fields that its action has are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.suggester import SuggestFromList
from textual.widgets import Input, Label

from opsconsole.presenting.text import clean
from opsconsole.ui.actions import Action

DEADLINE = "1h"  # offered for `finish`
HOW = ("to", "until")  # they stand above the others


class PlanFields(Vertical):
    """`suggested`: values that may be meant by `to`. `filled`: what is known already, by field."""

    DEFAULT_CSS = "PlanFields { height: auto; } PlanFields Horizontal { height: 1; }"

    def __init__(self, action: Action, count: int, suggested: Sequence[str], filled: Mapping[str, str]) -> None:
        super().__init__(id="plan-fields")
        self.action, self.count, self.suggested, self.filled = action, count, suggested, filled

    def compose(self) -> ComposeResult:
        with Horizontal(id="plan-how"):
            yield from self._field("to", self.action.to, "")
            yield from self._field("until", "Until", "lifted; or 2h, 17:30" if self.action.lasts else "2h, or 17:30")
        with Horizontal():
            yield from self._field("reason", "Reason", "kept with it")
            yield from self._field("ticket", "Ticket", "if any")
            yield from self._field("count", f"Type {self.count}", "to confirm")

    def _field(self, name: str, label: str, hint: str) -> ComposeResult:
        """A labelled line to type in. The brackets show it also without colour."""
        value = self.filled.get(name, "")
        if name == "until" and not value and not self.action.lasts:
            value = DEADLINE
        suggester = SuggestFromList(self.suggested) if name == "to" and self.suggested else None
        yield Label(f"{label} ", classes=name, markup=False)
        yield Label("[", classes=name, markup=False)
        yield Input(
            value,
            placeholder=hint,
            id=name,
            classes=name,
            compact=True,
            select_on_focus=bool(value),
            suggester=suggester,
        )
        yield Label("]  ", classes=name, markup=False)

    def on_mount(self) -> None:
        self.show_field("to", bool(self.action.to))
        self.show_field("count", self.count > 1)

    def show_field(self, name: str, shown: bool) -> None:
        for part in self.query(f".{name}"):
            part.display = shown
        self.query_one("#plan-how").display = any(self.shows(name) for name in HOW)

    @property
    def tall(self) -> int:
        """Lines beyond the one that is always there."""
        return int(self.query_one("#plan-how").display)

    def shows(self, name: str) -> bool:
        return bool(self.query_one(f"#{name}").display)

    def typed(self, name: str) -> str:
        """What stands there now; nothing in a field that is not shown."""
        field = self.query_one(f"#{name}", Input)
        return clean(field.value.strip()) if field.display else ""

    def type_early(self, text: str) -> None:
        """What was typed before anything had the focus: the value where one is wanted, else the reason."""
        name = "to" if self.action.to and not self.typed("to") else "reason"
        field = self.query_one(f"#{name}", Input)
        self.screen.set_focus(field)
        field.insert_text_at_cursor(text)
