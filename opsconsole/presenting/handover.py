"""The handover of a shift: what needs a person, what is open and whose it is, what happened. Markdown, or data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from opsconsole.presenting import handover_open as now
from opsconsole.presenting import handover_past as past
from opsconsole.presenting.markdown import escaped
from opsconsole.presenting.shift import Entry, Shift, zoned
from opsconsole.presenting.text import count, span
from opsconsole.presenting.view import ClusterView, Happening
from scheduler_core.decisions import Placed
from scheduler_core.observations import WorkloadSubmitted

MOST = 30  # entries of a section that are written out for people
TOLD = frozenset(kind.__name__ for kind in past.KINDS)  # of the journal; the rest need not be decoded


class Section(NamedTuple):
    """`key` is its name for scripts."""

    key: str
    title: str
    entries: Callable[[Shift], Iterator[Entry]]


SECTIONS = (
    Section("needs", "Needs a person", now.needs_entries),
    Section("drains_open", "Drains that go on", now.drains_open),
    Section("hosts_out", "Hosts out of service or away", now.hosts_out),
    Section("budgets_off", "Budgets far off their share", now.budgets_off),
    Section("drains_ended", "Drains that ended", past.drains_ended),
    Section("hosts_lost", "Hosts that went away", past.hosts_lost),
    Section("runs_failed", "Runs that failed", past.runs_failed),
    Section("preemptions", "Preemptions", past.preemptions),
    Section("overrides", "Overrides", past.overrides),
    Section("refused", "Refused", past.refused),
    Section("breaker", "Breaker", past.breaker),
    Section("leaks", "Leaked GPUs", past.leaks),
    Section("clock", "Clock steps", past.clock),
)


@dataclass(frozen=True, slots=True)
class Handover:
    """`sections` by key. `counts`: how much was submitted and started."""

    cluster: str
    leader: str
    since_ms: int
    until_ms: int
    counts: dict[str, int]
    sections: dict[str, list[Entry]]

    def markdown(self) -> str:
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield f"# Handover of {escaped(self.cluster)}"
        yield ""
        length = span(self.until_ms - self.since_ms)
        yield f"{zoned(self.since_ms)} to {zoned(self.until_ms)} ({length}). Leader: {escaped(self.leader)}."
        yield f"{self._summary()}."
        for section in SECTIONS:
            if entries := self.sections[section.key]:
                yield from ("", f"## {section.title} ({len(entries)})", "")
                yield from map(_line, entries[:MOST])
                if len(entries) > MOST:
                    yield f"- and {len(entries) - MOST} more: `opsconsole handover --json` has them all"
        if nothing := [section.title for section in SECTIONS if not self.sections[section.key]]:
            yield from ("", f"Nothing of: {', '.join(title[0].lower() + title[1:] for title in nothing)}.")

    def _summary(self) -> str:
        lost = sum(entry.data["lost_gpu_h"] for entry in self.sections["preemptions"])
        preempted = count(len(self.sections["preemptions"]), "run")
        return (
            f"{count(self.counts['submitted'], 'workload')} submitted, {count(self.counts['started'], 'run')} started, "
            f"{len(self.sections['runs_failed'])} failed; {preempted} preempted, {lost:.1f} GPU-h lost by that"
        )

    def data(self) -> dict[str, Any]:
        """The keys of `opsconsole handover --json`."""
        head = {"cluster": self.cluster, "leader": self.leader, "since_ms": self.since_ms, "until_ms": self.until_ms}
        found = {key: [_data(entry) for entry in entries] for key, entries in self.sections.items()}
        return head | self.counts | found


def handover(view: ClusterView, happenings: Iterable[Happening], since_ms: int) -> Handover:
    """From `since_ms` (wall time) to now. `happenings`, oldest first, may hold more than that."""
    mine = [h for h in happenings if h.wall_ms >= since_ms and isinstance(h.event, past.KINDS)]
    shift = Shift(view, since_ms, mine)
    counts = {
        "submitted": sum(1 for _ in shift.of(WorkloadSubmitted)),
        "started": sum(1 for _ in shift.of(Placed)),
    }
    sections = {section.key: list(section.entries(shift)) for section in SECTIONS}
    return Handover(view.cluster, view.leader or "nobody", since_ms, view.wall_ms, counts, sections)


def _line(entry: Entry) -> str:
    when = "" if entry.wall_ms is None else f"{zoned(entry.wall_ms)}, "
    return f"- {when}**{escaped(entry.about) or '?'}**: {escaped(entry.said, 1000)}"


def _data(entry: Entry) -> dict[str, Any]:
    return {"about": entry.about, "wall_ms": entry.wall_ms, "said": entry.said, **entry.data}
