"""The `:` line: a word of the registry, or a beginning that only one has, and what follows it."""

from __future__ import annotations

import difflib
import shlex

from opsconsole.ui.actions import ACTIONS, BY_NAME, Action

ALIASES = {"q": "quit", "q!": "quit", "exit": "quit", "w": "write", "h": "help", "ro": "readonly", "kill": "cancel"}
HIDDEN = ("command", "leave", "neighbour_before", "neighbour_after", "pane", "back", "previous")  # keys only
SHELL = ("submit", "logs", "events", "snapshot", "check", "plan", "serve", "adopt", "declare")  # on the command line


class CommandError(ValueError):
    """What is wrong with a command, for people."""


def command_words() -> list[str]:
    return [a.name for a in ACTIONS if a.where == "app" and a.name not in HIDDEN]


def parse_command(line: str) -> tuple[Action, str]:
    """Raises CommandError, with the nearest command where there is one."""
    word, _, rest = line.strip().partition(" ")
    name = ALIASES.get(word, word)
    begun = [known for known in command_words() if known.startswith(name)]
    if name not in BY_NAME and len(begun) == 1:
        name = begun[0]
    if name not in BY_NAME or BY_NAME[name].where != "app":
        if word in SHELL:
            raise CommandError(f"{word} is a command of the shell: opsconsole {word} …")
        near = difflib.get_close_matches(word, command_words(), 1)
        several = (
            f"; it could be {', '.join(begun)}" if begun else f"; did you mean {near[0]}?" if near else ": ? lists all"
        )
        raise CommandError(f"no command {word!r}{several}")
    return BY_NAME[name], rest.strip()


def words_of(text: str) -> list[str]:
    """Names as a shell would split them. Raises CommandError."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise CommandError(f"{error} in {text!r}") from None
