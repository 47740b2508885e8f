"""A witness beside the engine: what only shows between two states (`invariants` looks at one).

It integrates usage by itself (rule 2), and remembers what may never be taken back: the end of a workload, the tokens
that were issued, the order of time. Tests and the simulator let it look after every step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from scheduler_core.ids import BudgetId, HostName, RunId, WorkloadId, run_id
from scheduler_core.observations import MemberReleased, Observation, UsageForgotten
from scheduler_core.state import ClusterState
from scheduler_core.units import GPU
from scheduler_core.workload import Outcome, WorkloadPhase

Held = Counter[tuple[BudgetId, bool]]  # GPU-thousandths per budget and ledger


@dataclass(frozen=True, slots=True)
class Part:
    """A member that holds GPUs, and where it is charged since when."""

    chain: tuple[BudgetId, ...]
    allocated: bool
    amount: int  # GPU-thousandths
    since: int


@dataclass
class Witness:
    """`hear` what a step is given, `look` after it; that returns what it saw going wrong."""

    now: int = 0
    held: Held = field(default_factory=Counter)
    used: Held = field(default_factory=Counter)
    parts: dict[tuple[RunId, HostName], Part] = field(default_factory=dict)
    late: list[MemberReleased] = field(default_factory=list)  # heard, and over before they were
    forgiven: list[BudgetId] = field(default_factory=list)  # heard: their past counts no longer
    begun: dict[BudgetId, int] = field(default_factory=dict)  # since when the usage of those counts
    last: dict[WorkloadId, tuple[int, int, bool, Outcome | None]] = field(default_factory=dict)  # day, attempt, end
    claims: dict[WorkloadId, BudgetId] = field(default_factory=dict)
    tokens: dict[RunId, int] = field(default_factory=dict)  # when each was issued

    def hear(self, observations: Iterable[Observation]) -> None:
        for fact in observations:
            if isinstance(fact, MemberReleased) and fact.ago_ms:
                self.late.append(fact)
            elif isinstance(fact, UsageForgotten):
                self.forgiven.append(fact.budget)

    def look(self, state: ClusterState) -> list[str]:
        problems = [*self._time(state), *self._usage(state), *self._ends(state)]
        problems += [*self._given(state), *self._tokens(state)]
        self.now = state.now
        return problems

    def _time(self, state: ClusterState) -> Iterator[str]:
        if state.now < self.now:
            yield f"time ran back from {self.now} to {state.now}"

    def _usage(self, state: ClusterState) -> Iterator[str]:
        """Every ledger against the sum of GPUs held times how long (nothing changes between steps)."""
        for key, rate in self.held.items():
            self.used[key] += rate * (state.now - self.now)
        forgiven = [b for b in self.forgiven if b in state.budgets.by_id]
        self.begun |= {below: state.now for b in forgiven for below in state.budgets.subtree(b)}
        for fact in self.late:
            if (part := self.parts.pop((fact.run, fact.host), None)) is not None:
                for budget in part.chain:
                    since = max(part.since, self.begun.get(budget, 0))
                    self.used[budget, part.allocated] -= part.amount * min(fact.ago_ms, state.now - since)
        for key in self.used:
            if self.begun.get(key[0]) == state.now:
                self.used[key] = 0
        self.late.clear()
        self.forgiven.clear()
        self._remember(state)
        for (budget, allocated), amount in self.used.items():
            ledger = (state.ledgers.allocated if allocated else state.ledgers.unallocated).get(budget)
            charged = ledger.until(state.now) if ledger is not None else 0
            if charged != amount:
                yield f"{budget}: charged {charged}, held {amount} (allocated: {allocated})"

    def _remember(self, state: ClusterState) -> None:
        self.held, self.parts = Counter(), {}
        for run in state.runs.values():
            chain = state.budgets.chains[run.budget]
            self.held.update({(budget, run.allocated): run.gpus * GPU for budget in chain})
            for name, member in run.members.items():
                if member.phase.holds_gpus:
                    amount, since = member.slots.bit_count() * GPU, max(run.placed_at, run.charged_from)
                    self.parts[run.id, name] = Part(chain, run.allocated, amount, since)

    def _ends(self, state: ClusterState) -> Iterator[str]:
        """Ended is final, and a workload never goes back to an earlier attempt."""
        last, self.last = self.last, {}
        for wid, record in state.workloads.items():
            now = self.last[wid] = (record.day, record.attempt, record.phase is WorkloadPhase.ENDED, record.outcome)
            before = last.get(wid, now)
            if before != now and before[0] == record.day:  # on another day it is another workload
                if before[2]:
                    yield f"{wid}: ended as {before[3]}, now {record.phase} {record.outcome}"
                if before[1] > record.attempt:
                    yield f"{wid}: attempt {record.attempt} after {before[1]}"

    def _given(self, state: ClusterState) -> Iterator[str]:
        """What is placed gets GPUs that are known free (rule 26); it and what claims keep to the caps (rule 8)."""
        placed = [run for run in state.runs.values() if run.placed_at == state.now and run.id not in self.tokens]
        for run in placed:
            for name, member in run.members.items():
                if member.slots & ~state.hosts[name].usable:
                    yield f"{run.id}: placed on GPUs of {name} that are not known free"
        claims, self.claims = self.claims, {wid: state.workloads[wid].workload.budget for wid in state.index.claimants}
        grown = [run.budget for run in placed] + [budget for wid, budget in self.claims.items() if wid not in claims]
        for budget in dict.fromkeys(b for leaf in grown for b in state.budgets.chains[leaf]):
            cap, gpus = state.budgets.by_id[budget].max_gpus, self._promised(state, budget)
            if cap is not None and gpus > cap:
                yield f"{budget}: {gpus} GPUs are held and claimed below it, of max_gpus {cap}"

    def _promised(self, state: ClusterState, budget: BudgetId) -> int:
        """GPUs below a budget when those that stop have gone."""
        chains = state.budgets.chains
        held = sum(run.gpus for run in state.runs.values() if run.stop is None and budget in chains[run.budget])
        claimed = (wid for wid, leaf in self.claims.items() if budget in chains[leaf])
        return held + sum(state.workloads[wid].workload.gpus for wid in claimed)

    def _tokens(self, state: ClusterState) -> Iterator[str]:
        """A token is issued once, for ever, and its number belongs to one attempt."""
        for run in state.runs.values():
            if self.tokens.setdefault(run.id, run.placed_at) != run.placed_at:
                yield f"{run.id}: issued twice"
            record = state.workloads[run.workload]
            if run.id != run_id(run.workload, record.attempt, record.day):
                yield f"{run.id}: is not the newest attempt of {run.workload}"
