"""Sending what a plan asks for, and following it until it is done. Requested is not done."""

from __future__ import annotations

from dataclasses import dataclass, field

from opsconsole.presenting.following import Followed, followed, progress
from opsconsole.presenting.plans import Plan
from opsconsole.presenting.rows import Cell
from opsconsole.presenting.text import clean, clock
from opsconsole.presenting.view import ClusterView
from opsconsole.ui.source import ConsoleSource
from scheduler_core.observations import By

KEPT = 50
SHOWN_MS = 30_000  # for so long a success stays on the status line


@dataclass
class Result:
    """One action from this console. `problem` is why it, or a part of it, was refused."""

    title: str
    wall_ms: int
    followed: Followed | None = None
    problem: str = ""
    text: str = ""
    ended: bool = False
    news_until: int | None = None  # wall ms; None: until somebody has read it

    def cells(self) -> list[Cell]:
        if self.problem:
            return [Cell("✖ ", "bad"), Cell(f"{self.title}: {self.problem}", "bad")]
        if self.followed is None:
            return [Cell("… ", "accent"), Cell(f"{self.title}: asking the leader")]
        mark, token = ("✓ ", "good") if self.ended else ("… ", "accent")
        return [Cell(mark, token), Cell(self.text)]


@dataclass
class Asking:
    """The actions of this console, newest last."""

    source: ConsoleSource
    results: list[Result] = field(default_factory=list)
    _now_ms: int = 0

    async def ask(self, view: ClusterView, plan: Plan, reason: str) -> Result:
        """Returns when journalled or refused; what was done is followed by `look`."""
        waiting = followed(view, plan.action, plan.targets)
        result = Result(waiting.title, view.wall_ms)
        self.results.append(result)
        del self.results[:-KEPT]
        observations = plan.observations(By(self.source.actor, reason))
        try:
            outcome = await self.source.request(observations)
        except Exception as error:
            result.problem = clean(f"{type(error).__name__}: {error}; look at the Timeline before you try again")
            return result
        if outcome.problems:
            part = f"{outcome.accepted} of {len(observations)} taken; " if outcome.accepted else ""
            result.problem = clean(part + "; ".join(outcome.problems))
        if outcome.accepted:
            result.followed = waiting
            result.text = f"{waiting.title}: requested at {clock(view.wall_ms)}"
        return result

    def look(self, view: ClusterView) -> None:
        """How far each has come."""
        for result in self.results:
            if result.followed is not None and not result.ended:
                now = progress(view, result.followed)
                result.text, result.ended = now.text, now.ended
                if now.ended and not result.problem:
                    result.news_until = view.wall_ms + SHOWN_MS
        self._now_ms = view.wall_ms

    def newest(self) -> Result | None:
        """The one to be told of on the status line: a success for a while, all else until it is read."""
        newest = self.results[-1] if self.results else None
        old = newest is not None and newest.news_until is not None and newest.news_until <= self._now_ms
        return None if old else newest

    def dismiss(self) -> bool:
        """Somebody has read it; its end is news again. False where there was nothing to read."""
        newest = self.newest()
        if newest is not None:
            newest.news_until = self._now_ms
        return newest is not None
