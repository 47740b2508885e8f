"""What a pass has to look at: whatever events since the last one, or time, could have helped (module settled)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Sequence
from dataclasses import dataclass, field

from scheduler_core.fairshare import Standings
from scheduler_core.ids import BudgetId, HostName, WorkloadId
from scheduler_core.policy import Policy
from scheduler_core.prospects import Claimant, Prospects
from scheduler_core.settled import Blocked, Settled, Signature, Spans
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
    reads_standings: bool
    helped: dict[BudgetId, Signature] = field(default_factory=dict)  # of them, those that look because of hosts alone
    turned: dict[BudgetId, None] = field(default_factory=dict)  # of them, whose head has new rights: it looks anywhere
    rest: dict[BudgetId, None] = field(default_factory=dict)  # leaves where something of a revived signature waits
    revived: dict[Signature, None] = field(default_factory=dict)  # of which something may start again, on the hosts
    anywhere: dict[Signature, None] = field(default_factory=dict)  # of them, those that look at all hosts
    hosts: dict[HostName, None] = field(default_factory=dict)  # where more is to be had than at the last pass


def agenda(state: ClusterState, settled: Settled, pool: Pool, prospects: Prospects, preemptable_gpus: int) -> Agenda:
    """Takes from `settled` what holds no longer."""
    index, news = state.index, state.index.news
    if settled.fresh or news.everything:
        settled.clear()
        return Agenda(dict.fromkeys(index.queues), reads_standings=True)
    hosts = _changed(state)
    spans = _revived(prospects, settled.dead, hosts)
    _revived(prospects, settled.unfit, hosts)
    reads = _must_read(state, pool.standings)
    turned = {leaf: None for leaf in (settled.blocked if reads else news.relieved) if _turned(settled, pool, leaf)}
    turned |= {leaf: None for leaf, wid in settled.blast.items() if patience_over(state, wid)}
    let_go = _let_go(state, settled, preemptable_gpus)
    turned |= {leaf: None for leaf, _ in let_go}
    anywhere = {kind: None for _, kind in let_go} | _in_part(spans)
    for kind in anywhere:
        settled.dead.pop(kind, None)
    revived = dict.fromkeys(spans) | anywhere
    heads = {leaf: None for leaf in (*settled.open, *news.leaves, *turned) if leaf in index.queues}
    settled.open.clear()
    helped = _helped(settled, prospects, hosts, heads)
    heads |= dict.fromkeys(helped)
    rest = _where_any_waits(state, revived)
    return Agenda(heads, reads, helped, turned, rest, revived, anywhere, hosts)


def widen(
    todo: Agenda,
    settled: Settled,
    prospects: Prospects,
    hosts: dict[HostName, None],
    turn_comes: Callable[[BudgetId], bool],
) -> dict[BudgetId, None]:
    """A claim's victims leave more on these hosts than it needs: the leaves that may use it, if their turn still comes.

    They are added to what is to do.
    """
    todo.hosts |= hosts
    left = [name for name in hosts if prospects.easy(name)]
    spans = _revived(prospects, settled.dead, left)
    revived = dict.fromkeys(spans)
    rest = {leaf: None for leaf in _where_any_waits(prospects.state, revived) if turn_comes(leaf)}
    helped = {leaf: kind for leaf, kind in _helped(settled, prospects, left, todo.heads).items() if turn_comes(leaf)}
    todo.revived |= revived
    todo.anywhere |= _in_part(spans)
    todo.rest |= rest
    todo.helped |= helped
    todo.heads |= dict.fromkeys(helped) | {leaf: None for leaf in rest if leaf in settled.open}
    return rest | dict.fromkeys(helped)


def _where_any_waits(state: ClusterState, kinds: dict[Signature, None]) -> dict[BudgetId, None]:
    """The leaves in which something of these kinds waits."""
    alive = kinds.keys()
    queues = state.index.queues.items() if kinds else ()
    return {leaf: None for leaf, queue in queues if not alive.isdisjoint(queue.by_signature)}


def _changed(state: ClusterState) -> dict[HostName, None]:
    """Hosts where more is to be had than at the last pass: free, or held by runs past their protection."""
    news, runs = state.index.news, state.runs
    hosts = {name: None for name in news.hosts if name in state.hosts}
    for run_id in news.runs:
        if (run := runs.get(run_id)) is not None and run.stop is None:
            hosts |= dict.fromkeys(run.members)
    return hosts


def patience_over(state: ClusterState, wid: WorkloadId) -> bool:
    """Rule 18: `max_blast` binds no longer once it alone has blocked the workload for `blast_patience`."""
    since = state.blast_blocked.get(wid)
    return since is not None and state.now - since >= state.policy.blast_patience_ms


def _let_go(state: ClusterState, settled: Settled, preemptable_gpus: int) -> list[tuple[BudgetId, Signature]]:
    """What the breaker holds back no longer (rule 29)."""
    found = [key for key, gpus in settled.braked.items() if gpus <= preemptable_gpus or state.allowed]
    for key in found:
        del settled.braked[key]
    return found


def _revived(prospects: Prospects, kinds: Spans, hosts: Iterable[HostName]) -> Spans:
    """Those that one of the hosts could help, taken out of `kinds`."""
    found = {kind: span for kind, span in kinds.items() if any(_could(prospects, name, kind) for name in hosts)}
    for kind in found:
        del kinds[kind]
    return found


def _in_part(spans: Spans) -> dict[Signature, None]:
    """Of which only those that hold what they get for long were found impossible: shorter ones look at all hosts."""
    return {kind: None for kind, span in spans.items() if span}


def _could(prospects: Prospects, name: HostName, kind: Signature) -> bool:
    """Could the host help it, without anybody with a guarantee leaving?"""
    host = prospects.state.hosts[name].host
    return prospects.easy(name).bit_count() >= kind.least(host.gpus) and matches(host, kind.needs)


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


def _helped(
    settled: Settled, prospects: Prospects, hosts: Collection[HostName], heads: Container[BudgetId]
) -> dict[BudgetId, Signature]:
    """Blocked leaves, others than `heads`, for whose first one of the hosts may be of help, with the kind of that.

    Counted are the runs to which it had a right when it failed: what it has gained since, it learns when standings are
    read; and with what it has lost since, it looks, so that it hears of them when it gets it back.
    """
    found: dict[BudgetId, Signature] = {}
    for kind, leaves in settled.by_kind.items():
        if leaves and (able := [name for name in hosts if prospects.reaches(name, kind)]):
            for leaf in leaves:
                if leaf not in heads and _may_help(prospects, able, leaf, settled.blocked[leaf]):
                    found[leaf] = kind
    return found


def _may_help(prospects: Prospects, able: Sequence[HostName], leaf: BudgetId, blocked: Blocked) -> bool:
    """Does one of these give the leaf's head enough, and are there others for the rest of it?"""
    head, kind, rights = blocked
    if head is None or kind is None or rights is None:
        return True
    closed = prospects.room.reservations.closed_to_claim(prospects.state.workloads[head[2]].workload)
    claimant = Claimant(leaf, -head[0], rights, closed)
    for name in able:
        size = prospects.state.hosts[name].host.gpus
        least, hosts = kind.least(size), kind.on_hosts(size)
        if prospects.gives(name, claimant) >= least and (hosts == 1 or prospects.has(hosts, least, claimant)):
            return True
    return False
