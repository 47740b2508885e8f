"""What a headless leader tells while it leads, a line with its time for each thing that a person would want to know."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from dataclasses import dataclass, field

from opsconsole.cli.reloading import Watch
from opsconsole.clock import wall_now_ms
from opsconsole.presenting.sentences import sentence, subject_of
from opsconsole.presenting.text import clock, count
from opsconsole.runtime import Runtime

SAY_S = 0.5


def tell(text: str, wall_ms: int | None = None) -> None:
    """On the standard error. Nobody stops leading because nobody can read it."""
    with contextlib.suppress(OSError):
        print(f"{clock(wall_ms or wall_now_ms())} {text}", file=sys.stderr, flush=True)


@dataclass
class Teller:
    """That it leads; what happens, unless `quiet`; alarms as they come and go; what a changed inventory changes."""

    runtime: Runtime
    watch: Watch
    quiet: bool
    seen: int = 0  # up to here the journal has been told, or is history
    _leads: bool = False
    _last: dict[str, str] = field(default_factory=dict)  # what was told of each host, run and workload
    _alarms: dict[str, str] = field(default_factory=dict)

    async def run(self) -> None:
        while True:
            self.say()
            await asyncio.sleep(SAY_S)

    def say(self) -> None:
        """What is new."""
        runtime = self.runtime
        if not self._leads and runtime.leader is not None and runtime.leader.acted:
            self._leads = True
            hosts, runs = count(len(runtime.state.hosts), "host"), count(len(runtime.state.runs), "run")
            tell(f"leading {runtime.site.name}, epoch {runtime.leader.epoch}: {hosts}, {runs}")
        if self._leads and not self.quiet:
            self._say_events()
        self._say_alarms()

    def _say_events(self) -> None:
        """A fact that is reported again is no news."""
        for event in self.runtime.events:
            if event.seq > self.seen:
                self.seen = event.seq
                about, text = subject_of(event.value), sentence(event.value)
                if self._last.get(about) != text:
                    self._last[about] = text
                    tell(text, event.wall_ms)

    def _say_alarms(self) -> None:
        alarms = self.runtime.alarms
        for about, text in alarms.items():
            if self._alarms.get(about) != text:
                tell(f"! {about}: {text}")
                if about == "inventory" and self.watch.pending is not None:
                    for change in self.watch.pending.changes:
                        tell(f"  {change}")
                    tell("  opsconsole reload applies this")
        for about in self._alarms.keys() - alarms.keys():
            tell(f"{about}: over")
        self._alarms = dict(alarms)
