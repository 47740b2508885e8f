"""A cluster as its journal tells it: a real store and inventory, nobody who leads, and the command line on them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from opsconsole.clock import boot_id, boot_now_ms, wall_now_ms
from opsconsole.store.store import Store
from scheduler_core.engine import Step
from scheduler_core.observations import Observation
from tests.core.clusters import Cluster, Remembered
from tests.live.commands import CommandLine
from tests.terminal import on_terminal


@dataclass
class Told(CommandLine):
    """The command line, on pipes and on terminals."""

    cluster: Cluster

    def shown(self, *words: str, columns: int = 80) -> str:
        """What a command says on a terminal."""
        with on_terminal(self, *words, columns=columns) as terminal:
            assert terminal.ended() == 0, terminal.said
            return terminal.said


def told(folder: Path, cluster: Cluster, probes: Mapping[str, object] | None = None) -> Told:
    """Its store holds the state as it is now, the newest readings, and the journal of a cluster that remembers it. The
    inventory names the hosts."""
    store = Store(folder / "state" / "main.db")
    steps = cluster.steps if isinstance(cluster, Remembered) else []
    store.snapshot(cluster.engine, len(steps) + 1, _journal(store, steps))
    store.put("clock", json.dumps([boot_id(), boot_now_ms(), cluster.now]))
    store.put_readings({host: (wall_now_ms(), json.dumps(probe).encode()) for host, probe in (probes or {}).items()})
    store.close()
    hosts = "".join(f"  - {{name: {name}, gpus: {gpus}}}\n" for name, gpus in cluster.hosts.items())
    budgets = "".join(f"  - {{name: {name}}}\n" for name in cluster.weights if "/" not in name)
    inventory = folder / "inventory.yaml"
    inventory.write_text(f"hosts:\n{hosts}budgets:\n{budgets}state_dir: {folder}/state\n")
    return Told(inventory, cluster)


def _journal(store: Store, steps: Sequence[tuple[int, Sequence[Observation], Step]]) -> int:
    """All of it at this moment of the wall clock. Returns the last row."""
    if not steps:
        return 0
    epoch, seq = store.acquire("test"), 0
    assert epoch is not None
    for tick, (at, facts, step) in enumerate(steps, start=1):
        seq = store.commit(epoch, tick, at, facts, step.decisions, step.commands) or seq
    store.release(epoch)
    return seq
