"""What a pass has to look at: whatever events since the last one, or time, could have helped (module settled)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from scheduler_core.fairshare import Standings, stands_better
from scheduler_core.ids import BudgetId, HostName, RunId, WorkloadId
from scheduler_core.policy import Policy
from scheduler_core.settled import Blocked, Settled, Signature
from scheduler_core.shapes import matches
from scheduler_core.state import ClusterState
from scheduler_core.victims import Pool, Rights

TURN = 1000  # standings are read again when one part in so many of the window may have changed


def turn_ms(policy: Policy) -> int:
    """How long time alone may turn standings before they are read again."""
    return max(policy.pass_interval_ms, policy.lookback_ms // TURN)


@dataclass(slots=True)
class Agenda:
    """What a pass has to look at."""

    heads: dict[BudgetId, None]  # leaves to look at from their head on
    turned: dict[BudgetId, None]  # of them, those whose head has new rights: it searches all hosts
    rest: dict[BudgetId, None]  # leaves where something of a revived signature waits
    revived: dict[Signature, None]
    hosts: dict[HostName, None]  # where more is to be had than at the last pass
    reads_standings: bool = False


def agenda(state: ClusterState, settled: Settled, pool: Pool, preemptable_gpus: int) -> Agenda:
    """Takes from `settled` what holds no longer."""
    index, news = state.index, state.index.news
    if settled.fresh or news.everything:
        settled.clear()
        return Agenda(dict.fromkeys(index.queues), {}, {}, {}, {}, True)
    hosts = {name: None for name in news.hosts if name in state.hosts}
    revived = _revived(state, settled.dead, hosts)
    _revived(state, settled.unfit, hosts)
    reads = _must_read(state, pool.standings)
    turned = {leaf: None for leaf in (settled.blocked if reads else news.relieved) if _turned(settled, pool, leaf)}
    turned |= {leaf: None for leaf in settled.blast if _lets_past(state, settled.blocked.get(leaf))}
    for leaf in _let_go(state, settled, preemptable_gpus):
        turned[leaf] = None
        revived |= {kind: None for kind in index.queues[leaf].by_signature if settled.dead.pop(kind, 0) is None}
    heads = {leaf: None for leaf in (*settled.open, *news.leaves, *turned) if leaf in index.queues}
    settled.open.clear()
    exposed = _exposed(state, hosts)
    for run in exposed:
        hosts |= dict.fromkeys(state.runs[run].members)
    heads |= _claimants(pool, settled, exposed, hosts)
    rest: dict[BudgetId, None] = {}
    if revived:
        alive = revived.keys()
        rest = {leaf: None for leaf, q in index.queues.items() if not alive.isdisjoint(q.by_signature)}
    return Agenda(heads, turned, rest, revived, hosts, reads)


def _lets_past(state: ClusterState, blocked: Blocked | None) -> bool:
    return blocked is not None and blocked.head is not None and patience_over(state, blocked.head[2])


def patience_over(state: ClusterState, wid: WorkloadId) -> bool:
    """Rule 18: `max_blast` binds no longer once it alone has blocked the workload for `blast_patience`."""
    since = state.blast_blocked.get(wid)
    return since is not None and state.now - since >= state.policy.blast_patience_ms


def _let_go(state: ClusterState, settled: Settled, preemptable_gpus: int) -> list[BudgetId]:
    """The leaves that the breaker holds back no longer (rule 29)."""
    found = [leaf for leaf, gpus in settled.braked.items() if gpus <= preemptable_gpus or state.allowed]
    for leaf in found:
        del settled.braked[leaf]
    return found


def _revived(state: ClusterState, kinds: dict[Signature, None], hosts: Iterable[HostName]) -> dict[Signature, None]:
    """Those that one of the hosts could help, taken out of `kinds`."""
    found = {kind: None for kind in kinds if any(_could(state, name, kind) for name in hosts)}
    for kind in found:
        del kinds[kind]
    return found


def _could(state: ClusterState, name: HostName, kind: Signature) -> bool:
    """Could the host help it, without anybody with a guarantee leaving?"""
    book, host = state.index.book, state.hosts[name].host
    easy = book.free[name] | book.leaving.get(name, 0)
    if state.index.running_unallocated:
        easy |= book.soft.get(name, 0)
    enough = (easy & book.open[name]).bit_count() >= kind.least(host.gpus)
    return enough and matches(host, kind.needs)


def _must_read(state: ClusterState, standings: Standings) -> bool:
    read_at = state.standings_read_at
    if read_at is None or state.now - read_at >= turn_ms(state.policy):
        return True
    return state.index.news.moved * TURN >= standings.in_service


def _turned(settled: Settled, pool: Pool, leaf: BudgetId) -> bool:
    """Has the leaf's head rights that it did not have when it failed?"""
    blocked = settled.blocked.get(leaf)
    if blocked is None or blocked.rights is None or blocked.head is None:
        return False
    record = pool.state.workloads.get(blocked.head[2])
    return record is not None and not Rights(pool, record.workload).within(blocked.rights)


def _exposed(state: ClusterState, hosts: Iterable[HostName]) -> dict[RunId, None]:
    """Allocated runs that somebody might preempt now and not before: new ones, and those where more came free."""
    interruptible, runs = state.index.interruptible, state.runs
    found = {run: None for run in state.index.news.runs if run in runs and runs[run].stop is None}
    for name in hosts:
        for run_id in state.hosts[name].runs:
            if run_id in interruptible.get(runs[run_id].budget, ()):
                found[run_id] = None
    return found


def _claimants(
    pool: Pool, settled: Settled, exposed: Iterable[RunId], hosts: Iterable[HostName]
) -> dict[BudgetId, None]:
    """Blocked leaves whose head may have a right to one of these runs, and may find enough on one of the hosts.

    Whose rights once covered such a run looks too: else it would not know of the run when it gets them back.
    """
    state = pool.state
    leaves = dict.fromkeys(state.runs[run].budget for run in exposed)
    if not leaves:
        return {}
    most = max(state.index.book.reach.get(name, 0) for name in hosts)
    smallest = min(state.hosts[name].host.gpus for name in hosts)
    able = {
        leaf: rights
        for leaf, (_, kind, rights) in settled.blocked.items()
        if kind is not None and kind.least(smallest) <= most
    }
    if not able:
        return {}
    found = {claimant: None for leaf in leaves for claimant in _better(pool.standings, leaf) if claimant in able}
    branches = {budget: None for leaf in leaves for budget in state.budgets.chains[leaf]}.keys()
    return found | {leaf: None for leaf, had in able.items() if had is None or not branches.isdisjoint(had)}


def _better(standings: Standings, leaf: BudgetId) -> Iterator[BudgetId]:
    """The leaf itself (rule 17 c), and all that may stand better than it by the margin (rule 17 b)."""
    tree, margin = standings.tree, standings.state.policy.preemption_margin_ppm
    yield leaf
    for branch in tree.chains[leaf]:
        key = standings.key(branch)
        for sibling in standings.ranked(tree.by_id[branch].parent):
            if not stands_better(standings.key(sibling), key, margin):
                break  # nor does any further on
            yield from tree.leaves_below[sibling]
