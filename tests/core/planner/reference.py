"""A second planner, slow and plain: from the records alone, every set of victims tried. The real one must agree.

It shares with the real one the ledgers (tested by themselves), the tree's fractions and the shapes of rule 16; order,
standings, placement, rights and victims are written again, by the letter of policy.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations

from scheduler_core.decisions import Member
from scheduler_core.ids import ROOT, BudgetId, HostName, RunId, WorkloadId
from scheduler_core.shapes import Shape, matches, shapes, sizes_of
from scheduler_core.state import ClusterState, Run
from scheduler_core.units import GPU, PPM, bits
from scheduler_core.workload import Workload, WorkloadPhase

Order = tuple[object, ...]


@dataclass
class Outcome:
    """What the pass does: members by workload, and victims with their beneficiary."""

    placed: dict[WorkloadId, tuple[Member, ...]] = field(default_factory=dict)
    claimed: dict[WorkloadId, tuple[Member, ...]] = field(default_factory=dict)
    victims: dict[RunId, WorkloadId] = field(default_factory=dict)


class Reference:
    def __init__(self, state: ClusterState) -> None:
        self.state, self.tree, self.now = state, state.budgets, state.now
        self.out = Outcome()
        self.taken: dict[HostName, int] = {}
        self.promised: dict[BudgetId, int] = {}  # commitments of this pass
        self.given: dict[BudgetId, int] = {}  # GPUs of this pass
        self.ends: dict[HostName, int] = {}
        self.reserved = {wid: r.reserved for wid, r in state.workloads.items() if r.reserved is not None}
        self.closed: dict[HostName, int] = {}  # what is reserved for others than the one that is looked at
        self.begun: dict[WorkloadId, None] = {}

    # -- standings -------------------------------------------------------------------------------------------------

    def charged(self, budget: BudgetId) -> int:
        total = self.state.ledgers.used(budget, self.now, self.state.policy.lookback_ms)
        if not self.state.policy.count_commitments:
            return total
        for run in self.state.runs.values():
            if budget in self.tree.chains[run.budget] and run.allocated and run.stop is None:
                begun = run.started_at if run.started_at is not None else self.now
                total += run.gpus * GPU * max(0, begun + run.min_runtime_ms - self.now)
        for record in self.state.workloads.values():
            promised = record.claim or record.reserved is not None
            if promised and budget in self.tree.chains[record.workload.budget]:
                total += record.workload.gpus * GPU * record.workload.min_runtime_ms
        return total + self.promised.get(budget, 0)

    def standing(self, budget: BudgetId, extra: int = 0) -> Order:
        amount, fraction = Fraction(self.charged(budget) + extra), self.tree.fractions[budget]
        owed = fraction * self.state.ledgers.in_service(self.now, self.state.policy.lookback_ms)
        b = self.tree.by_id[budget]
        if not fraction:
            return (1, 0, 0, amount)
        weight = self.tree.share_weights[budget]
        if owed and amount >= owed:
            return (0, 1, -b.over_budget_priority, amount / weight / b.over_budget_weight)
        return (0, 0, 0, amount / weight)

    def better(self, mine: BudgetId, theirs: BudgetId, extra: int) -> bool:
        """Rule 17 b."""
        a, b = self.standing(mine, extra), self.standing(theirs)
        if a[:3] != b[:3]:
            return a[:3] < b[:3]
        x, y = a[3], b[3]
        assert isinstance(x, Fraction) and isinstance(y, Fraction)
        return x < y and y - x >= y * self.state.policy.preemption_margin_ppm / PPM

    # -- order -----------------------------------------------------------------------------------------------------

    def waiting(self, allocated: bool) -> dict[BudgetId, list[Workload]]:
        found: dict[BudgetId, list[Workload]] = {}
        for record in self.state.workloads.values():
            w = record.workload
            considered = record.phase is WorkloadPhase.WAITING and not record.claim and record.not_before <= self.now
            considered = considered and w.id not in self.begun
            if considered and w.allocated is allocated:
                found.setdefault(w.budget, []).append(w)
        for leaf in found.values():
            leaf.sort(key=lambda w: (-w.priority, w.submitted_at, w.id))
        return found

    def next_leaf(self, queues: dict[BudgetId, list[Workload]]) -> BudgetId | None:
        at = ROOT
        while kids := [k for k in self.tree.children[at] if any(queues.get(x) for x in self.tree.leaves_below[k])]:
            at = min(kids, key=lambda k: (self.standing(k), k))
        return at if at != ROOT else None

    def unallocated_order(self, parent: BudgetId = ROOT) -> list[BudgetId]:
        def key(budget: BudgetId) -> Order:
            used = self.state.ledgers.used(budget, self.now, self.state.policy.lookback_ms, allocated=False)
            weight = self.tree.share_weights[budget]
            return (not self.tree.fractions[budget], Fraction(used, weight or 1), budget)

        found = []
        for budget in sorted(self.tree.children[parent], key=key):
            found += [budget] if self.tree.is_leaf(budget) else self.unallocated_order(budget)
        return found

    # -- the pass --------------------------------------------------------------------------------------------------

    def run(self) -> Outcome:
        self.start_claimants()
        self.begin_reserved()
        queues, blocked = self.waiting(True), dict[BudgetId, None]()
        while (leaf := self.next_leaf(queues)) is not None:
            w = queues[leaf].pop(0)
            if not self.place(w) and not self.preempt(w, leaf in blocked):
                blocked[leaf] = None
        free = self.waiting(False)
        for leaf in self.unallocated_order():
            for w in free.get(leaf, []):
                self.place(w)
        return self.out

    def start_claimants(self) -> None:
        for wid, record in self.state.workloads.items():
            held_free = all(
                m.slots & self.usable(m.host) & ~self.state.hosts[m.host].held == m.slots for m in record.claim
            )
            self.look(record.workload)
            late = any(m.slots & self.closed.get(m.host, 0) for m in record.claim)
            if record.claim and held_free and not late and self.room_below_caps(record.workload, 0):
                self.out.placed[wid] = record.claim

    # -- rule 21 ---------------------------------------------------------------------------------------------------

    def look(self, w: Workload, wait: int = 0) -> None:
        """What is reserved and due before this workload, once started, has ended or lost its protection is closed."""
        limit = w.min_runtime_ms if w.time_limit_ms is None else min(w.min_runtime_ms, w.time_limit_ms)
        ends = self.now + wait + self.state.policy.start_timeout_ms + limit
        self.closed = {}
        for wid, made in self.reserved.items():
            if w.allocated and wid != w.id and made.at < ends:
                for m in made.members:
                    self.closed[m.host] = self.closed.get(m.host, 0) | m.slots

    def begin_reserved(self) -> None:
        for made in sorted(self.reserved.values(), key=lambda r: (r.at, r.workload)):
            w, runs = self.state.workloads[made.workload].workload, dict[RunId, Run]()
            for m in made.members:
                for run_id in self.state.hosts[m.host].runs:
                    member = self.state.runs[run_id].members[m.host]
                    if member.phase.holds_gpus and member.slots & m.slots:
                        runs[run_id] = self.state.runs[run_id]
            there = all(m.slots & self.usable(m.host) == m.slots for m in made.members)
            claimed = any(m.slots & self.state.hosts[m.host].claimed for m in made.members)
            protected = any(not self.stops(r) and r.protected(self.now) for r in runs.values())
            if made.at > self.now or not there or claimed or protected:
                continue
            del self.reserved[made.workload]
            if self.over_caps(w, w.gpus, list(runs.values())):
                continue
            self.begun[w.id] = None
            self.out.victims |= {r.id: w.id for r in runs.values() if not self.stops(r)}
            (self.out.claimed if runs else self.out.placed)[w.id] = made.members
            self.take(w, made.members)

    def usable(self, name: HostName) -> int:
        return self.state.hosts[name].usable

    def open(self, name: HostName) -> int:
        return self.unpromised(name) & ~self.closed.get(name, 0)

    def unpromised(self, name: HostName) -> int:
        return self.usable(name) & ~self.state.hosts[name].claimed & ~self.taken.get(name, 0)

    def free(self, name: HostName) -> int:
        return self.open(name) & ~self.state.hosts[name].held

    def over_caps(self, w: Workload, gpus: int, leaving: list[Run] | None = None) -> list[tuple[BudgetId, int]]:
        over = []
        for budget in self.tree.chains[w.budget]:
            cap = self.tree.by_id[budget].max_gpus
            held = sum(r.gpus for r in self.state.runs.values() if budget in self.tree.chains[r.budget])
            for record in self.state.workloads.values():
                if record.claim and budget in self.tree.chains[record.workload.budget]:
                    held += record.workload.gpus
            held -= sum(r.gpus for r in leaving or () if budget in self.tree.chains[r.budget])
            total = held + self.given.get(budget, 0) + gpus
            if cap is not None and total > cap:
                over.append((budget, total - cap))
        return over

    def room_below_caps(self, w: Workload, gpus: int) -> bool:
        return not self.over_caps(w, gpus)

    def take(self, w: Workload, members: tuple[Member, ...]) -> None:
        for budget in self.tree.chains[w.budget]:
            self.given[budget] = self.given.get(budget, 0) + w.gpus
            if self.state.workloads[w.id].reserved is None:  # else it counts already
                self.promised[budget] = self.promised.get(budget, 0) + w.gpus * GPU * w.min_runtime_ms
        self.reserved.pop(w.id, None)
        for m in members:
            self.taken[m.host] = self.taken.get(m.host, 0) | m.slots
            self.ends[m.host] = max(self.ends.get(m.host, 0), self.now + w.min_runtime_ms)

    # -- rule 16 ---------------------------------------------------------------------------------------------------

    def shapes(self, w: Workload) -> tuple[Shape, ...]:
        return shapes(w, sizes_of((h.host for h in self.state.hosts.values()), w.needs))

    def suits(self, w: Workload, shape: Shape, name: HostName) -> bool:
        host = self.state.hosts[name].host
        return matches(host, w.needs) and (not shape.whole or host.gpus == shape.gpus)

    def expiry(self, name: HostName) -> int:
        ends = [self.now, self.ends.get(name, 0)]
        for run_id in self.state.hosts[name].runs:
            run = self.state.runs[run_id]
            if run.allocated and run.stop is None:
                ends.append((self.now if run.started_at is None else run.started_at) + run.min_runtime_ms)
        return max(ends) if self.state.policy.pack == "aligned" else 0

    def place(self, w: Workload) -> bool:
        if not self.room_below_caps(w, w.gpus):
            return False
        self.look(w)
        for shape in self.shapes(w):
            names = [n for n in self.state.hosts if self.suits(w, shape, n) and self.free(n).bit_count() >= shape.gpus]
            names.sort(key=lambda n: ((self.unpromised(n) & ~self.state.hosts[n].held).bit_count(), self.expiry(n), n))
            if len(names) >= shape.hosts:
                members = tuple(Member(n, lowest(self.free(n), shape.gpus)) for n in names[: shape.hosts])
                self.take(w, members)
                self.out.placed[w.id] = members
                return True
        return False

    # -- rules 17 and 18 -------------------------------------------------------------------------------------------

    def stops(self, run: Run) -> bool:
        return run.stop is not None or run.id in self.out.victims

    def tier(self, w: Workload, run: Run, only_unallocated: bool) -> int | None:
        """None: no right to it. Else lower goes first."""
        if not run.allocated:
            return -(10**15)
        if only_unallocated or run.protected(self.now):
            return None
        mine, theirs = self.branches(w.budget, run.budget)
        extra = w.gpus * GPU * min(w.min_runtime_ms, self.state.policy.claim_horizon_ms)
        if self.state.workloads[w.id].reserved is not None:
            extra -= w.gpus * GPU * w.min_runtime_ms
        extra = extra if self.state.policy.count_commitments else 0
        if mine == theirs:
            if self.state.workloads[run.workload].workload.priority >= w.priority:
                return None
        elif not self.tree.fractions[mine] or not self.better(mine, theirs, extra):
            return None
        owed = self.tree.fractions[theirs] * self.state.ledgers.in_service(self.now, self.state.policy.lookback_ms)
        if not owed:
            return -(10**12)
        return -((self.charged(theirs) - owed) * PPM // (owed * max(1, self.state.policy.preemption_margin_ppm)))

    def branches(self, mine: BudgetId, theirs: BudgetId) -> tuple[BudgetId, BudgetId]:
        """The children of the lowest common ancestor; the leaf twice when it is the same."""
        a, b = self.tree.chains[mine][::-1], self.tree.chains[theirs][::-1]
        for x, y in zip(a, b, strict=False):
            if x != y:
                return x, y
        return mine, theirs

    def lost(self, run: Run) -> int:
        since = run.started_at if run.started_at is not None else self.now
        if self.state.workloads[run.workload].workload.resumable and run.checkpoint_at is not None:
            since = max(since, run.checkpoint_at)
        return run.gpus * GPU * (self.now - since)

    def preempt(self, w: Workload, only_unallocated: bool) -> bool:
        if only_unallocated and not self.room_below_caps(w, w.gpus):
            return False
        policy = self.state.policy
        self.look(w, policy.checkpoint_grace_ms + policy.stop_grace_ms + policy.stop_deadline_ms + policy.lost_after_ms)
        tiers = {r.id: self.tier(w, r, only_unallocated) for r in self.state.runs.values() if not self.stops(r)}
        for shape in self.shapes(w):
            plan = self.plan(w, shape, {rid: t for rid, t in tiers.items() if t is not None})
            if plan is not None:
                members, victims = plan
                self.out.victims |= dict.fromkeys(victims, w.id)
                self.out.claimed[w.id] = members
                self.take(w, members)
                return True
        return False

    def plan(self, w: Workload, shape: Shape, tiers: dict[RunId, int]) -> tuple[tuple[Member, ...], list[RunId]] | None:
        """Greedy across hosts: the cheapest host, given who goes for the earlier ones."""
        runs, blast = self.state.runs, w.gpus * self.state.policy.max_blast_ppm // PPM
        since = self.state.blast_blocked.get(w.id)
        if since is not None and self.now - since >= self.state.policy.blast_patience_ms:
            blast = 1 << 60
        gone: list[RunId] = []
        chosen: list[HostName] = []

        def allocated(ids: list[RunId] | tuple[RunId, ...]) -> int:
            return sum(runs[i].gpus for i in ids if runs[i].allocated)

        while len(chosen) < shape.hosts:
            offers: list[tuple[tuple[int, int, int, tuple[RunId, ...]], HostName, tuple[RunId, ...]]] = []
            for name in self.state.hosts:
                if name in chosen or not self.suits(w, shape, name):
                    continue
                coming = self.coming(name, gone)
                missing = shape.gpus - coming.bit_count()
                if missing <= 0:
                    offers.append(((-(10**18), 0, coming.bit_count(), ()), name, ()))
                    continue
                best = self.best_set(name, [i for i in tiers if i not in gone], tiers, missing, blast - allocated(gone))
                if best is not None:
                    key = (max(tiers[i] for i in best), sum(self.lost(runs[i]) for i in best), len(best), best)
                    offers.append((key, name, best))
            if not offers:
                return None
            _, name, best = min(offers)
            chosen.append(name)
            gone += best
        gone = self.minimal(shape, chosen, gone, tiers)
        members = tuple(Member(n, self.pick(n, shape.gpus, gone)) for n in chosen)
        return members, gone

    def coming(self, name: HostName, gone: list[RunId] | tuple[RunId, ...]) -> int:
        slots = self.free(name)
        for run_id in self.state.hosts[name].runs:
            run = self.state.runs[run_id]
            if run.members[name].phase.holds_gpus and (run_id in gone or self.stops(run)):
                slots |= run.members[name].slots & self.open(name)
        return slots

    def best_set(
        self, name: HostName, ids: list[RunId], tiers: dict[RunId, int], missing: int, blast: int
    ) -> tuple[RunId, ...] | None:
        """Every minimal set tried: least from the last tier, and so on up; then least lost, fewest runs, ids."""
        runs = self.state.runs
        freed = {}
        for i in ids:
            member = runs[i].members.get(name)
            if member is not None and member.phase.holds_gpus and member.slots & self.open(name):
                freed[i] = (member.slots & self.open(name)).bit_count()
        best: tuple[Order, tuple[RunId, ...]] | None = None
        for size in range(1, len(freed) + 1):
            for chosen in combinations(sorted(freed), size):
                total = sum(freed[i] for i in chosen)
                if not missing <= total < missing + min(freed[i] for i in chosen):
                    continue
                if sum(runs[i].gpus for i in chosen if runs[i].allocated) > blast:
                    continue
                by_gpu = sorted(tiers[i] for i in chosen for _ in range(freed[i]))[:missing]
                key = (by_gpu[::-1], sum(self.lost(runs[i]) for i in chosen), size, chosen)
                if best is None or key < best[0]:
                    best = (key, chosen)
        return None if best is None else best[1]

    def minimal(self, shape: Shape, names: list[HostName], gone: list[RunId], tiers: dict[RunId, int]) -> list[RunId]:
        for run_id in sorted(gone, key=lambda i: (tiers[i], self.lost(self.state.runs[i]), i), reverse=True):
            rest = [i for i in gone if i != run_id]
            if all(self.coming(n, rest).bit_count() >= shape.gpus for n in names):
                gone = rest
        return gone

    def pick(self, name: HostName, gpus: int, gone: list[RunId]) -> int:
        free = self.free(name)
        first = lowest(free, min(gpus, free.bit_count()))
        return first | lowest(self.coming(name, gone) & ~free, gpus - first.bit_count())


def lowest(mask: int, count: int) -> int:
    return sum(1 << slot for slot in bits(mask)[:count])
