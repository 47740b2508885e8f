"""docs/keys.md, from the registry of actions."""

from __future__ import annotations

from opsconsole.ui.actions import ACTIONS, Action
from opsconsole.ui.commands import ALIASES, command_words
from opsconsole.ui.keymap import Keymap
from opsconsole.ui.screens.help import GROUPS

HEAD = """\
# Keys and commands

Every action of the console, from its registry: `make looks` writes this page. `?` shows the same with your
own keys, which [config.md](config.md) tells how to choose. A command can be shortened as long as no other begins so.
"""


def keys_page() -> str:
    """As Markdown."""
    parts = [HEAD]
    for group in GROUPS:
        rows = [_row(action) for action in ACTIONS if action.group == group]
        parts.append(
            "\n".join([f"## {group.capitalize()}", "| action | keys | command | |", "|---|---|---|---|", *rows])
        )
    short = ", ".join(f"`:{alias}` is `:{name}`" for alias, name in ALIASES.items())
    return "\n\n".join([*(part.strip() for part in parts), f"Short forms: {short}."]) + "\n"


def _row(action: Action) -> str:
    keys = " ".join(f"`{key}`" for key in Keymap().shown(action.name).split(" ") if key)
    command = f"`:{action.name} {action.usage}".strip() + "`" if action.name in command_words() else ""
    cells = [f"`{action.name}`", keys, command, action.help]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |".replace("  |", " |")
