"""Rule 21 judged from outside: who was promised GPUs from an instant on gets them, and nobody else is protected there.

A promise ends by itself: its holder starts or withdraws, its hosts were cordoned or lost or its GPUs are not fit any
more, or a cap leaves no room. Nothing else may take it away or push it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scheduler_core.decisions import (
    Claimed,
    Decision,
    HostLost,
    HostMoved,
    Member,
    MemberLeaked,
    Placed,
    ReservationEnded,
    Reserved,
    StopDecided,
    StrayFound,
)
from scheduler_core.errors import InvariantBroken
from scheduler_core.ids import HostName, RunId, WorkloadId
from scheduler_core.observations import (
    AutoDrainProposed,
    CancelRequested,
    CordonRequested,
    DrainRequested,
    HoldRequested,
    HostAdvanced,
    HostDeclared,
    HostSeen,
    InventoryLoaded,
    Observation,
    WorkloadMoved,
)

if TYPE_CHECKING:
    from scheduler_core.sim.hosts import Process
    from scheduler_core.sim.judge import Judge


@dataclass
class Promise:
    """`at` in ms. `hindered_at`: when something that excuses was last seen. `begun`: its victims are being stopped."""

    at: int
    members: tuple[Member, ...]
    hindered_at: int = 0
    begun: bool = False

    def on(self, host: HostName, slots: int = -1) -> bool:
        return any(m.host == host and m.slots & slots for m in self.members)


@dataclass
class Promises:
    """All that are open."""

    judge: Judge
    open: dict[WorkloadId, Promise] = field(default_factory=dict)
    claims: dict[WorkloadId, tuple[Member, ...]] = field(default_factory=dict)
    placed_at: dict[RunId, int] = field(default_factory=dict)
    stopped: dict[RunId, None] = field(default_factory=dict)
    inventory: InventoryLoaded | None = None

    def heard(self, fact: Observation) -> None:
        """What people and hosts say may end a promise."""
        match fact:
            case CancelRequested(wid) | HoldRequested(wid) | WorkloadMoved(wid):
                self.open.pop(wid, None)
            case CordonRequested(host) | HostAdvanced(host) | HostDeclared(host):
                self._end_on(host)
            case DrainRequested(host=host) | AutoDrainProposed(host=host):
                self._end_on(host)
            case HostSeen(host, foreign=foreign, unfit=unfit):
                self._end_on(host, foreign | unfit)
            case InventoryLoaded():
                self.inventory = fact
                there = [host.name for host in fact.hosts]
                for name in [m.host for p in self.open.values() for m in p.members if m.host not in there]:
                    self._end_on(name)

    def _end_on(self, host: HostName, slots: int = -1) -> None:
        for wid in [wid for wid, promise in self.open.items() if promise.on(host, slots)]:
            del self.open[wid]

    def decided(self, decisions: Iterable[Decision]) -> None:
        for decision in decisions:
            self._follow(decision)
        for wid, promise in self.open.items():
            self._look(wid, promise)

    def _follow(self, decision: Decision) -> None:
        now = self.judge.world.now
        match decision:
            case Reserved(wid, at, members):
                if wid in self.open:
                    raise InvariantBroken(f"{wid} was promised {self.open[wid].at}, and now {at}")
                self.open[wid] = Promise(at, members)
            case ReservationEnded(wid, reason):
                if self.open.pop(wid, None) is not None and not self._capped(wid):
                    raise InvariantBroken(f"the promise to {wid} is taken away: {reason}")
            case Claimed(wid, members):
                for part in self.claims.get(wid, ()) if not members else ():
                    self._hinder(part)  # given up in this pass; the next one finds the GPUs
                self.claims[wid] = members
                promise = self.open.get(wid)
                if promise is not None and members == promise.members and promise.at <= now:
                    promise.begun, promise.hindered_at = True, now
                else:
                    self.open.pop(wid, None)
            case Placed(wid, run):
                self.placed_at[run] = now
                self.open.pop(wid, None)
                self.claims.pop(wid, None)
            case StopDecided(run):
                self.stopped[run] = None
            case HostLost(host) | HostMoved(host) | MemberLeaked(_, host) | StrayFound(_, host):
                self._end_on(host)

    def _hinder(self, part: Member) -> None:
        for promise in self.open.values():
            if promise.on(part.host, part.slots):
                promise.hindered_at = self.judge.world.now

    def _capped(self, wid: WorkloadId) -> bool:
        """Has any budget above it a cap?"""
        assert self.inventory is not None
        by_id = {budget.id: budget for budget in self.inventory.budgets}
        at = by_id.get(self.judge.declared[wid].budget)
        while at is not None and at.max_gpus is None:
            at = by_id.get(at.parent)
        return at is not None

    def _look(self, wid: WorkloadId, promise: Promise) -> None:
        world = self.judge.world
        if promise.at > world.now:
            return
        for process in self._processes(promise):
            if self._protected(process):
                raise InvariantBroken(
                    f"{process.run} is protected on GPUs that are promised {wid} from {promise.at} on"
                )
        if self._hindered(wid, promise):
            promise.hindered_at = world.now
        assert self.inventory is not None
        if world.now >= max(promise.at, promise.hindered_at) + self.inventory.policy.pass_interval_ms:
            what = "its victims have gone" if promise.begun else "nothing is in its way"
            raise InvariantBroken(f"{wid} was promised a start at {promise.at}; {what}, and it waits at {world.now}")

    def _processes(self, promise: Promise) -> Iterator[Process]:
        """Whoever holds these GPUs."""
        for member in promise.members:
            for process in self.judge.world.hosts[member.host].processes.values():
                if process.holding and process.slots & member.slots:
                    yield process

    def _protected(self, process: Process) -> bool:
        """Unless it is stopped already, or started later than the machine could reckon with."""
        assert self.inventory is not None
        lives = process.alive and not (process.stopping or process.disowned or process.stranger)
        if not lives or process.run in self.stopped:
            return False
        late = process.began_at - self.placed_at[process.run] > self.inventory.policy.start_timeout_ms
        declared, ran = self.judge.declared[process.workload], self.judge.world.now - process.began_at
        return declared.allocated and ran < declared.yields_after_ms and not late

    def _hindered(self, wid: WorkloadId, promise: Promise) -> bool:
        """Its hosts cannot be asked, others still wait for GPUs of it that they had claimed before, or it waits for
        its victims to go, or for room below a cap."""
        world = self.judge.world
        for member in promise.members:
            host = world.hosts[member.host]
            if not host.reachable or host.stale or host.late or host.lag_until > world.now:
                return True
        if promise.begun:
            return self._capped(wid) or any(True for _ in self._processes(promise))
        others = (members for other, members in self.claims.items() if other != wid)
        return any(promise.on(m.host, m.slots) for members in others for m in members) or self._late_ones(promise)

    def _late_ones(self, promise: Promise) -> bool:
        """A run that started late is protected all the same: the promise waits, the contract does not give way."""
        assert self.inventory is not None
        timeout = self.inventory.policy.start_timeout_ms
        runs = (p for p in self._processes(promise) if not p.stranger)
        return any(p.began_at - self.placed_at[p.run] > timeout for p in runs)
