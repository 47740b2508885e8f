"""Rule 13 as a small machine: what to do next with a run that shall stop, or whose main process has ended.

none → checkpoint → term → kill, forwards only; each step is entered once, and left by its end or its deadline
checkpoint  ends when the main process ends, the command ends, or the workload touches OPSCONSOLE_CHECKPOINT_FILE
term        ends when the tree is empty
kill        has no end of its own: it is repeated for whatever appears, until the tree is empty
"""

from __future__ import annotations

from typing import NamedTuple

from .files import Record
from .spec import CHECKPOINT_GRACE_S, STOP_GRACE_S, number_or

STEPS = ("none", "checkpoint", "term", "kill")


class Graces(NamedTuple):
    """Seconds. The shorter of two requests counts."""

    checkpoint_s: float
    stop_s: float


class Facts(NamedTuple):
    """What the machine decides on, at one instant of the boot-time clock (seconds)."""

    now: float
    main_alive: bool
    tree_empty: bool
    checkpoint_done: bool


def graces_of(request: Record, spec: Record) -> Graces:
    """What the request says, else the spec, else rule 13."""
    return Graces(
        number_or(request.get("checkpoint_grace_s"), number_or(spec.get("checkpoint_grace_s"), CHECKPOINT_GRACE_S)),
        number_or(request.get("stop_grace_s"), number_or(spec.get("stop_grace_s"), STOP_GRACE_S)),
    )


class Stopping:
    """Where one run's stop stands."""

    def __init__(self, has_checkpoint: bool, graces: Graces) -> None:
        self.step = "none"
        self.entered_at = 0.0
        self.requested = False
        self.graces = graces
        self.has_checkpoint = has_checkpoint

    def request(self, graces: Graces) -> None:
        """Ask for the stop; asking again can only shorten it."""
        if self.requested:
            graces = Graces(min(graces.checkpoint_s, self.graces.checkpoint_s), min(graces.stop_s, self.graces.stop_s))
        self.graces = graces
        self.requested = True

    def advance(self, facts: Facts) -> str | None:
        """The step to enter now, or None to stay. Call again until None: steps may be passed through at once."""
        following = self._following(facts)
        if following is None:
            return None
        self.step, self.entered_at = following, facts.now
        return following

    def _following(self, facts: Facts) -> str | None:
        if facts.tree_empty or self.step == "kill":
            return None
        if self.step == "none":
            return self._first_step(facts)
        waited = facts.now - self.entered_at
        if self.step == "checkpoint":
            over = not facts.main_alive or facts.checkpoint_done or waited >= self.graces.checkpoint_s
            return "term" if over else None
        return "kill" if waited >= self.graces.stop_s else None

    def _first_step(self, facts: Facts) -> str | None:
        if not facts.main_alive:
            return "term"
        if not self.requested:
            return None
        return "checkpoint" if self.has_checkpoint and self.graces.checkpoint_s > 0 else "term"

    def deadline(self) -> float | None:
        """When `advance` has to be called next, whatever happens."""
        if self.step == "checkpoint":
            return self.entered_at + self.graces.checkpoint_s
        return self.entered_at + self.graces.stop_s if self.step == "term" else None
