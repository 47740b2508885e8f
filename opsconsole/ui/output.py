"""The output of one run, followed while its page is open."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from opsconsole.presenting.outputs import OutputText
from opsconsole.presenting.rows import TableView
from opsconsole.presenting.text import clean
from opsconsole.ui.source import ConsoleSource

AGAIN_S = 5.0
NOTHING = ("", "")


class Output:
    """`want` says whose; `changed` is called when there is more. A failure stands where the output would be."""

    def __init__(self, source: ConsoleSource, changed: Callable[[], None]) -> None:
        self._source, self._changed = source, changed
        self._of = NOTHING
        self._task: asyncio.Task[None] | None = None
        self._begin()

    def _begin(self) -> None:
        self.text = OutputText()
        self.problem, self.ended, self.read_s = "", False, None
        self.heard = False

    def want(self, run: str = "", host: str = "") -> None:
        """Of this run from this host; without one, none. What was read of another is forgotten."""
        if (run, host) == self._of:
            return
        self._of = (run, host)
        self.close()
        self._begin()
        if run:
            self._task = asyncio.create_task(self._follow(run, host), name="output")

    @property
    def idle(self) -> bool:
        """Nothing is being read."""
        return self._task is None

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _follow(self, run: str, host: str) -> None:
        """Until it has ended or nobody looks any more. What fails is said and tried again from the start."""
        while not self.ended:
            try:
                async for piece in self._source.output(run, host):
                    self.problem, self.heard = piece.problem, True
                    self.ended = piece.ended
                    if piece.data:
                        self.text.feed(piece.data)
                    self._changed()
                return
            except Exception as error:
                self._begin()
                self.problem = clean(str(error)) or type(error).__name__
                self._changed()
                await asyncio.sleep(AGAIN_S)

    def table(self) -> TableView:
        run, host = self._of
        if not run:
            return self.text.table("Output", "it has not run yet: there is no output")
        state = "ended" if self.ended else f"✖ {self.problem}" if self.problem else "live" if self.heard else "asking …"
        empty = self.problem or (
            "it wrote nothing" if self.ended else "nothing yet" if self.heard else f"asking {host} …"
        )
        return self.text.table(f"Output of {run} on {host} ({state})", empty)
