"""Trees as their parts name them: each knows its parent. Whose parent is not among them stands at the top."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeVar

from scheduler_core.errors import SchedulerCoreError, UnknownIdError

TOP = ""  # the parent of those at the top


class Part(Protocol):
    """Anything that hangs in a tree."""

    @property
    def id(self) -> str: ...

    @property
    def parent(self) -> str: ...


P = TypeVar("P", bound=Part)


def by_id(parts: Iterable[P]) -> dict[str, P]:
    """By id, in the given order. SchedulerCoreError where an id stands twice, or parts hang in a circle."""
    found: dict[str, P] = {}
    for part in parts:
        if part.id in found:
            raise SchedulerCoreError(f"{part.id!r} stands twice in the tree")
        found[part.id] = part
    for part in found.values():
        path(found, part.id)
    return found


def children(parts: Mapping[str, P]) -> dict[str, list[str]]:
    """The ids below each id and below TOP, in the given order."""
    below: dict[str, list[str]] = {TOP: [], **{name: [] for name in parts}}
    for part in parts.values():
        below[part.parent if part.parent in parts else TOP].append(part.id)
    return below


def path(parts: Mapping[str, P], of: str) -> list[str]:
    """From the top down to `of`. UnknownIdError where it is not in the tree."""
    if of not in parts:
        raise UnknownIdError(f"no {of!r} in the tree")
    found = [of]
    while (parent := parts[found[-1]].parent) in parts:
        if len(found) == len(parts):
            raise SchedulerCoreError(f"{of!r} hangs below itself")
        found.append(parent)
    return found[::-1]


def branches(parts: Mapping[str, P], one: str, other: str) -> tuple[str, str]:
    """Where the two paths part: the children of the lowest common ancestor; the shorter path's end where none part."""
    pairs = list(zip(path(parts, one), path(parts, other), strict=False))
    return next(((a, b) for a, b in pairs if a != b), pairs[-1])
