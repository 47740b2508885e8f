"""Writes docs/tour.md: a newcomer's first minutes on the demo, as text frames from tmux. `make tour` runs it.

Each key that is pressed here stands on the screen before it: in the footer, in a dialog, or in what the console says.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.tmux import Tmux, in_tmux

PAGE = Path(__file__).parent.parent / "docs" / "tour.md"
SIZES = ((80, 24), (120, 40), (200, 60))
PATIENCE_S = 180.0  # a drain waits for the min runtimes of its host
ROW = re.compile(r"^>?\s*(gpu\d\d)\s.*?(\d+)/8\s.*?\s(\d+)s serving", re.MULTILINE)
HEAD = """\
# A tour

On the demo (`make demo`) a newcomer finds out why a workload waits, drains a host, follows it to drained and brings
it back, by nothing but what is on the screen. `make tour` does this again in terminals of three sizes and writes
this page; runs of empty lines are left out (⋮).
"""


@dataclass
class Frame:
    """What was done, and what is seen then."""

    did: str
    seen: str


@dataclass
class Tour:
    tmux: Tmux
    frames: list[Frame] = field(default_factory=list)
    _did: list[str] = field(default_factory=list)

    def press(self, *keys: str, shown_as: str = "") -> None:
        """One at a time, as a person does: each is seen to have done something."""
        for key in keys:
            before = self.tmux.seen
            self.tmux.keys(key)
            self.wait(lambda before=before: self.tmux.seen != before, f"{key} to do something")  # type: ignore[misc]
            time.sleep(0.2)
        self._did.append(f"press `{shown_as or ' '.join(keys)}`")

    def type(self, text: str) -> None:
        self.tmux.type(text)
        self.wait(lambda: text in self.tmux.seen, f"{text!r} to stand there")
        self._did.append(f"type `{text}`")

    def wait(self, true: Callable[[], object], what: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while not true():
            assert time.monotonic() < end, f"waited for {what}; the screen:\n{self.tmux.seen}"
            time.sleep(0.1)

    def see(self, why: str, *words: str) -> str:
        """A frame, once all the words stand on the screen. `why`: what the newcomer wants, and now knows."""
        self.wait(lambda: all(word in self.tmux.seen for word in words), " and ".join(words))
        seen = self.tmux.seen
        did = f"{', '.join(self._did)}: " if self._did else ""
        self.frames.append(Frame(f"{did}{why}"[:1].upper() + f"{did}{why}"[1:], seen))
        self._did.clear()
        return seen

    def carry_out(self, button: str) -> None:
        """Tab to the button, Enter; once more where the world was faster and the plan comes back with what is new."""
        did = [*self._did]
        while button in self.tmux.seen:
            for _ in range(8):
                if f">{button}<" in self.tmux.seen:
                    break
                self.press("Tab")
            self.press("Enter")
            time.sleep(1.0)  # a person looks
        self._did = [*did, "press `Enter`"]

    def select(self, name: str) -> None:
        """By the arrow keys, until the row that begins with it has the cursor."""
        did = [*self._did]
        for key in ["Up"] * 20 + ["Down"] * 20:
            if re.search(rf"^> *{name}\b", self.tmux.seen, re.MULTILINE):
                break
            self.press(key)
        self._did = [*did, f"go to {name} with the arrow keys"]


def walk(tour: Tour) -> None:
    """The whole story. Fails where the screen does not lead on."""
    tour.see(
        "the console opens on what matters. The bottom line tells the keys.", "leader: this console |", "8●", "? help"
    )
    why_it_waits(tour)
    host = drain(tour)
    follow(tour, host)
    bring_back(tour, host)
    tour.press("C-q", shown_as="Ctrl-Q")


def why_it_waits(tour: Tour) -> None:
    """Footer: 1-8 screens, x explain."""
    tour.press("3")
    tour.wait(lambda: "olmo-32b" in tour.tmux.seen, "a workload to wait")
    tour.select("1")
    tour.see("who waits, in order, each with the nearest reason.", "WHY", "> ")
    tour.press("x")
    tour.see("all of it: who holds the GPUs, how the budgets stand, from when on that may change.", "Why it waits:")
    tour.press("Escape", shown_as="Esc")


def drain(tour: Tour) -> str:
    """Footer: D drain. The plan says that it is read-only, and what to type."""
    tour.press("2")
    tour.wait(lambda: protected_hosts(tour.tmux.seen), "a host with work that is protected for a while")
    host = protected_hosts(tour.tmux.seen)[0]
    tour.select(host)
    tour.see("the hosts, and for how long the work there is protected.", "PROTECTED FOR", host)
    tour.press("D")
    tour.see(
        "what a drain would do, and to whom. Nothing is sent; the plan says how to go on.", "Drain plan", "read-only"
    )
    tour.press("Escape", ":", shown_as="Esc :")
    tour.type("write 15m a fan is loud")
    tour.press("Enter")
    tour.see("a window for changes, with its countdown in the top line.", "WRITE 1", "write window open")
    tour.select(host)
    tour.press("D")
    tour.type("a fan is loud")
    tour.press("Tab", "Tab")
    tour.see("the plan with its reason, and the button that carries it out.", "Drain plan", ">Drain 1 host<")
    tour.carry_out("Drain 1 host")
    return host


def protected_hosts(seen: str) -> list[str]:
    """Full hosts whose work is protected for a while yet, those first of which it is soon over."""
    rows = [(int(row[3]), row[1]) for row in ROW.finditer(seen) if row[2] == "8"]
    return [host for seconds, host in sorted(rows) if 20 <= seconds <= 60]


def follow(tour: Tour, host: str) -> None:
    """Footer: 1-8 screens; the line says that it was asked for, which is not yet done."""
    tour.press("5")
    tour.see(
        "asked for is not done. The drain is its own thing, with an owner, a countdown and steps.", host, "contract"
    )
    tour.see("the host itself says that nothing runs there.", host, "drained")


def bring_back(tour: Tour, host: str) -> None:
    """Footer: U undrain."""
    tour.press("U")
    tour.type("the fan is quiet")
    tour.press("Tab", "Tab")
    tour.see("the way back is a plan too.", ">Undrain 1 host<", host)
    tour.carry_out("Undrain 1 host")
    tour.press("2")
    tour.wait(lambda: re.search(rf"{host}\s.*serving", tour.tmux.seen), f"{host} to serve")
    tour.see("the host serves again, and waiting work may start there.", host, "serving")


def squeezed(seen: str) -> Iterator[str]:
    """Without what is empty: trailing blanks, and all but the first of many empty lines."""
    empty = 0
    for line in [*map(str.rstrip, seen.rstrip("\n").split("\n")), "end"]:
        if not line.strip("│ "):
            empty += 1
            continue
        yield from [""] * empty if empty < 3 else ["⋮"]
        empty = 0
        if line != "end":
            yield line


def taken(size: tuple[int, int]) -> list[Frame]:
    """The tour on a demo of its own, in a terminal of that size."""
    environment = {"TZ": "UTC", "TERM": "screen-256color", "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    argv = [sys.executable, "-m", "opsconsole", "demo"]
    with (
        TemporaryDirectory(prefix="opsconsole-tour-") as folder,
        in_tmux(argv, Path(folder), environment, size) as tmux,
    ):
        tour = Tour(tmux)
        walk(tour)
        return tour.frames


def main() -> None:
    parts = [HEAD]
    for size in SIZES:
        parts.append(f"## {size[0]}×{size[1]}\n")
        for frame in taken(size):
            parts.append(f"{frame.did}\n\n```text\n" + "\n".join(squeezed(frame.seen)) + "\n```\n")
    PAGE.write_text("\n".join(parts))
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
