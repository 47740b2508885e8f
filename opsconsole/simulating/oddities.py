"""What is wrong with rows of a log, by kind: counted, shown with the first examples, never dropped in silence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

MOST_EXAMPLES = 3


class Treatment(Enum):
    """What becomes of the row."""

    LEFT_OUT = "left out"
    KEPT = "kept"


class Kind(NamedTuple):
    """`is_fault`: something is wrong with the row, so that `--strict` refuses the log."""

    words: str
    treatment: Treatment = Treatment.LEFT_OUT
    is_fault: bool = True


OUT, KEPT = Treatment.LEFT_OUT, Treatment.KEPT
KINDS: dict[str, Kind] = {
    "before_header": Kind("a line before the header"),
    "half_line": Kind("fewer fields than the header has"),
    "extra_fields": Kind("more fields than the header has"),
    "cut_off": Kind("the file ends in the middle of its compressed data", KEPT),
    "bad_bytes": Kind("bytes that are no UTF-8, shown escaped", KEPT),
    "bad_number": Kind("no number where one must stand"),
    "bad_time": Kind("no instant or span where one must stand"),
    "missing_field": Kind("a field that is needed is empty"),
    "missing_time": Kind("submission or run time is missing"),
    "negative_time": Kind("a negative time, or an end before its start"),
    "negative_wait": Kind("started before it was submitted; the start is not used", KEPT),
    "no_gpus": Kind("asks for no GPUs"),
    "part_of_gpu": Kind("asks for a part of a GPU; counts as a whole one", KEPT),
    "duplicate_id": Kind("the id of an earlier row"),
    "out_of_order": Kind("submitted before the row above it; sorted in", KEPT),
    "other_zone": Kind("another time zone than the first row's", KEPT),
    "too_large": Kind("larger than the cluster"),
    "no_shape": Kind("fits no host shape of the cluster"),
    "no_budget": Kind("no leaf of the budget tree is its own"),
    "outside_bounds": Kind("its min runtime is outside min_runtime_bounds"),
    "still_running": Kind("was still running: counts with the time so far", KEPT, is_fault=False),
    "took_no_time": Kind("ran for 0 s", KEPT, is_fault=False),
    "never_ran": Kind("never ran", is_fault=False),
    "job_step": Kind("a step of a job, which counts with its job", is_fault=False),
    "earlier_attempt": Kind("an earlier attempt of a job that was requeued", is_fault=False),
    "outside_period": Kind("submitted outside --from and --to", is_fault=False),
}


class Odd(Exception):
    """A row that cannot be used. `kind` is a key of KINDS."""

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(detail)
        self.kind, self.detail = kind, detail


class Example(NamedTuple):
    """`detail` says what was found there."""

    line: int
    detail: str


@dataclass(slots=True)
class Oddities:
    """Counts and first examples by kind."""

    counts: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[Example]] = field(default_factory=dict)

    def add(self, kind: str, line: int, detail: str = "") -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1
        kept = self.examples.setdefault(kind, [])
        if len(kept) < MOST_EXAMPLES:
            kept.append(Example(line, detail))

    def __iter__(self) -> Iterator[tuple[str, Kind, int, list[Example]]]:
        """In the order of KINDS."""
        for name, kind in KINDS.items():
            if name in self.counts:
                yield name, kind, self.counts[name], self.examples[name]

    @property
    def left_out(self) -> int:
        return sum(count for _, kind, count, _ in self if kind.treatment is Treatment.LEFT_OUT)

    @property
    def faults(self) -> int:
        return sum(count for _, kind, count, _ in self if kind.is_fault)

    def as_json(self) -> list[dict[str, Any]]:
        """For --json: `kind words treatment fault count examples`."""
        return [
            {
                "kind": name,
                "words": kind.words,
                "treatment": kind.treatment.value,
                "fault": kind.is_fault,
                "count": count,
                "examples": [{"line": line, "found": detail} for line, detail in examples],
            }
            for name, kind, count, examples in self
        ]
