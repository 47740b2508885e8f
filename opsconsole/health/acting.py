"""From verdicts to drains: what is to be asked for now, beside what the cluster knows already. Nothing follows from
silence: of a host that cannot be judged nothing is asked and nothing withdrawn.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from opsconsole.health.finding import Finding
from opsconsole.health.incidents import incidents_in
from opsconsole.health.rules import OF_CODES, Severity
from opsconsole.health.verdict import Status, Verdict
from scheduler_core.ids import DrainId, HostName
from scheduler_core.observations import AutoDrainProposed, AutoDrainWithdrawn
from scheduler_core.proposals import known_causes
from scheduler_core.state import ClusterState

MODES = ("off", "propose", "drain")
MOST_EVIDENCE = 160  # characters

Asked = AutoDrainProposed | AutoDrainWithdrawn


@dataclass(frozen=True, slots=True)
class Automatic:
    """What the machine may do by itself, by severity: one of MODES. The floor: hosts that it leaves serving."""

    degraded: str = "propose"
    fatal: str = "propose"
    floor: int = 0
    floor_ppm: int = 0

    def mode(self, severity: Severity) -> str:
        return {Severity.DEGRADED: self.degraded, Severity.FATAL: self.fatal}.get(severity, "off")


def asks(
    state: ClusterState, verdicts: Mapping[str, Verdict], auto: Automatic, settled: Collection[str], now_ms: int
) -> list[Asked]:
    """One for each host of which something else stands than the cluster knows.

    `settled`: hosts that have been watched for long enough to know what ended. `now_ms`: cluster time.
    """
    shared = {host: one.place for one in incidents_in(state, verdicts) if one.many for host in one.hosts}
    found: list[Asked] = []
    for name, verdict in verdicts.items():
        host = HostName(name)
        known = known_causes(state, host)
        if host not in state.hosts or verdict.status is Status.UNKNOWN:
            continue
        standing = _standing(verdict, auto, known, name in settled)
        if standing == known:
            continue
        if not standing:
            found.append(AutoDrainWithdrawn(host, "nothing stands against it any more"))
            continue
        new = [one for one in wished(verdict, auto) if _cause(one) in standing.difference(state.heeded.get(host, ()))]
        place = shared.get(name, "")
        confirm = bool(place) or all(auto.mode(one.severity) != "drain" for one in new)
        drain = DrainId(f"health-{host}-{now_ms}")
        found.append(AutoDrainProposed(drain, host, _reason(new, place), False, tuple(sorted(standing)), confirm))
    return found


def wished(verdict: Verdict, auto: Automatic) -> list[Finding]:
    """The worst first, be they confirmed or not."""
    return [one for one in verdict.findings if one.severity.drains and auto.mode(one.severity) != "off"]


def _standing(verdict: Verdict, auto: Automatic, known: frozenset[str], settled: bool) -> frozenset[str]:
    """Those that count, and of those known before all that nobody saw end."""
    met = wished(verdict, auto)
    counts = {_cause(one) for one in met if one.confirmed}
    kept = known & {_cause(one) for one in met}
    if verdict.unknown:
        kept = known
    elif not settled:
        kept |= {cause for cause in known if cause.partition(":")[0] not in OF_CODES}
    return kept.union(counts)


def _cause(one: Finding) -> str:
    """`xid:79 0000:1b:00.0 F`. Lines of the kernel's log need no memory to be seen again, or to be gone."""
    return f"{one.rule.id} {one.pci or one.where} {one.severity.value}"


def _reason(new: Iterable[Finding], place: str) -> str:
    """The worst with its evidence, and how much more there is."""
    found = list(new)
    if not found:
        return "less stands against it than before"
    worst = found[0]
    said = worst.evidence[0].text[:MOST_EVIDENCE] if worst.evidence else ""
    where = "" if worst.where == "host" else f"{worst.where}: "
    more = f"; {len(found) - 1} more" if len(found) > 1 else ""
    shared = f"; one incident with others, {place}" if place else ""
    return f"{where}{worst.rule.id}, {worst.rule.meaning} ({worst.severity.value}): {said}{more}{shared}"
