"""The console's own settings, from where people write them: config.toml, the inventory, the environment, flags.

The nearest wins: flag, environment, cluster, user, system, default. What reads TOML and zones is imported when there is
any: all commands read an inventory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from yaml.nodes import Node

from opsconsole.config.errors import ConfigError, Problem
from opsconsole.config.folders import system_config, user_config
from opsconsole.config.scalars import parse_boolean, parse_choice, parse_text, shown, suggestion
from opsconsole.config.yamlio import Source
from opsconsole.settings import ABOUT, Settings

if TYPE_CHECKING:
    from opsconsole.config.tomlio import TomlFile

FILE, KEYS_FILE = "config.toml", "keys.toml"
PREFIX = "OPSCONSOLE_"
DEFAULTS = Settings()


@dataclass(frozen=True, slots=True)
class Given:
    """One setting as somebody gave it, and where."""

    value: str | bool
    origin: str


Layer = Mapping[str, Given]
T = TypeVar("T")


def user_file() -> Path:
    return user_config() / FILE


def system_files() -> list[Path]:
    return [folder / FILE for folder in system_config()]


def variable(name: str) -> str:
    """The environment's name of a setting."""
    return PREFIX + name.upper()


def read_file(path: Path) -> Layer:
    """What a config.toml sets; nothing where there is none. Raises ConfigError with everything that is wrong in it."""
    if not os.path.lexists(path):
        return {}
    from opsconsole.config.tomlio import TomlFile

    file = TomlFile.open(str(path))
    found: dict[str, Given] = {}
    for key, value in file.entries.items():
        if key not in ABOUT:
            file.fail(key, "is not known", suggestion(key, ABOUT))
            continue
        try:
            found[key] = Given(_typed(key, value, path.parent), f"{path}:{file.line(key)}")
        except ValueError as error:
            file.fail(key, *str(error).split("; ", 1))
    file.check()
    return found


def from_environment(environment: Mapping[str, str] = os.environ) -> Layer:
    """`$OPSCONSOLE_THEME` and so on; an empty one counts as none. Raises ConfigError."""
    given = {name: environment[variable(name)] for name in ABOUT if environment.get(variable(name))}
    return _words(given, "environment", lambda name: f"${variable(name)}")


def from_flags(given: Mapping[str, Any]) -> Layer:
    """Of the command line; None where a flag was not given. Raises ConfigError."""
    flags = {name: given[name] for name in ABOUT if given.get(name) is not None}
    booleans = {
        name: Given(value, _flag(name if value else f"no_{name}"))
        for name, value in flags.items()
        if isinstance(value, bool)
    }
    words = {name: value for name, value in flags.items() if name not in booleans}
    return booleans | dict(_words(words, "command line", _flag))


def read_cluster(source: Source, node: Node | None, base: Path) -> Layer:
    """The `console` part of an inventory; its problems go to the source."""
    found: dict[str, Given] = {}
    for key, value in source.mapping(node, "console", ABOUT).items():
        field = f"console.{key}"
        read = source.parsed(value, field, lambda text, key=key: _read(key, text, base))  # type: ignore[misc]
        if read is not None:
            found[key] = Given(read, f"{source.file}:{value.start_mark.line + 1}")
    return found


def _words(given: Mapping[str, str], place: str, name_of: Any) -> Layer:
    found: dict[str, Given] = {}
    problems = []
    for name, text in given.items():
        try:
            found[name] = Given(_read(name, text, Path.cwd()), name_of(name))
        except ValueError as error:
            what, _, fix = str(error).partition("; ")
            problems.append(Problem(place, 0, name_of(name), what, fix))
    if problems:
        raise ConfigError(problems)
    return found


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _typed(name: str, value: object, base: Path) -> str | bool:
    """A value of TOML, which has types of its own. Raises ValueError."""
    wants = isinstance(getattr(DEFAULTS, name), bool)
    if wants and isinstance(value, bool):
        return value
    if wants:
        raise ValueError(f"expected true or false, got {shown(str(value))}; write it without quotes")
    if not isinstance(value, str):
        raise ValueError(f"expected a word, got {shown(str(value))}; write it in quotes")
    return _read(name, value, base)


def _read(name: str, text: str, base: Path) -> str | bool:
    """Of a text. Relative paths begin at `base`. Raises ValueError "what is wrong; what to write"."""
    if isinstance(getattr(DEFAULTS, name), bool):
        return parse_boolean(text)
    if ABOUT[name].choices:
        return parse_choice(text, ABOUT[name].choices)
    if name == "timezone":
        return _timezone(text)
    try:
        return str(base / Path(parse_text(text)).expanduser())
    except RuntimeError:
        raise ValueError(f"the home directory in {shown(text)} is not known; write the whole path") from None


def _timezone(text: str) -> str:
    if text in (DEFAULTS.timezone, "UTC"):
        return text
    import zoneinfo

    try:
        return zoneinfo.ZoneInfo(text).key
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        pass
    known = sorted(zoneinfo.available_timezones())
    fix = suggestion(text, known) if known else "this machine knows no zones"
    raise ValueError(f"{shown(text)} is no time zone; {fix if 'mean' in fix else 'write local, UTC or Europe/Berlin'}")


def read_layers(flags: Mapping[str, Any], cluster: Layer | None = None) -> list[Layer]:
    """The nearest first. Raises ConfigError with everything that is wrong in any of them."""
    readers: list[Callable[[], Layer]] = [lambda: from_flags(flags), from_environment, lambda: cluster or {}]
    readers += [lambda path=path: read_file(path) for path in (user_file(), *system_files())]  # type: ignore[misc]
    return every(readers)


def every(readers: Iterable[Callable[[], T]]) -> list[T]:
    """What they all read. Raises ConfigError with the problems of all."""
    found: list[T] = []
    problems: list[Problem] = []
    for read in readers:
        try:
            found.append(read())
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)
    return found


def effective(layers: Sequence[Layer]) -> dict[str, Given]:
    """What counts, in the order of `ABOUT`."""
    default = {name: Given(getattr(DEFAULTS, name), "default") for name in ABOUT}
    found: dict[str, Given] = {}
    for layer in reversed([*layers, default]):
        found |= layer
    return {name: found[name] for name in ABOUT}


def settings_of(layers: Sequence[Layer]) -> Settings:
    return Settings(**{name: given.value for name, given in effective(layers).items()})  # type: ignore[arg-type]


def keys_file(settings: Settings) -> Path:
    return Path(settings.keys) if settings.keys else user_config() / KEYS_FILE


def read_keys(path: Path, must_exist: bool = False) -> tuple[dict[str, tuple[str, ...]], TomlFile | None]:
    """Own keys by action, as written; the file, which tells the lines. Raises ConfigError. None: there is no file."""
    if not must_exist and not os.path.lexists(path):
        return {}, None
    from opsconsole.config.tomlio import TomlFile

    file = TomlFile.open(str(path))
    found: dict[str, tuple[str, ...]] = {}
    for action, keys in file.entries.items():
        listed = [keys] if isinstance(keys, str) else keys
        if isinstance(listed, list) and all(isinstance(key, str) and key for key in listed):
            found[action] = tuple(listed)
        else:
            file.fail(action, f"expected a key or a list of keys, got {shown(str(keys))}", 'write for example "D"')
    file.check()
    return found, file
