"""The GPUs of one host: what each says of itself and which run holds it. What cannot be read is said, never zero."""

from __future__ import annotations

from typing import Any

from opsconsole.presenting.hosts import is_fresh, value
from opsconsole.presenting.rows import Cell, Column, Row, TableView
from opsconsole.presenting.text import bar, clean
from opsconsole.presenting.view import ClusterView
from scheduler_core.ids import HostName
from scheduler_core.state import ClusterState, HostRecord

COLUMNS = (
    Column("GPU", 4, right=True),
    Column("BUSY", 14),
    Column("MEMORY", 9, right=True),
    Column("TEMP", 9, right=True),
    Column("POWER", 9, right=True),
    Column("ECC", 5, right=True),
    Column("HELD BY", 16, grow=True),
)
GIB = 1 << 30


def gpus_table(view: ClusterView, name: HostName) -> TableView:
    """A row for each GPU that the inventory expects, and for each that the host has beside them."""
    record, facts = view.state.hosts[name], view.facts(name)
    said = {gpu.get("slot"): gpu for gpu in (facts.probe or {}).get("gpus", [])}
    fresh = is_fresh(view, record)
    slots = sorted({*range(record.host.gpus), *(slot for slot in said if isinstance(slot, int))})
    rows = tuple(_row(view.state, record, slot, said.get(slot), facts.probe is not None, fresh) for slot in slots)
    return TableView(f"GPUs of {clean(name, 60)}", COLUMNS, rows, "no GPUs: the inventory expects none")


def _row(
    state: ClusterState, record: HostRecord, slot: int, gpu: dict[str, Any] | None, probed: bool, fresh: bool
) -> Row:
    readings = (gpu or {}).get("readings", {})
    busy = value(readings.get("utilization_percent"))
    cells = (
        Cell(str(slot)),
        _cell(readings, "utilization_percent", fresh, lambda v: f"{v:3.0f}% {bar(v / 100)}"),
        _cell(readings, "memory_used_bytes", fresh, lambda v: f"{v / GIB:.0f}G"),
        _cell(readings, "temperature_c", fresh, lambda v: f"{v:.0f}C"),
        _cell(readings, "power_w", fresh, lambda v: f"{v:.0f}W"),
        _cell(readings, "ecc_volatile_uncorrected", fresh, lambda v: f"{v:.0f}"),
        _holder(state, record, slot, gpu, probed),
    )
    return Row(str(slot), cells, {"gpu": slot, "busy_percent": busy})


def _cell(readings: dict[str, Any], key: str, fresh: bool, show: Any) -> Cell:
    """One reading in its four states, and whether it is of now."""
    reading = readings.get(key) or {}
    found = value(reading)
    if isinstance(found, int | float):
        return Cell(show(found)) if fresh else Cell(f"was {show(found)}", "dim")
    word = next((w for w in ("failed", "denied", "absent") if w in reading), "?")
    return Cell(word, "bad" if word == "failed" else "dim" if word == "absent" else "unknown")


def _holder(state: ClusterState, record: HostRecord, slot: int, gpu: dict[str, Any] | None, probed: bool) -> Cell:
    bit = 1 << slot
    if gpu is None and probed:
        return Cell("missing: the host does not see it", "bad")
    if record.leaked & bit:
        return Cell("leaked: held after SIGKILL", "bad")
    for run_id in record.runs:
        member = state.runs[run_id].members.get(record.host.name)
        if member is not None and member.slots & bit and not member.phase.gone:
            return Cell(clean(run_id, 60))
    if record.foreign & bit:
        return Cell("a foreign process", "warn")
    if record.unfit & bit:
        return Cell("unfit", "bad")
    return Cell("claimed", "accent") if record.claimed & bit else Cell("–", "dim")
