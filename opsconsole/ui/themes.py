"""Own themes, by tokens only: presenting names a token, a theme gives it a colour. And marks for a typewriter."""

from __future__ import annotations

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter
from textual.theme import Theme

TOKENS = ("good", "warn", "bad", "unknown", "dim", "accent")

DARK = Theme(
    name="dark",
    primary="#7aa2f7",
    secondary="#9aa5ce",
    warning="#e0af68",
    error="#ff8a94",
    success="#8fce7a",
    accent="#7dcfff",
    foreground="#d5d9e6",
    background="#14161d",
    surface="#1b1e28",
    panel="#262a37",
    dark=True,
    variables={"unknown": "#d19af0", "quiet": "#9ca2b5", "cursor": "#2b3651"},
)
LIGHT = Theme(
    name="light",
    primary="#1f4fb5",
    secondary="#4a5568",
    warning="#805300",
    error="#b3142b",
    success="#1a6029",
    accent="#005f87",
    foreground="#1c1e24",
    background="#f7f7f4",
    surface="#eeeeea",
    panel="#dfe1dd",
    dark=False,
    variables={"unknown": "#7a2fa0", "quiet": "#5b606c", "cursor": "#d0ddf8"},
)
CONTRAST = Theme(
    name="contrast",  # every text at 7:1 and more on its ground
    primary="#5ec8ff",
    secondary="#ffffff",
    warning="#ffd200",
    error="#ffadad",
    success="#7dff9b",
    accent="#66e0ff",
    foreground="#ffffff",
    background="#000000",
    surface="#000000",
    panel="#1c1c1c",
    dark=True,
    variables={"unknown": "#f0a6ff", "quiet": "#d0d0d0", "cursor": "#002f73"},
)
ANSI = Theme(
    name="ansi",  # the terminal's own sixteen colours
    primary="ansi_blue",
    secondary="ansi_cyan",
    warning="ansi_yellow",
    error="ansi_red",
    success="ansi_green",
    accent="ansi_bright_cyan",
    foreground="ansi_default",
    background="ansi_default",
    surface="ansi_default",
    panel="ansi_default",
    boost="ansi_default",
    dark=True,
    ansi=True,
    variables={
        "unknown": "ansi_magenta",
        "quiet": "ansi_bright_black",
        "cursor": "ansi_blue",
        "ansi-background": "ansi_black",
        "ansi-foreground": "ansi_white",
    },
)
THEMES = {theme.name: theme for theme in (DARK, LIGHT, CONTRAST, ANSI)}
_TYPED = {
    "*": "●•▇",
    "+": "◐▆┌┐└┘├┤┬┴┼╭╮╰╯",
    "o": "○",
    "x": "✖×",
    "v": "✓▼▽↓",
    "^": "▲△↑",
    ">": "▶→≥",
    "<": "◀←≤",
    "~": "…±▄",
    ".": "·▂",
    "-": "–—−─━▃▔",
    "|": "│┃▏▎▍▌▋▊▉▕",
    "_": "▁",
    "=": "▅",
    "#": "█",
}
TYPED = {ord(mark): typed for typed, marks in _TYPED.items() for mark in marks}


class Typewriter(LineFilter):
    """Marks, bars and frames in ASCII, each as wide as before. Names of people and things stay as they are."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(text.translate(TYPED), style, control) for text, style, control in segments]
