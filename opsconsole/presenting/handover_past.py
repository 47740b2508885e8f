"""What happened in a shift, from the journal: it knows more and longer than the state does."""

from __future__ import annotations

from collections.abc import Iterator

from opsconsole.presenting.sentences import sentence
from opsconsole.presenting.shift import Entry, Shift, by_whom, of_whom, who, zoned
from opsconsole.presenting.view import Happening
from scheduler_core import decisions as d
from scheduler_core import observations as o
from scheduler_core.fleet import HostState
from scheduler_core.ids import BudgetId, HostName
from scheduler_core.units import GPU_HOUR, WEIGHT

KINDS = (
    o.WorkloadSubmitted,
    o.DrainRequested,
    o.UndrainRequested,
    o.HostDeclared,
    o.WeightChanged,
    o.UsageForgotten,
    o.RequestRefused,
    o.ClockStepped,
    o.HostUnreachable,
    o.MemberExited,
    o.MemberNeverStarted,
    o.BreakerReset,
    d.Placed,
    d.StopDecided,
    d.HostMoved,
    d.HostLost,
    d.MemberLeaked,
    d.BreakerTripped,
)


def drains_ended(shift: Shift) -> Iterator[Entry]:
    """By the journal: the state knows them for a day only."""
    asked: dict[str, tuple[int, o.By]] = {}
    for drain in shift.state.drains.values():
        if (at := shift.view.wall(drain.requested_at)) < shift.since_ms:
            asked[drain.host] = at, drain.by
    for happening in shift.happenings:
        match happening.event:
            case o.DrainRequested(host=host, by=by):
                asked[host] = happening.wall_ms, by
            case d.HostMoved(host=host, to=HostState.DRAINING, reason=reason):
                asked[host] = happening.wall_ms, o.By("opsconsole", reason)
            case d.HostMoved(host=host, to=HostState.DRAINED):
                yield _drain_ended(happening, host, "drained", asked.pop(host, None))
            case o.UndrainRequested(host=host, by=by) if host in asked:
                yield _drain_ended(happening, host, f"taken back by {by_whom(by)}", asked.pop(host))


def _drain_ended(happening: Happening, host: str, how: str, asked: tuple[int, o.By] | None) -> Entry:
    at, by = asked if asked is not None else (None, None)
    before = f"{zoned(at)} by {by_whom(by)}" if at is not None else "before what the journal still tells"
    return Entry(host, f"{how}; asked for {before}", happening.wall_ms, {"how": how, "asked_ms": at} | who(by))


def hosts_lost(shift: Shift) -> Iterator[Entry]:
    """A line for each host, however often it went away."""
    away: dict[HostName, list[tuple[Happening, str]]] = {}
    for happening, event in shift.of(o.HostUnreachable):
        away.setdefault(event.host, []).append((happening, event.why))
    lost = {event.host: happening for happening, event in shift.of(d.HostLost)}
    for host in sorted({*away, *lost}):
        times = away.get(host, [])
        said = [f"unreachable {len(times)} times, last because: {times[-1][1]}"] if times else []
        said = [f"unreachable: {times[0][1]}"] if len(times) == 1 else said
        said += [f"lost at {zoned(lost[host].wall_ms)}"] if host in lost else []
        at = times[-1][0].wall_ms if times else lost[host].wall_ms
        data = {"unreachable": len(times), "why": times[-1][1] if times else "", "lost": host in lost}
        yield Entry(host, "; ".join(said), at, data)


def runs_failed(shift: Shift) -> Iterator[Entry]:
    """That ended badly before anybody told them to, a line for each run."""
    told: set[str] = set()
    for happening in shift.happenings:
        match happening.event:
            case o.MemberExited(run=run, host=host, signalled=False) as e if e.exit_code not in (None, 0) or e.signal:
                how = e.why or (f"exit status {e.exit_code}" if e.signal is None else f"killed by {e.signal}")
            case o.MemberNeverStarted(run=run, host=host, why=why):
                how = f"did not start: {why}"
            case d.StopDecided(run=run, cause=d.StopCause.START_TIMEOUT, reason=reason):
                host, how = HostName(""), reason
            case _:
                continue
        if run not in told:
            told.add(run)
            whose = shift.whose(run)
            on = f" on {host}" if host else ""
            yield Entry(run, f"{how}{on}; {of_whom(whose)}", happening.wall_ms, {**whose, "host": host, "how": how})


def preemptions(shift: Shift) -> Iterator[Entry]:
    for happening, stop in shift.of(d.StopDecided):
        if stop.cause is d.StopCause.PREEMPT:
            whose, lost = shift.whose(stop.run), stop.lost_gpu_ms / GPU_HOUR
            data = {**whose, "for": stop.for_workload, "lost_gpu_h": round(lost, 3), "reason": stop.reason}
            yield Entry(stop.run, f"{of_whom(whose)}; {stop.reason}", happening.wall_ms, data)


def overrides(shift: Shift) -> Iterator[Entry]:
    """Guarantees broken, words taken for a host's, and shares changed, by a person. To cancel one's work is none."""
    for happening in shift.happenings:
        match happening.event:
            case d.StopDecided(override=True) as e if e.cause is not d.StopCause.CANCEL:
                whose = shift.whose(e.run)
                said = f"stopped although protected, by {e.actor or 'nobody known'}: {e.reason}; {of_whom(whose)}"
                yield Entry(e.run, said, happening.wall_ms, {**whose, "by": e.actor, "reason": e.reason})
            case o.HostDeclared(host=host, what=what, by=by):
                yield Entry(host, f"declared {what} by {by_whom(by)}", happening.wall_ms, who(by))
            case o.WeightChanged(budget=budget, weight=weight, by=by):
                said = f"weight {weight / WEIGHT:g} by hand, by {by_whom(by)}"
                yield Entry(_path(shift, budget), said, happening.wall_ms, who(by))
            case o.UsageForgotten(budget=budget, by=by):
                yield Entry(_path(shift, budget), f"usage forgotten by {by_whom(by)}", happening.wall_ms, who(by))


def _path(shift: Shift, budget: BudgetId) -> str:
    return shift.state.budgets.paths.get(budget, budget)


def refused(shift: Shift) -> Iterator[Entry]:
    """What people asked for and the leader did not do."""
    for happening, event in shift.of(o.RequestRefused):
        said = f"asked for by {by_whom(event.by)}; refused: {event.why}"
        data = {"asked": event.asked, "why": event.why} | who(event.by)
        yield Entry(event.about or shift.view.cluster, said, happening.wall_ms, data)


def breaker(shift: Shift) -> Iterator[Entry]:
    for happening in shift.happenings:
        match happening.event:
            case d.BreakerTripped(what=what, reason=reason):
                yield Entry(what, f"stopped by the breaker: {reason}", happening.wall_ms, {"reason": reason})
            case o.BreakerReset(by=by):
                yield Entry("breaker", f"reset by {by_whom(by)}", happening.wall_ms, who(by))


def leaks(shift: Shift) -> Iterator[Entry]:
    for happening, event in shift.of(d.MemberLeaked):
        said = f"{event.run} still used its GPUs after SIGKILL; {of_whom(shift.whose(event.run))}"
        yield Entry(event.host, said, happening.wall_ms, {"run": event.run})


def clock(shift: Shift) -> Iterator[Entry]:
    """Without it times here would contradict each other."""
    for happening, event in shift.of(o.ClockStepped):
        yield Entry("clock", sentence(event), happening.wall_ms, {"by_ms": event.by_ms})
