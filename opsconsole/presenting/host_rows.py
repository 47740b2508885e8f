"""The table of hosts: freshness first, then health, then what runs there. Rows are made when they are looked at."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from opsconsole.presenting.hosts import AWAY, failures, gpu_values, health, is_fresh, known, mark, warnings, watched
from opsconsole.presenting.rows import Cell, Column, LazyRows, TableView
from opsconsole.presenting.text import clean, span
from opsconsole.presenting.view import ClusterView, HostFacts
from scheduler_core.fleet import HostState
from scheduler_core.state import HostRecord

FRESH = {"✖": "lost", "?": "unknown", "○": "stale", "◐": "late", "●": "live"}  # by mark, the worst first
HEALTH = ("fail", "degraded", "unknown", "warn", "ok")
COLUMNS = (
    Column("HOST", 11, by="host", most=18),
    Column("FRESH", 9, most=20, by="fresh why", order=tuple(FRESH.values())),
    Column("HEALTH", 10, by="health", order=HEALTH),
    Column("GPUS", 5, right=True, by="gpus"),
    Column("BUSY", 7, right=True, by="busy_percent"),
    Column("TEMP", 7, right=True, from_width=100, by="temperature_c"),
    Column("POWER", 8, right=True, from_width=110, by="power_w"),
    Column("ECC", 6, right=True, from_width=120, by="ecc"),
    Column("XID", 4, right=True, from_width=90, by="xid"),
    Column("RUNS", 4, right=True, by="run_count"),
    Column("PROTECTED FOR", 13, right=True, from_width=80, by="protected_s"),
    Column("STATE", 12, grow=True, by="state reason"),
    Column("IN USE", 6, right=True, by="held", extra=True),
    Column("FREE", 4, right=True, by="free", extra=True),
    Column("LEAKED", 6, right=True, by="leaked", extra=True),
    Column("AGE", 6, right=True, by="reading_age_s", extra=True),
    Column("REACH", 11, by="reach", extra=True),
    Column("BY", 10, by="by", extra=True),
    Column("PROBLEMS", 20, by="problems", most=60, extra=True),
    Column("RUN IDS", 20, by="runs", most=60, extra=True),
)


class HostLook:
    """What a row is about, each part read once."""

    def __init__(self, view: ClusterView, record: HostRecord) -> None:
        self.view, self.record = view, record

    @cached_property
    def facts(self) -> HostFacts:
        return self.view.facts(self.record.host.name)

    @cached_property
    def fresh(self) -> bool:
        return is_fresh(self.view, self.record)

    @property
    def away(self) -> bool:
        """It cannot be asked whether its runs go on."""
        return self.record.reach in AWAY

    @cached_property
    def mark(self) -> Cell:
        return mark(self.view, self.record)

    @cached_property
    def health(self) -> Cell:
        return health(self.view, self.record)

    @cached_property
    def problems(self) -> list[str]:
        if self.facts.probe is None:
            return []
        view, record = self.view, self.record
        return [*failures(view, record), *watched(view, record), *warnings(record, self.facts)]

    @cached_property
    def busy_percent(self) -> float | None:
        busy = self._known("utilization_percent")
        return sum(busy) / len(busy) if busy else None

    @cached_property
    def temperature_c(self) -> float | None:
        return max(self._known("temperature_c"), default=None)

    @cached_property
    def power_w(self) -> float | None:
        power = self._known("power_w")
        return sum(power) if power else None

    @cached_property
    def ecc(self) -> float | None:
        errors = self._known("ecc_volatile_uncorrected")
        return sum(errors) if errors else None

    @cached_property
    def xid(self) -> str | None:
        """The newest in its kernel log."""
        told = (line.get("xid") for line in reversed(list(self.facts.kernel)))
        return next((str(xid.get("code")) for xid in told if isinstance(xid, dict)), None)

    @cached_property
    def protected_ms(self) -> int:
        """For how long the last run there is still protected; 0 where none is."""
        state = self.view.state
        ends = [state.now]
        for run_id in self.record.runs:
            run = state.runs[run_id]
            if run.protected(state.now):
                until = run.protected_until()
                ends.append(state.now + run.min_runtime_ms if until is None else until)
        return max(ends) - state.now

    def _known(self, key: str) -> list[float]:
        return known(gpu_values(self.facts, key))


VALUES: dict[str, Callable[[HostLook], Any]] = {  # the keys of `opsconsole hosts --json`
    "host": lambda h: h.record.host.name,
    "state": lambda h: h.record.state.value,
    "fresh": lambda h: FRESH[h.mark.text[0]],
    "reach": lambda h: h.record.reach.value,
    "why": lambda h: h.record.unreachable_why,
    "health": lambda h: h.health.text.split()[-1],
    "problems": lambda h: h.problems,
    "gpus": lambda h: h.record.host.gpus,
    "held": lambda h: h.record.held.bit_count(),
    "free": lambda h: h.record.free.bit_count(),
    "leaked": lambda h: h.record.leaked.bit_count(),
    "reading_age_s": lambda h: None if h.facts.age_s is None else round(h.facts.age_s, 1),
    "runs": lambda h: list(h.record.runs),
    "run_count": lambda h: len(h.record.runs),
    "protected_s": lambda h: h.protected_ms / 1000,
    "reason": lambda h: h.record.by.reason if h.record.by else "",
    "by": lambda h: h.record.by.actor if h.record.by else "",
    "busy_percent": lambda h: None if h.busy_percent is None else round(h.busy_percent, 1),
    "temperature_c": lambda h: h.temperature_c,
    "power_w": lambda h: h.power_w,
    "ecc": lambda h: h.ecc,
    "xid": lambda h: h.xid,
}


def hosts_table(view: ClusterView) -> TableView:
    hosts = view.state.hosts
    names = sorted(hosts)
    rows = LazyRows(names, lambda at: HostLook(view, hosts[names[at]]), _cells, VALUES)
    return TableView("Hosts", COLUMNS, rows, "no hosts are known: nothing has been read yet")


def _cells(h: HostLook) -> tuple[Cell, ...]:
    record, busy, temperature, power = h.record, h.busy_percent, h.temperature_c, h.power_w
    return (
        Cell(clean(record.host.name, 60)),
        h.mark,
        h.health,
        Cell(f"{record.held.bit_count()}/{record.host.gpus}"),
        _reading(h, None if busy is None else f"{busy:.0f}%"),
        _reading(h, None if temperature is None else f"{temperature:.0f}C"),
        _reading(h, None if power is None else f"{power / 1000:.1f}k"),
        _errors(h),
        Cell("?", "unknown") if h.facts.probe is None else Cell(h.xid or "–", "bad" if h.xid else "dim"),
        Cell(f"{len(record.runs)}?", "unknown") if h.away and record.runs else Cell(str(len(record.runs))),
        Cell(span(h.protected_ms), "accent") if h.protected_ms else Cell("–", "dim"),
        _state(h.view, record),
        Cell(str(record.held.bit_count())),
        Cell(str(record.free.bit_count())),
        Cell(str(record.leaked.bit_count()), "bad" if record.leaked else "dim"),
        Cell("?", "unknown") if h.facts.age_s is None else Cell(span(int(h.facts.age_s * 1000))),
        Cell(record.reach.value.replace("_", " ")),
        Cell(clean(record.by.actor, 30) if record.by else ""),
        Cell(clean("; ".join(h.problems)), "bad"),
        Cell(clean(" ".join(record.runs))),
    )


def _reading(h: HostLook, text: str | None) -> Cell:
    """A value that is not current says so and loses its colour; one that is not known is not zero."""
    if text is None:
        return Cell("?", "unknown")
    return Cell(text) if h.fresh else Cell(f"was {text}", "dim")


def _errors(h: HostLook) -> Cell:
    """Errors do not pass because nobody reads them any more."""
    cell = _reading(h, None if h.ecc is None else f"{h.ecc:.0f}")
    return Cell(cell.text, "bad") if h.ecc else cell


def _state(view: ClusterView, record: HostRecord) -> Cell:
    """With the reason, and how long it still lasts where it ends by itself."""
    reason = f": {clean(record.by.why, 60)}" if record.by and record.by.why else ""
    if (until := view.state.cordons_end.get(record.host.name)) is not None:
        reason = f" for {span(until - view.state.now)} more{reason}"
    if record.removed:
        return Cell("leaving the inventory", "warn")
    if record.state is HostState.SERVING:
        return Cell("serving", "")
    token = "bad" if record.state in (HostState.SUSPECT, HostState.VERIFY_FAILED) else "warn"
    return Cell(f"{record.state.value.replace('_', ' ')}{reason}", token)
