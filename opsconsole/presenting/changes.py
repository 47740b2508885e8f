"""What changed between the plan that a person saw and the plan as it is now."""

from __future__ import annotations

from enum import Enum

from opsconsole.presenting.plans import Plan
from opsconsole.presenting.text import clean

MOST = 4


def changes(seen: Plan, now: Plan) -> list[str]:
    """Sentences; empty where all that the plan rests on is as it was."""
    before, after = _by_name(seen), _by_name(now)
    found = [f"{name}: is new" for name in after if name not in before]
    found += [f"{name}: is gone" for name in before if name not in after]
    for name, facts in after.items():
        was = before.get(name)
        if was is not None and was != facts:
            found.append(f"{name}: was {_words(was)}, is {_words(facts)}")
    found += [text for text in now.refused if text not in seen.refused]
    shown = [clean(text, 120) for text in found[:MOST]]
    return shown + ([f"and {len(found) - MOST} more changes"] if len(found) > MOST else [])


def _by_name(plan: Plan) -> dict[str, tuple[object, ...]]:
    """Facts by the names that they begin with: a host, or a host and a run."""
    found: dict[str, tuple[object, ...]] = {}
    for fact in plan.facts:
        parts = fact if isinstance(fact, tuple) else (fact,)
        names = [str(part) for part in parts[:2] if type(part) is str] or [str(parts[0])]
        found[" ".join(names)] = tuple(parts[len(names) :])
    return found


def _words(facts: tuple[object, ...]) -> str:
    return " ".join(_word(fact) for fact in facts if _word(fact)) or "as before"


def _word(fact: object) -> str:
    if isinstance(fact, Enum):
        return str(fact.value).replace("_", " ")
    if isinstance(fact, bool):
        return "protected" if fact else ""
    return "" if fact is None else str(getattr(fact, "reason", fact))
