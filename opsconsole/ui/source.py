"""Where the console gets its picture from and sends what people ask. The composition root makes one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from opsconsole.presenting.view import ClusterView, Happening, OpenPlan
from scheduler_core.observations import Observation

Confirm = Callable[[Sequence[str]], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a request. `accepted` of its observations are journalled: requested, which is not yet done."""

    accepted: int
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OutputPiece:
    """More of what a run wrote. `ended`: nothing will follow. `problem`: why nothing comes just now."""

    data: bytes
    ended: bool = False
    problem: str = ""


class ConsoleSource(Protocol):
    """One cluster. All of it is called in the app's event loop."""

    @property
    def version(self) -> int:
        """Grows whenever there is something new to show."""

    @property
    def actor(self) -> str:
        """Who acts through this console, as the journal names people."""

    @property
    def write_refused(self) -> str:
        """Why no write window may be opened here; empty where one may."""

    def view(self) -> ClusterView:
        """The picture at this moment, ages as of now. Cheap; may raise, which is shown."""

    async def run(self) -> None:
        """Keeps the picture fresh (follows, or leads) until cancelled. What it raises is shown; it is run again."""

    @property
    def beside(self) -> Mapping[str, Callable[[], Awaitable[None]]]:
        """Work that goes on beside `run`, by name, each kept going as that is."""

    async def request(self, observations: Sequence[Observation]) -> Outcome:
        """Asks the leader. Returns once journalled or refused, within 15 s. Never raises for a refusal."""

    def tell_plan(self, plan: OpenPlan | None) -> None:
        """Which plan is open here, for other consoles; None: none any more."""

    async def lead(self, reason: str, confirm: Confirm) -> None:
        """Takes the lead; `confirm` gets sentences of what would happen at once.

        Returns when it acts; raises when refused.
        """

    def output(self, run: str, host: str) -> AsyncIterator[OutputPiece]:
        """What a run wrote on a host: the end of it, then all that follows, until it has ended. Raises what a person
        has to mend.
        """

    async def login(self, host: str) -> Sequence[str]:
        """The command that logs a person in there, by the way that the leader goes.

        Raises what a person has to mend.
        """

    async def history(self, since_ms: int) -> tuple[list[Happening], int]:
        """What people would want to know of the past, oldest first, and since when (wall time) that is all there was.

        Raises what a person has to mend.
        """

    def poll_now(self) -> None:
        """Asks for fresh readings, and tries lost hosts again."""

    async def close(self) -> None:
        """Lets go of everything within 1.5 s; hands leading over where `on_quit` says so."""
