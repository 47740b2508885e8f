"""The GPUs of one host: what each says of itself and which run holds it. What cannot be read is said, never zero."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from opsconsole.health.finding import Finding
from opsconsole.health.verdict import OF_SEVERITY, Status
from opsconsole.presenting.hosts import is_fresh, value
from opsconsole.presenting.queue import run_label
from opsconsole.presenting.rows import Cell, Column, Row, TableView
from opsconsole.presenting.text import bar, clean
from opsconsole.presenting.trends import Trends, spark
from opsconsole.presenting.verdicts import MARKS, verdict_of
from opsconsole.presenting.view import ClusterView
from scheduler_core.ids import HostName, RunId
from scheduler_core.state import ClusterState, HostRecord

TREND = 20  # cells
COLUMNS = (
    Column("GPU", 4, right=True, by="gpu"),
    Column("BUSY", 14, by="busy_percent"),
    Column("TREND", TREND, from_width=110),
    Column("MEMORY", 12, right=True, by="memory_used_bytes"),
    Column("TEMP", 9, right=True, by="temperature_c"),
    Column("POWER", 9, right=True, by="power_w"),
    Column("CLOCK", 11, right=True, from_width=110, by="sm_clock_mhz"),
    Column("ECC", 6, right=True, by="ecc_volatile_uncorrected"),
    Column("RUN", 16, grow=True, by="held_by"),
    Column("NAME", 12, from_width=150, most=28, by="name"),
)
GIB = 1 << 30
SHOWN: Mapping[str, Callable[[float], str]] = {
    "utilization_percent": lambda v: f"{v:3.0f}% {bar(v / 100)}",
    "temperature_c": lambda v: f"{v:.0f}C",
    "power_w": lambda v: f"{v:.0f}W",
    "sm_clock_mhz": lambda v: f"{v:.0f}MHz",
    "ecc_volatile_uncorrected": lambda v: f"{v:.0f}",
}


def gpus_table(view: ClusterView, name: str, trends: Trends | None = None) -> TableView:
    """A row for each GPU that the inventory expects, and for each that the host has beside them."""
    record, facts = view.state.hosts.get(HostName(name)), view.facts(name)
    if record is None:
        return TableView("GPUs", COLUMNS, (), "this host is not known")
    said = {gpu.get("slot"): gpu for gpu in (facts.probe or {}).get("gpus", [])}
    fresh = is_fresh(view, record)
    slots = sorted({*range(record.host.gpus), *(slot for slot in said if isinstance(slot, int))})
    worst = {one.slot: one for one in reversed(verdict_of(view, record).findings)}
    rows = tuple(
        _row(view.state, record, slot, said.get(slot), facts.probe is not None, fresh, trends or Trends(), worst)
        for slot in slots
    )
    was = "" if fresh else ", as they were when last read" if facts.probe is not None else ": no readings"
    return TableView(f"GPUs of {clean(name, 60)}{was}", COLUMNS, rows, "no GPUs: the inventory expects none")


def _row(
    state: ClusterState,
    record: HostRecord,
    slot: int,
    gpu: dict[str, Any] | None,
    probed: bool,
    fresh: bool,
    trends: Trends,
    worst: Mapping[int | None, Finding],
) -> Row:
    readings = (gpu or {}).get("readings", {})
    holder = _holder(state, record, slot, gpu, probed)
    status = OF_SEVERITY[worst[slot].weight] if slot in worst else Status.OK
    cells = (
        _number(slot, status),
        _cell(readings, "utilization_percent", fresh),
        Cell(spark(trends.of(slot), TREND), "accent" if fresh else "dim"),
        _memory(readings, fresh),
        _cell(readings, "temperature_c", fresh),
        _cell(readings, "power_w", fresh),
        _cell(readings, "sm_clock_mhz", fresh),
        _cell(readings, "ecc_volatile_uncorrected", fresh),
        holder,
        _named(gpu),
    )
    keys = (*SHOWN, "memory_used_bytes", "memory_total_bytes")
    data = {"gpu": slot, "busy_percent": value(readings.get("utilization_percent")), "held_by": holder.text}
    data["health"] = status.value if slot in worst else None
    return Row(f"gpu:{slot}", cells, data | {key: value(readings.get(key)) for key in keys})


def _number(slot: int, status: Status) -> Cell:
    """With the mark of its verdict where something is off; the evidence beside it says what."""
    mark = MARKS[status]
    return Cell(str(slot)) if status is Status.OK else Cell(f"{mark.text[0]}{slot:>3}", mark.token)


def _cell(readings: dict[str, Any], key: str, fresh: bool) -> Cell:
    """One reading in its four states, and whether it is of now."""
    reading = readings.get(key) or {}
    found = value(reading)
    if isinstance(found, int | float):
        return _was(SHOWN[key](found), fresh)
    word = next((w for w in ("failed", "denied", "absent") if w in reading), "?")
    return Cell(word, "bad" if word == "failed" else "dim" if word == "absent" else "unknown")


def _memory(readings: dict[str, Any], fresh: bool) -> Cell:
    used, whole = (value(readings.get(f"memory_{key}_bytes")) for key in ("used", "total"))
    if not isinstance(used, int | float):
        return _cell(readings, "memory_used_bytes", fresh)
    of = f"/{whole / GIB:.0f}" if isinstance(whole, int | float) else ""
    return _was(f"{used / GIB:.0f}{of}G", fresh)


def _was(text: str, fresh: bool) -> Cell:
    return Cell(text) if fresh else Cell(f"was {text.strip()}", "dim")


def _named(gpu: dict[str, Any] | None) -> Cell:
    name = value((gpu or {}).get("name"))
    return Cell(clean(str(name), 60), "dim") if name else Cell("?", "unknown")


def _holder(state: ClusterState, record: HostRecord, slot: int, gpu: dict[str, Any] | None, probed: bool) -> Cell:
    bit = 1 << slot
    if gpu is None and probed:
        return Cell("missing: the host does not see it", "bad")
    if record.leaked & bit:
        return Cell("leaked: in use after SIGKILL", "bad")
    if (run := run_at(state, record, slot)) is not None:
        w = state.workloads[state.runs[run].workload].workload
        return Cell(run_label(w, run))
    if record.foreign & bit:
        return Cell("a foreign process", "warn")
    if record.unfit & bit:
        return Cell("unfit", "bad")
    return Cell("claimed", "accent") if record.claimed & bit else Cell("–", "dim")


def run_at(state: ClusterState, record: HostRecord, slot: int) -> RunId | None:
    """The run that holds a GPU, by what is known."""
    for run_id in record.runs:
        member = state.runs[run_id].members.get(record.host.name)
        if member is not None and member.slots >> slot & 1 and not member.phase.gone:
            return run_id
    return None
