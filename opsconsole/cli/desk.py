"""What surrounds a console: its settings from every layer, own keys, and the files that it writes."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from opsconsole.cli.arrangements import ArrangementsFile
from opsconsole.config.console import Layer, keys_file, read_keys, read_layers, settings_of
from opsconsole.config.folders import user_state, write_whole
from opsconsole.config.scalars import suggestion
from opsconsole.settings import Settings
from opsconsole.ui.actions import BY_NAME
from opsconsole.ui.desk import Desk
from opsconsole.ui.keymap import KeyClash, Keymap, key_named

COPIED = "copied.txt"
HEAD = "# Keys of actions, as :keys has written them; opsconsole config validate checks them.\n"


def desk_of(args: argparse.Namespace, cluster: Layer | None = None) -> Desk:
    """Raises ConfigError with all that is wrong in settings, or in own keys."""
    settings = settings_of(read_layers(vars(args), cluster))
    keymap = own_keymap(settings)
    _go_by(settings.timezone)
    path = keys_file(settings)
    return Desk(settings, keymap, lambda keys: _save_keys(path, keys), _save_copy, ArrangementsFile.of_user())


def own_keymap(settings: Settings) -> Keymap:
    """Raises ConfigError: unknown actions, what is no key, and clashes with both names."""
    written, file = read_keys(keys_file(settings), must_exist=bool(settings.keys))
    own: dict[str, tuple[str, ...]] = {}
    for name, keys in written.items():
        assert file is not None
        if name not in BY_NAME:
            file.fail(name, "is no action", suggestion(name, BY_NAME))
            continue
        try:
            own[name] = tuple(dict.fromkeys(map(key_named, keys)))
        except ValueError as error:
            what, _, fix = str(error).partition("; ")
            file.fail(name, what, fix)
    try:
        keymap = Keymap(own)
    except KeyClash as clash:
        assert file is not None  # the registry alone has none
        file.fail(clash.one if clash.one in own else clash.other, str(clash), "give one of them another key")
    if file is not None:
        file.check()
    return keymap


def _go_by(timezone: str) -> None:
    """All times of this process, and of what it starts."""
    if timezone != "local":
        os.environ["TZ"] = timezone
        time.tzset()


def _save_keys(path: Path, keys: Mapping[str, Sequence[str]]) -> str:
    lines = [f"{name} = {json.dumps(list(own), ensure_ascii=False)}" for name, own in keys.items()]
    write_whole(path, HEAD + "".join(f"{line}\n" for line in lines))
    return str(path)


def _save_copy(text: str) -> str:
    path = user_state() / COPIED
    write_whole(path, text)
    return str(path)
