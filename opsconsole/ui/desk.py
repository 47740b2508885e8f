"""What surrounds one console: what people set about it, and the few files that it may leave behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from opsconsole.presenting.arranging import Arrangements
from opsconsole.settings import Settings
from opsconsole.ui.keymap import Keymap


def _no_place(*_: object) -> str:
    raise OSError("this console keeps no files")


@dataclass(frozen=True)
class Desk:
    """The composition root makes one. What writes a file returns its path; it raises OSError."""

    settings: Settings = field(default_factory=Settings)
    keymap: Keymap = field(default_factory=Keymap)
    save_keys: Callable[[Mapping[str, Sequence[str]]], str] = _no_place
    save_copy: Callable[[str], str] = _no_place
    arrangements: Arrangements = field(default_factory=Arrangements)
