"""The file in which a person's arrangements of tables are kept: `views.json` in the state folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from opsconsole.config.errors import ConfigError
from opsconsole.config.folders import user_state, write_whole
from opsconsole.config.yamlio import read_plain
from opsconsole.presenting.arranging import Arrangements, Kept

NAME = "views.json"
MOST_BYTES = 1 << 20


class ArrangementsFile(Arrangements):
    """Read anew before each change, so that consoles side by side keep each other's. A broken file stays as it is."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    @classmethod
    def of_user(cls) -> Arrangements:
        """Where there is no home, nothing outlives the console."""
        try:
            return cls(user_state() / NAME)
        except ConfigError:
            return Arrangements()

    def load(self) -> None:
        self.kept = self._read()

    def change(self, change: Callable[[Kept], Kept]) -> None:
        kept = change(self._read())
        write_whole(self.path, msgspec.json.format(msgspec.json.encode(kept), indent=2).decode() + "\n")
        self.kept = kept

    def _read(self) -> Kept:
        """Raises ValueError where it is no such file; nothing kept where there is none."""
        try:
            text = read_plain(self.path, MOST_BYTES)
        except FileNotFoundError:
            return Kept()
        try:
            if text is None:
                raise ValueError("it is not a plain file")
            if len(text) > MOST_BYTES:
                raise ValueError("it is larger than anything the console writes")
            return msgspec.json.decode(text, type=Kept)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise ValueError(
                f"{self.path}: {error}; views and sort orders are not kept before it is mended or removed"
            ) from None
