"""Changes that nobody has made yet, as the facts that would reach the engine if somebody did."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_core.budget import Budget
from scheduler_core.fleet import Host
from scheduler_core.ids import DrainId, HostName
from scheduler_core.observations import By, DrainRequested, HostSeen, InventoryLoaded, Observation
from scheduler_core.policy import Policy
from scheduler_core.state import ClusterState
from scheduler_core.workload import Workload

BY = By("what-if")


@dataclass(frozen=True, slots=True)
class Draft:
    """`policy` and `budgets` None: as they are. `submitted` come at once. `said`: all of it in words."""

    policy: Policy | None = None
    budgets: tuple[Budget, ...] | None = None
    added: tuple[Host, ...] = ()
    removed: tuple[HostName, ...] = ()
    drained: tuple[HostName, ...] = ()
    submitted: tuple[Workload, ...] = ()
    said: tuple[str, ...] = ()

    def facts(self, state: ClusterState) -> list[Observation]:
        """All but what is submitted: a future submits that itself."""
        facts: list[Observation] = []
        if self.policy or self.budgets or self.added or self.removed:
            hosts = [r.host for r in state.hosts.values() if not r.removed and r.host.name not in self.removed]
            budgets = self.budgets if self.budgets is not None else state.budgets.budgets
            facts.append(InventoryLoaded(self.policy or state.policy, budgets, (*hosts, *self.added)))
            facts += [HostSeen(host.name, "boot") for host in self.added]
        for host in self.drained:
            facts.append(DrainRequested(DrainId(f"what-if {host}"), host, BY))
        return facts


NO_CHANGE = Draft()
