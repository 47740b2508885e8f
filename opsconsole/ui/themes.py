"""Own themes, by tokens only: presenting names a token, a theme gives it a colour."""

from __future__ import annotations

from textual.theme import Theme

TOKENS = ("good", "warn", "bad", "unknown", "dim", "accent")

DARK = Theme(
    name="ops-dark",
    primary="#7aa2f7",
    secondary="#9aa5ce",
    warning="#e0af68",
    error="#ff7a85",
    success="#8fce7a",
    accent="#7dcfff",
    foreground="#d5d9e6",
    background="#14161d",
    surface="#1b1e28",
    panel="#262a37",
    dark=True,
    variables={"unknown": "#d19af0", "quiet": "#8e94a8", "cursor": "#33405f"},
)
LIGHT = Theme(
    name="ops-light",
    primary="#1f4fb5",
    secondary="#4a5568",
    warning="#8a5a00",
    error="#b3142b",
    success="#1d6b2f",
    accent="#005f87",
    foreground="#1c1e24",
    background="#f7f7f4",
    surface="#eeeeea",
    panel="#dfe1dd",
    dark=False,
    variables={"unknown": "#7a2fa0", "quiet": "#5b606c", "cursor": "#c4d4f5"},
)
ANSI = Theme(
    name="ops-ansi",  # the terminal's own sixteen colours
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
THEMES = (DARK, LIGHT, ANSI)
