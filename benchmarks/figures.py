"""How benchmarks say what they found: one line per figure, with its goal where there is one."""

from __future__ import annotations


def say(what: str, figure: float, unit: str, goal: float | None = None, more: str = "") -> None:
    """`goal` is the most that `figure` may be, in the same unit."""
    digits = 0 if figure >= 100 else 1 if figure >= 10 else 2
    verdict = "" if goal is None else f"goal {goal:g} {unit}: {'reached' if figure <= goal else 'MISSED'}"
    print("; ".join(part for part in (f"{what}: {figure:.{digits}f} {unit}", verdict, more) if part), flush=True)
