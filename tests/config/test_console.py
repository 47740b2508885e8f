"""Settings of the console: where they come from, which count, and what is refused with file and line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from opsconsole.config.console import effective, read_cluster, read_file, read_keys, read_layers, settings_of, user_file
from opsconsole.config.errors import ConfigError
from opsconsole.config.yamlio import Source
from opsconsole.settings import ABOUT, Settings


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", f"{tmp_path}/first:{tmp_path}/second")
    for name in ABOUT:
        monkeypatch.delenv(f"OPSCONSOLE_{name.upper()}", raising=False)
    return tmp_path


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def said(path: Path, text: str) -> str:
    write(path, text)
    with pytest.raises(ConfigError) as caught:
        read_file(path)
    assert caught.value.exit_code == 2
    return str(caught.value)


def cluster(text: str) -> Mapping[str, object]:
    source = Source("inventory.yaml", text)
    top = source.mapping(source.root(), "", ["console"])
    layer = read_cluster(source, top.get("console"), Path("/site"))
    source.check()
    return layer


def test_without_any_file_the_defaults_count() -> None:
    assert settings_of(read_layers({})) == Settings()


def test_every_setting_is_described() -> None:
    assert {*ABOUT} == {*Settings.__slots__}


def test_the_nearest_counts(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flag, environment, cluster, user, system, default."""
    write(
        home / "second/opsconsole/config.toml", 'theme = "light"\nscreen = "drains"\nmouse = false\nmarks = "ascii"\n'
    )
    write(home / "first/opsconsole/config.toml", 'theme = "ansi"\nscreen = "drains"\nmouse = true\n')
    write(user_file(), 'theme = "light"\nscreen = "hosts"\ntimezone = "Europe/Berlin"\n')
    layer = cluster("console: {theme: contrast, screen: queue, read_only: true}")
    monkeypatch.setenv("OPSCONSOLE_THEME", "dark")
    monkeypatch.setenv("OPSCONSOLE_SCREEN", "budgets")
    found = effective(read_layers({"screen": "timeline", "slow_link": True, "theme": None}, layer))  # type: ignore[arg-type]
    assert {name: given.value for name, given in found.items()} == {
        "theme": "dark",
        "screen": "timeline",
        "marks": "ascii",
        "timezone": "Europe/Berlin",
        "mouse": True,
        "notify": "both",
        "slow_link": True,
        "read_only": True,
        "keys": "",
    }
    assert found["theme"].origin == "$OPSCONSOLE_THEME" and found["slow_link"].origin == "--slow-link"
    assert found["read_only"].origin == "inventory.yaml:1" and found["notify"].origin == "default"
    assert found["timezone"].origin == f"{user_file()}:3"


def test_unknown_keys_are_errors_with_a_suggestion_the_file_and_the_line(home: Path) -> None:
    path = home / "c.toml"
    assert said(path, '# mine\n\nthem = "dark"\n') == f"{path}:3: them: is not known; did you mean 'theme'?"
    assert "known: theme, screen" in said(path, "colours = 1\n")


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ('theme = "drak"', 1, "'drak' is none of dark, light, contrast, ansi; did you mean 'dark'?"),
        ('mouse = "no"', 1, "expected true or false, got 'no'; write it without quotes"),
        ("\ntimezone = 2", 2, "expected a word, got '2'; write it in quotes"),
        ('timezone = "Europe/Belin"', 1, "'Europe/Belin' is no time zone; did you mean 'Europe/Berlin'?"),
        ('timezone = "/etc/passwd"', 1, "is no time zone"),
        ('screen = [\n  "hosts"\n]', 1, "expected a word"),
        ('theme = "dark"\ntheme = "light"', 2, "cannot overwrite a value"),
        ("theme = dark", 1, "invalid value; write for example theme"),
        ("[colours]\n", 1, "is not known"),
        ("a = ", 1, "invalid value"),
        ('a = "\x00"', 1, "illegal character"),
        ('"\\u001b[31m\\u202e" = 1', 0, r"'\x1b[31m\u202e': is not known"),
        ("theme = " + "9" * 6000, 0, "holds a value that no setting takes"),
        ("theme = " + "[" * 50_000, 0, "holds a value that no setting takes"),
        ("\n".join(f"k{n} = 1" for n in range(20_000)), 1, "k0: is not known"),
    ],
)
def test_what_is_refused(home: Path, text: str, line: int, what: str) -> None:
    found = said(home / "c.toml", text)
    assert (f"c.toml:{line}:" if line else "c.toml: ") in found and what in found


def test_all_that_is_wrong_is_said_at_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(user_file(), 'them = "dark"\nmouse = 1\n')
    write(home / "first/opsconsole/config.toml", 'screen = "host"\n')
    monkeypatch.setenv("OPSCONSOLE_NOTIFY", "loud")
    with pytest.raises(ConfigError) as caught:
        read_layers({"timezone": "Mars"})
    assert len(caught.value.problems) == 5
    assert "command line: --timezone: 'Mars' is no time zone" in str(caught.value)
    assert "environment: $OPSCONSOLE_NOTIFY: 'loud' is none of" in str(caught.value)


def test_a_file_that_cannot_be_read(home: Path) -> None:
    (home / "c.toml").mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        read_file(home / "c.toml")
    (home / "d.toml").write_bytes(b'theme = "\xff"')
    with pytest.raises(ConfigError, match="not UTF-8"):
        read_file(home / "d.toml")


def test_the_part_of_an_inventory_is_checked_with_it() -> None:
    with pytest.raises(ConfigError, match=r"inventory.yaml:1: console.them: is not known; did you mean 'theme'"):
        cluster("console: {them: dark}")
    with pytest.raises(ConfigError, match=r"console.mouse: expected true or false, got 'no'; write false"):
        cluster("console: {mouse: no}")


def test_relative_paths_begin_where_they_are_written(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(user_file(), 'keys = "mine.toml"\n')
    assert settings_of(read_layers({})).keys == str(home / "user/opsconsole/mine.toml")
    assert settings_of(read_layers({}, cluster("console: {keys: k.toml}"))).keys == "/site/k.toml"  # type: ignore[arg-type]


def test_own_keys_are_words_or_lists_of_words(home: Path) -> None:
    path = write(home / "keys.toml", 'drain = "X"\nhold = ["H", "Ctrl-H"]\nzoom = []\n')
    assert read_keys(path)[0] == {"drain": ("X",), "hold": ("H", "Ctrl-H"), "zoom": ()}
    assert read_keys(home / "none.toml") == ({}, None)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_keys(home / "none.toml", must_exist=True)
    write(path, "drain = 1\nhold = [1]\n")
    with pytest.raises(ConfigError, match=r"keys.toml:1: drain: expected a key(.|\n)*keys.toml:2: hold"):
        read_keys(path)
