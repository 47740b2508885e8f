"""What is open at the end of a shift, and whose it is: from the state alone."""

from __future__ import annotations

from collections.abc import Iterator

from opsconsole.presenting.budgets import waiting_by_budget
from opsconsole.presenting.hosts import AWAY
from opsconsole.presenting.needs import needs
from opsconsole.presenting.shift import Entry, Shift, by_whom, who, zoned
from opsconsole.presenting.text import count, gpu_hours, span
from scheduler_core.drain import active_drains, eta, why_unknown
from scheduler_core.fairshare import Standings
from scheduler_core.fleet import HostState
from scheduler_core.state import HostRecord
from scheduler_core.units import GPU_HOUR

FAR_BELOW, FAR_ABOVE = 0.75, 1.25  # of its share: what is beyond needs an eye on it


def needs_entries(shift: Shift) -> Iterator[Entry]:
    for need in needs(shift.view):
        since = None if need.since_ms is None else shift.view.wall_ms - need.since_ms
        data = {"why": need.why, "todo": need.todo}
        yield Entry(need.about or need.what, f"{need.why}. To do: {need.todo}.", since, data)


def drains_open(shift: Shift) -> Iterator[Entry]:
    view, state = shift.view, shift.state
    for drain in active_drains(state):
        record, at = state.hosts.get(drain.host), eta(state, drain) if drain.host in state.hosts else None
        runs = list(record.runs) if record is not None else []
        until = f"empty by {zoned(view.wall(at))}" if at is not None else f"blocked: {why_unknown(state, drain)}"
        said = f"mode {drain.mode}, {count(len(runs), 'run')} left, {until}. Asked for by {by_whom(drain.by)}"
        data = {
            "drain": drain.id,
            "mode": drain.mode,
            "runs": runs,
            "empty_by_ms": None if at is None else view.wall(at),
            "why_unknown": "" if at is not None else why_unknown(state, drain),
        }
        yield Entry(drain.host, said, view.wall(drain.requested_at), data | who(drain.by))


def hosts_out(shift: Shift) -> Iterator[Entry]:
    """Out of service by somebody's word or the machine's, or not to be reached. Those that drain stand above."""
    for name, record in sorted(shift.state.hosts.items()):
        words = [text for text, _ in _out(record)]
        if words and record.state is not HostState.DRAINING:
            since = max(at for _, at in _out(record))
            data = {
                "state": record.state.value,
                "reach": record.reach.value,
                "why": record.unreachable_why,
                "runs": list(record.runs),
            }
            yield Entry(name, "; ".join(words), shift.view.wall(since), data | who(record.by))


def _out(record: HostRecord) -> Iterator[tuple[str, int]]:
    """In words, with the instant since when."""
    if record.state is not HostState.SERVING:
        yield f"{record.state.value.replace('_', ' ')} by {by_whom(record.by)}", record.since
    if record.reach in AWAY:
        why = f" ({record.unreachable_why})" if record.unreachable_why else ""
        runs = f", {count(len(record.runs), 'run')} unverified" if record.runs else ""
        since = record.unreachable_since if record.unreachable_since is not None else record.reach_since
        yield f"{record.reach.value.replace('_', ' ')}{why}{runs}", since


def budgets_off(shift: Shift) -> Iterator[Entry]:
    state = shift.state
    state.index.expire(state.now)
    standings, (wanted, _) = Standings(state), waiting_by_budget(state)
    for budget, path in state.budgets.paths.items():
        balance = standings.balance(budget)
        below = balance is not None and balance <= FAR_BELOW and wanted[budget] > 0
        if balance is None or not (below or balance >= FAR_ABOVE):
            continue
        owed, got = int(standings.entitlement(budget)), standings.usage(budget)
        waits = f" while {count(wanted[budget], 'GPU')} of it wait" if wanted[budget] else ""
        said = f"got {float(balance):.2f} of its share in {span(standings.lookback)}: "
        said += f"{gpu_hours(got)} of {gpu_hours(owed)} GPU-h{waits}"
        data = {
            "balance": float(balance),
            "got_gpu_h": round(got / GPU_HOUR, 3),
            "owed_gpu_h": round(owed / GPU_HOUR, 3),
            "waiting_gpus": wanted[budget],
        }
        yield Entry(path, said, None, data)
