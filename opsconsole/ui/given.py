"""The words behind an action's command: what it is done to, and what its dialog need not be told again.

They are those of the command line, so that a plan's `opsconsole move w7 --to nlp` can be said here too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from opsconsole.ui.actions import Action
from opsconsole.ui.commands import CommandError


@dataclass(slots=True)
class Given:
    """`fields` by the names of the dialog's fields."""

    targets: list[str] = field(default_factory=list)
    mode: str = ""
    fields: dict[str, str] = field(default_factory=dict)


def given(action: Action, words: Sequence[str]) -> Given:
    """Raises CommandError for options that the action does not take, and those without their value."""
    found, left = Given(), list(words)
    known = action.options
    while left:
        word = left.pop(0)
        if not word.startswith("--"):
            found.targets.append(word)
        elif word == "--now" and "now" in action.choices:
            found.mode = "now"
        elif word not in known:
            raise CommandError(f"{action.name} takes no {word}; it takes {', '.join(known)}")
        elif not left:
            raise CommandError(f"{action.name} {word} needs a value behind it")
        elif word == "--mode":
            found.mode = _mode(action, left.pop(0))
        else:
            found.fields[known[word]] = left.pop(0)
    return found


def _mode(action: Action, word: str) -> str:
    if word not in action.choices:
        raise CommandError(f"{action.name} has no mode {word!r}; it has {', '.join(action.choices)}")
    return word
