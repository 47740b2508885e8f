"""The line at the bottom for commands and filters, with history and completion by Tab."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Literal

from rich.highlighter import Highlighter
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Input, Static

from opsconsole.presenting.completing import last_part
from opsconsole.ui.messages import LineEntered, LineLeft, LineTyped

Kind = Literal[":", "/"]
Completer = Callable[[Kind, str], Sequence[str]]
HISTORY = 100
LISTED = 6


class _Marked(Highlighter):
    """Underlines what is wrong, from one place to another."""

    wrong: tuple[int, int] | None = None

    def highlight(self, text: Text) -> None:
        if self.wrong is not None:
            text.stylize("underline", *self.wrong)


class EntryInput(Input):
    """Tab completes, up and down go through history."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "complete", show=False),
        Binding("up", "history(-1)", show=False),
        Binding("down", "history(1)", show=False),
        Binding("escape", "leave", show=False),
    ]

    def __init__(self) -> None:
        super().__init__(compact=True, select_on_focus=False, highlighter=_Marked())

    def mark(self, wrong: tuple[int, int] | None) -> None:
        assert isinstance(self.highlighter, _Marked)
        self.highlighter.wrong = wrong
        self.refresh()

    def action_complete(self) -> None:
        self.entry.complete()

    def action_history(self, by: int) -> None:
        self.entry.recall(by)

    def action_leave(self) -> None:
        self.entry.leave()

    @property
    def entry(self) -> Entry:
        found = self.parent
        assert isinstance(found, Entry)
        return found


class Entry(Horizontal):
    """Hidden until `ask`."""

    DEFAULT_CSS = """
    Entry { height: 1; background: $surface; }
    Entry > #prompt { width: 2; color: $accent; text-style: bold; }
    Entry > EntryInput { width: 1fr; height: 1; border: none; padding: 0; background: $surface; }
    Entry > #hint { width: auto; max-width: 60%; color: $quiet; }
    Entry > #hint.-bad { color: $error; }
    """

    def __init__(self, completer: Completer, history: list[str]) -> None:
        super().__init__(id="entry")
        self.completer = completer
        self.history = history
        self.kind: Kind = ":"
        self._at = 0
        self.display = False

    def compose(self) -> ComposeResult:
        yield Static("", id="prompt", markup=False)
        yield EntryInput()
        yield Static("", id="hint", markup=False)

    @property
    def input(self) -> EntryInput:
        return self.query_one(EntryInput)

    def ask(self, kind: Kind, text: str = "") -> None:
        self.kind = kind
        self._at = len(self.history)
        self.query_one("#prompt", Static).update(kind)
        self.input.value = text
        self.input.cursor_position = len(text)
        self.hint("")
        self.display = True
        self.screen.set_focus(self.input)  # at once: the next key is the line's

    def hint(self, text: str, wrong: tuple[int, int] | None = None) -> None:
        """What stands to the right: what could follow, or what is wrong, with the place of it."""
        hint = self.query_one("#hint", Static)
        hint.set_class(wrong is not None, "-bad")
        hint.update(f" {text}" if text else "")
        self.input.mark(wrong)

    def suggest(self) -> bool:
        """Says what the word that is being typed could become. False where that is nothing."""
        found = self._candidates(self.input.value)
        self.hint(_listed(found))
        return bool(found)

    def _candidates(self, text: str) -> list[str]:
        word = last_part(text).lower()
        found = [c for c in self.completer(self.kind, text) if c.lower().startswith(word)]
        return found if found != [word] else []

    def close(self) -> None:
        self.display = False

    def leave(self) -> None:
        self.close()
        self.post_message(LineLeft(self.kind))

    def complete(self) -> None:
        """The longest beginning that all candidates share; several are listed."""
        text = self.input.value
        found = self._candidates(text)
        if not found:
            return
        shared = _shared(found)
        done = text[: len(text) - len(last_part(text))] + shared
        self.input.value = done + (" " if len(found) == 1 and self.kind == ":" else "")
        self.input.cursor_position = len(self.input.value)
        self.hint(_listed(found) if len(found) > 1 else "")

    def recall(self, by: int) -> None:
        mine = [text[1:] for text in self.history if text.startswith(self.kind)]
        if not mine:
            return
        self._at = max(0, min(len(mine), min(self._at, len(mine)) + by))
        text = mine[self._at] if self._at < len(mine) else ""
        self.input.value = text
        self.input.cursor_position = len(text)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(LineTyped(self.kind, event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        text = event.value.strip()
        if text and (not self.history or self.history[-1] != self.kind + text):
            self.history.append(self.kind + text)
            del self.history[:-HISTORY]
        self.close()
        self.post_message(LineEntered(self.kind, text))


def _listed(words: Sequence[str]) -> str:
    return " ".join(words[:LISTED]) + (" …" if len(words) > LISTED else "")


def _shared(words: Sequence[str]) -> str:
    """The beginning that all share."""
    first = words[0]
    for n, letter in enumerate(first):
        if any(len(w) <= n or w[n].lower() != letter.lower() for w in words):
            return first[:n]
    return first
