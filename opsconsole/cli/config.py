"""`opsconsole config`: where the console's settings lie, whether they are right, and which of them count."""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

from opsconsole.cli.desk import own_keymap
from opsconsole.config.console import (
    Layer,
    effective,
    keys_file,
    read_layers,
    settings_of,
    system_files,
    user_file,
)
from opsconsole.config.errors import ConfigError
from opsconsole.config.folders import user_state
from opsconsole.config.inventory import find_inventory, read_inventory


def run(args: argparse.Namespace) -> int:
    """Exit status 2 where something is wrong in them."""
    commands = {"path": _path, "validate": _validate, "print": _print}
    return commands[args.what](args)


def _cluster(args: argparse.Namespace) -> Layer:
    """What the inventory says, where there is one. Raises ConfigError where it is wrong."""
    try:
        path = find_inventory(args.inventory)
    except ConfigError:
        return {}
    return read_inventory(path).console


def _path(args: argparse.Namespace) -> int:
    files = [("user", user_file()), *(("system", path) for path in system_files())]
    files.append(("keys", keys_file(settings_of(read_layers(vars(args), _cluster(args))))))
    files.append(("state", user_state()))
    if args.json:
        print(json.dumps([{"what": w, "path": str(p), "there": os.path.lexists(p)} for w, p in files], indent=2))
        return 0
    for what, path in files:
        print(f"{what:7} {path}{'' if os.path.lexists(path) else '  (not there)'}")
    return 0


def _validate(args: argparse.Namespace) -> int:
    try:
        settings = settings_of(read_layers(vars(args), _cluster(args)))
        own_keymap(settings)
    except ConfigError as error:
        if not args.json:
            raise
        print(json.dumps({"ok": False, "problems": error.as_json()}, indent=2))
        return error.exit_code
    there = [str(path) for path in (user_file(), *system_files(), keys_file(settings)) if os.path.lexists(path)]
    said = f"{', '.join(there)}: good" if there else "there are no files of the console's own; defaults count"
    print(json.dumps({"ok": True, "problems": []}, indent=2) if args.json else said)
    return 0


def _print(args: argparse.Namespace) -> int:
    """As a config.toml that would set the same."""
    found = effective(read_layers(vars(args), _cluster(args)))
    if args.json:
        listed: dict[str, Any] = {name: {"value": g.value, "from": g.origin} for name, g in found.items()}
        print(json.dumps(listed, indent=2))
        return 0
    lines = {
        name: f"{name} = {json.dumps(given.value, ensure_ascii=False)}"
        for name, given in found.items()
        if given.value != ""
    }
    width = max(map(len, lines.values()))
    for name, line in lines.items():
        print(f"{line:{width}}  # {found[name].origin}")
    return 0
