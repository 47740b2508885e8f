"""Who else is about to do something: plans that are open in other consoles of the same store."""

from __future__ import annotations

from collections.abc import Sequence

from opsconsole.presenting.text import clean, clock, few
from opsconsole.presenting.view import ClusterView


def looking_words(view: ClusterView, targets: Sequence[str]) -> list[str]:
    """A line for each who has a plan open for one of these."""
    found = []
    for other in view.others:
        shared = [clean(name, 40) for name in other.targets if name in targets]
        if shared:
            plan = f"{clean(other.action, 20)} {few(shared)}"
            found.append(f"{clean(other.who, 40)} has a plan open since {clock(other.since_ms)}: {plan}")
    return found
