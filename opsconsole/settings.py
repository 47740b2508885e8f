"""What people set about the console itself: names, values, defaults. Where they come from: `config.console`."""

from __future__ import annotations

from dataclasses import dataclass

UNICODE, ASCII = "unicode", "ascii"


@dataclass(frozen=True, slots=True)
class Settings:
    """All that is set, each with its default."""

    theme: str = "dark"
    screen: str = "overview"
    marks: str = UNICODE
    timezone: str = "local"
    mouse: bool = True
    notify: str = "both"
    slow_link: bool = False
    read_only: bool = False
    keys: str = ""


@dataclass(frozen=True, slots=True)
class About:
    """What one of them means, for people. `choices`: the values that it takes, where they can be listed."""

    help: str
    choices: tuple[str, ...] = ()
    metavar: str = ""


ABOUT: dict[str, About] = {
    "theme": About("colours; ansi: the terminal's own sixteen", ("dark", "light", "contrast", "ansi")),
    "screen": About(
        "the screen that is shown first", ("overview", "hosts", "queue", "budgets", "drains", "timeline", "log")
    ),
    "marks": About("ascii: no characters but those of a typewriter", (UNICODE, ASCII)),
    "timezone": About("of the times on screens: local, UTC, or a name such as Europe/Berlin", metavar="ZONE"),
    "mouse": About("take clicks and the wheel; without it the terminal selects text itself"),
    "notify": About("how :notify tells of an end: bell, OSC 777, both or neither", ("both", "bell", "desktop", "off")),
    "slow_link": About("one frame per poll at most, and only what differs"),
    "read_only": About("no write window can be opened"),
    "keys": About("own keys; default: keys.toml beside the user's file", metavar="FILE"),
}
