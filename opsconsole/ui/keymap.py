"""Which keys do what: those of the registry, or people's own; how keys are written, and that none does two things."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence

from textual.keys import KEY_NAME_REPLACEMENTS, format_key

from opsconsole.ui.actions import ACTIONS, BY_NAME, UNBOUND

WRITTEN = {
    "escape": "Esc",
    "enter": "Enter",
    "space": "Space",
    "backspace": "Backspace",
    "delete": "Del",
    "insert": "Ins",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "tab": "Tab",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "home": "Home",
    "end": "End",
}
MODIFIERS = {"ctrl": "Ctrl", "alt": "Alt", "shift": "Shift"}
NAMED = {shown.lower(): key for key, shown in WRITTEN.items()} | {key: key for key in WRITTEN}
NAMED |= {f"f{n}": f"f{n}" for n in range(1, 25)}


def shown_key(key: str) -> str:
    """As it is printed on keyboards: Ctrl-R, PgUp, *."""
    *held, last = key.split("+")
    name = WRITTEN.get(last) or (last.upper() if last in NAMED or (held and len(last) == 1) else "")
    return "-".join([*(MODIFIERS.get(m, m) for m in held), name or format_key(last)])


def key_named(text: str) -> str:
    """Textual's name of a key as people write it. Raises ValueError."""
    *held, last = re.split(r"[-+](?=.)", text) if len(text) > 1 else [text]
    modifiers = [word.lower() for word in held]
    if set(modifiers) <= set(MODIFIERS):
        if (name := NAMED.get(last.lower())) is not None and (len(last) > 1 or last in WRITTEN.values()):
            return "+".join([*modifiers, name])
        if len(last) == 1 and "shift" not in modifiers:
            return "+".join([*modifiers, _of_character(last.lower() if held else last)])
    raise ValueError(f"{text!r} is no key; write for example D, Ctrl-R, F5 or Esc")


def _of_character(character: str) -> str:
    if character.isalnum():
        return character
    name = unicodedata.name(character, character).lower().replace("-", "_").replace(" ", "_")
    return KEY_NAME_REPLACEMENTS.get(name, name)


class KeyClash(ValueError):
    """One key for two actions."""

    def __init__(self, key: str, one: str, other: str) -> None:
        super().__init__(f"key {shown_key(key)} is claimed by {one} and by {other}")
        self.one, self.other = one, other


class Keymap:
    """`own`: keys by action, instead of the registry's; none at all is possible too. Raises KeyClash."""

    def __init__(self, own: Mapping[str, Sequence[str]] | None = None) -> None:
        self.own = {name: tuple(keys) for name, keys in (own or {}).items() if tuple(keys) != BY_NAME[name].keys}
        if found := clashes(self.of):
            raise found[0]

    def of(self, name: str) -> tuple[str, ...]:
        return self.own.get(name, BY_NAME[name].keys)

    def shown(self, name: str) -> str:
        """All of them, as one reads them."""
        return " ".join(shown_key(key) for key in self.of(name))

    def changed(self, name: str, keys: Sequence[str]) -> Keymap:
        """With other keys for one action. Raises KeyClash."""
        return Keymap({**self.own, name: tuple(keys)})

    def default(self, name: str) -> Keymap:
        return Keymap({other: keys for other, keys in self.own.items() if other != name})

    def bindings(self) -> dict[str, str]:
        """For Textual, which knows bindings by their ids."""
        return {name: ",".join(keys) or UNBOUND for name, keys in self.own.items()}

    def written(self) -> dict[str, list[str]]:
        """For a file."""
        return {name: [shown_key(key) for key in keys] for name, keys in self.own.items()}


def clashes(of: Callable[[str], Sequence[str]]) -> list[KeyClash]:
    """Keys that two actions claim, as `of` tells the keys of an action."""
    owners: dict[str, str] = {}
    found: list[KeyClash] = []
    for action in ACTIONS:
        for key in of(action.name):
            if owners.setdefault(key, action.name) != action.name:
                found.append(KeyClash(key, owners[key], action.name))
    return found
