"""Sending what a plan asks for, and following it until it is done. Requested is not done."""

from __future__ import annotations

from dataclasses import dataclass, field

from rich.cells import cell_len

from opsconsole.presenting.following import Followed, followed, progress
from opsconsole.presenting.plans import Plan
from opsconsole.presenting.rows import Cell
from opsconsole.presenting.text import clean, clock
from opsconsole.presenting.view import ClusterView
from opsconsole.ui.source import ConsoleSource
from scheduler_core.observations import By

KEPT = 50
SHOWN_MS = 30_000  # for so long a success stays on the status line once somebody is there to see it


@dataclass
class Result:
    """One action from here. `problem`: why it, or a part of it, was refused. `undo`: the command that takes it back."""

    title: str
    wall_ms: int
    undo: str = ""
    followed: Followed | None = None
    problem: str = ""
    text: str = ""
    done: str = ""  # 0/1: of its targets, those for which it is over
    ended: bool = False
    well: bool = True
    news_until: int | None = None  # wall ms; None: until somebody has read it

    @property
    def pending(self) -> bool:
        """Under way: there is nothing to read or to do about it yet."""
        return self.followed is not None and not self.ended and self.well and not self.problem

    def brief(self) -> list[Cell]:
        """Of one under way, where other things want the room."""
        return [Cell("… ", "accent"), Cell(f"{self.title} {self.done}")]

    @property
    def undoable(self) -> bool:
        """What was refused in part is nothing that one command takes back."""
        return bool(self.undo) and self.followed is not None and self.well and not self.problem

    def cells(self) -> list[Cell]:
        if self.problem:
            return [Cell("✖ ", "bad"), Cell(f"{self.title}: {self.problem}", "bad")]
        if self.followed is None:
            return [Cell("… ", "accent"), Cell(f"{self.title}: asking the leader")]
        if not self.well:
            return [Cell("✖ ", "bad"), Cell(self.text, "bad")]
        mark, token = ("✓ ", "good") if self.ended else ("… ", "accent")
        undo = [Cell(f"  :undo is {clean(self.undo, 60)}", "dim")] if self.undoable else []
        return [Cell(mark, token), Cell(self.text), *undo]


@dataclass
class Asking:
    """The actions of this console, newest last."""

    source: ConsoleSource
    results: list[Result] = field(default_factory=list)
    _now_ms: int = 0

    async def ask(self, view: ClusterView, plan: Plan, reason: str, ticket: str = "") -> Result:
        """Returns when journalled or refused; what was done is followed by `look`."""
        waiting = followed(view, plan.action, plan.targets)
        result = Result(waiting.title, view.wall_ms, plan.undo)
        self.results.append(result)
        del self.results[:-KEPT]
        observations = plan.observations(By(self.source.actor, reason, ticket))
        try:
            outcome = await self.source.request(observations)
        except Exception as error:
            result.problem = clean(f"{type(error).__name__}: {error}; look at the Timeline before you try again")
            return result
        if outcome.problems:
            part = f"{outcome.accepted} of {len(observations)} taken; " if outcome.accepted else ""
            result.problem = clean(part + "; ".join(outcome.problems))
        if outcome.accepted:
            self._taken_back(plan)
            result.followed = waiting
            result.text = f"{waiting.title}: requested at {clock(view.wall_ms)}"
        return result

    def _taken_back(self, plan: Plan) -> None:
        """What this plan undoes cannot be undone again."""
        for result in self.results:
            if result.undo and plan.command.startswith(f"opsconsole {result.undo} --reason"):
                result.undo = ""

    def look(self, view: ClusterView) -> None:
        """How far each has come."""
        for result in self.results:
            if result.followed is not None and not result.ended:
                now = progress(view, result.followed)
                result.text, result.ended, result.well = now.text, now.ended, now.well
                result.done = f"{len(now.ends)}/{now.of}"
                if now.ended:
                    result.news_until = None  # its end is news, whatever was read before
        self._now_ms = view.wall_ms

    def seen(self) -> None:
        """Somebody is at the keys. What has ended well has been told a while from now; all else stays until read."""
        for result in self.results:
            if result.ended and result.well and not result.problem and result.news_until is None:
                result.news_until = self._now_ms + SHOWN_MS

    def news(self) -> list[Result]:
        """What is to be told, the newest last."""
        return [r for r in self.results if r.news_until is None or r.news_until > self._now_ms]

    def cells(self, room: int | None = None) -> list[Cell]:
        """The newest, and how many there are besides. One that is under way is brief where others want the room."""
        if not (news := self.news()):
            return []
        more = [Cell(f"  and {len(news) - 1} more: :results", "dim")] if len(news) > 1 else []
        whole = [*news[-1].cells(), *more]
        long = room is not None and news[-1].pending and sum(cell_len(cell.text) for cell in whole) > room
        return [*news[-1].brief(), *more] if long else whole

    def dismiss(self) -> bool:
        """Somebody has read the newest. False where there was nothing to read."""
        news = self.news()
        if news:
            news[-1].news_until = self._now_ms
        return bool(news)

    def undo(self) -> str:
        """The command that takes the newest action back; empty where none can be."""
        return next((result.undo for result in reversed(self.results) if result.undoable), "")
