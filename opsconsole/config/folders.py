"""Where our own files lie, by the XDG base directories, and how they are written."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs.unix import Unix

from opsconsole.config.errors import ConfigError, Problem

_OURS = Unix("opsconsole", appauthor=False, multipath=True)


def user_config() -> Path:
    """`$XDG_CONFIG_HOME/opsconsole`. Raises ConfigError where there is no home."""
    return _known(_OURS.user_config_path, "XDG_CONFIG_HOME")


def user_state() -> Path:
    """`$XDG_STATE_HOME/opsconsole`: what the console keeps by itself. Raises ConfigError where there is no home."""
    return _known(_OURS.user_state_path, "XDG_STATE_HOME")


def system_config() -> list[Path]:
    """`opsconsole` in each of `$XDG_CONFIG_DIRS`, the first counts most."""
    return [Path(folder) for folder in _OURS.site_config_dir.split(":")]


def write_whole(path: Path, text: str) -> None:
    """As a whole or not at all, for this user alone. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(new, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(text)
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)


def _known(path: Path, variable: str) -> Path:
    if path.is_absolute():
        return path
    raise ConfigError(
        [Problem("environment", 0, variable, "the home directory is not known", f"set HOME or {variable}")]
    )
