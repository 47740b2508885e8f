"""Which card, and which slot, breaks again and again: whether the fault follows the card or stays where it was."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from opsconsole.health.finding import known
from opsconsole.health.observing import Gpu, gpus_of
from opsconsole.health.rules import Severity
from opsconsole.health.verdict import Verdict

MOST_FAULTS = 2000
HALF_LIFE_MS = 30 * 86_400_000
WEIGHTS = {Severity.DEGRADED.value: 1.0, Severity.FATAL.value: 2.0}


class Fault(msgspec.Struct, frozen=True):
    """One rule that was met on one GPU in one boot. `card`: its UUID, or the last one known; empty: nobody knows."""

    at_ms: int
    host: str
    boot: str
    rule: str
    severity: str
    pci: str
    slot: int | None = None
    card: str = ""
    serial: str = ""

    @property
    def place(self) -> str:
        return f"{self.host} GPU {self.slot}" if self.slot is not None else f"{self.host} {self.pci}"


@dataclass(frozen=True, slots=True)
class Lemon:
    """`score`: 2 for each F, 1 for each D, halved every 30 days. `seen`: the slots of a card, the cards of a slot.

    `follows`: `card` where it broke in several slots, `slot` where several cards broke there; empty: too few to tell.
    """

    kind: str
    name: str
    score: float
    faults: tuple[Fault, ...]
    seen: tuple[str, ...]

    @property
    def follows(self) -> str:
        return self.kind if len(self.seen) > 1 else ""


def faults_of(host: str, verdict: Verdict, probe: Mapping[str, Any], at_ms: int) -> list[Fault]:
    """What counts against its cards: that drains, and is about one of them."""
    gpus = {gpu.pci: gpu for gpu in gpus_of(probe, 0.0)}
    boot = str(probe.get("boot_id") or "")
    return [
        Fault(at_ms, host, boot, one.rule.id, one.severity.value, one.pci, one.slot, *_card(gpus.get(one.pci)))
        for one in verdict.findings
        if one.weight.drains and one.pci
    ]


def _card(gpu: Gpu | None) -> tuple[str, str]:
    """(UUID, serial), each empty where it is not known."""
    if gpu is None:
        return "", ""
    return str(known(gpu.said.get("uuid")) or ""), str(known(gpu.reading("serial")) or "")


def grown(book: Sequence[Fault], found: Iterable[Fault]) -> list[Fault] | None:
    """The book with what is new in it; None where nothing is. Each rule counts once on a GPU in a boot."""
    have = {_key(fault) for fault in book}
    new = [fault for fault in found if _key(fault) not in have]
    return [*book, *new][-MOST_FAULTS:] if new else None


def _key(fault: Fault) -> tuple[str, ...]:
    return (fault.host, fault.boot, fault.rule, fault.pci)


def lemons(book: Iterable[Fault], now_ms: int) -> list[Lemon]:
    """Cards and slots, the worst first."""
    cards: dict[str, list[Fault]] = defaultdict(list)
    slots: dict[str, list[Fault]] = defaultdict(list)
    for fault in book:
        slots[fault.place].append(fault)
        if fault.card:
            cards[fault.card].append(fault)
    found = [_lemon("card", name, faults, {f.place for f in faults}, now_ms) for name, faults in cards.items()]
    found += [
        _lemon("slot", name, faults, {f.card for f in faults if f.card}, now_ms) for name, faults in slots.items()
    ]
    return sorted(found, key=lambda one: (-one.score, one.kind, one.name))


def _lemon(kind: str, name: str, faults: Sequence[Fault], seen: set[str], now_ms: int) -> Lemon:
    score = sum(
        WEIGHTS.get(fault.severity, 0.0) * 0.5 ** (max(0, now_ms - fault.at_ms) / HALF_LIFE_MS) for fault in faults
    )
    return Lemon(kind, name, score, tuple(faults), tuple(sorted(seen)))


def read_book(text: str | None) -> list[Fault]:
    """As the store has it; of one that a later version wrote otherwise, nothing."""
    try:
        return msgspec.json.decode(text or "[]", type=list[Fault])
    except msgspec.MsgspecError:
        return []


def write_book(book: Sequence[Fault]) -> str:
    return msgspec.json.encode(book).decode()
