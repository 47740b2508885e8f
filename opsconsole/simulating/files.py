"""What a replay leaves for notebooks, as CSV: every event, and what each budget was owed and got in each hour."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from opsconsole.simulating.meter import ALLOCATED
from opsconsole.simulating.replay import Event, Outcome
from opsconsole.simulating.workloads import Stream
from scheduler_core.units import HOUR

EVENT_COLUMNS = ["at_s", "kind", "workload", "run", "budget", "gpus", "allocated", "hosts", "for_workload", "reason"]
HOUR_COLUMNS = [
    "hour",
    "budget",
    "demand_gpu_h",
    "entitled_gpu_h",
    "owed_gpu_h",
    "delivered_gpu_h",
    "unallocated_gpu_h",
]


@contextmanager
def write_events(folder: Path, stream: Stream) -> Iterator[Callable[[Event], None]]:
    """`events.csv`, whole or not at all. Takes events as they happen. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    new = folder / ".events.csv"
    workloads = {str(w.id): w for w in stream.workloads}
    try:
        with new.open("w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(EVENT_COLUMNS)

            def tell(event: Event) -> None:
                w = workloads[event.workload]
                hosts = " ".join(f"{member.host}:{member.slots:x}" for member in event.members)
                path = stream.tree.paths[w.budget]
                said = (hosts, event.for_workload, event.reason)
                rows.writerow(
                    (event.at / 1000, event.kind, event.workload, event.run, path, w.gpus, int(w.allocated), *said)
                )

            yield tell
        new.replace(folder / "events.csv")
    finally:
        new.unlink(missing_ok=True)


def write_hours(folder: Path, outcome: Outcome) -> None:
    """`hours.csv`: hours of the period, from 0, in which the budget asked for or held anything. Raises OSError."""
    tree, service = outcome.stream.tree, outcome.meter.service.hours
    with (folder / "hours.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(HOUR_COLUMNS)
        for budget in sorted(tree.by_id, key=lambda b: tree.paths[b]):
            account, share = outcome.meter.accounts[budget], float(tree.fractions[budget])
            for hour, (demand, allocated, unallocated) in account.hours.items():
                served = service[hour][ALLOCATED] if hour in service else 0
                entitled = share * served
                amounts = (demand, entitled, min(demand, entitled), allocated, unallocated)
                rows.writerow((hour, tree.paths[budget], *(round(amount / HOUR, 6) for amount in amounts)))
