"""Faults of many hosts at one time are one incident: of a switch, a rack, or the cluster. It stops automatic drains."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from opsconsole.health.verdict import Verdict
from scheduler_core.state import ClusterState

TOGETHER_S = 300.0  # from one fault to the next
MANY = 3  # hosts; fewer may be chance
PLACES = ("switch", "rack")  # labels of the inventory, the narrower first; then any other, by name


@dataclass(frozen=True, slots=True)
class Fault:
    """The worst of a host, since `ago_s`. `rule` is its id, or `silent` for a host that cannot be asked."""

    host: str
    rule: str
    ago_s: float


@dataclass(frozen=True, slots=True)
class Incident:
    """`place` is what its hosts share, as `switch=leaf3`; `cluster` where many share nothing; empty for one host."""

    faults: tuple[Fault, ...]
    place: str = ""

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(fault.host for fault in self.faults)

    @property
    def many(self) -> bool:
        """More likely one cause than many: people first (rule 29)."""
        return bool(self.place)


def faults_of(verdicts: Mapping[str, Verdict], silent: Mapping[str, float]) -> list[Fault]:
    """`silent`: since how many seconds hosts cannot be asked. One fault for each host."""
    found = {host: Fault(host, "silent", ago_s) for host, ago_s in silent.items()}
    for host, verdict in verdicts.items():
        if host not in found and (worst := verdict.worst) is not None and worst.weight.drains:
            found[host] = Fault(host, worst.rule.id, worst.first_ago_s or 0.0)
    return list(found.values())


def incidents_in(state: ClusterState, verdicts: Mapping[str, Verdict]) -> list[Incident]:
    """Hosts that cannot be asked count with those that fail."""
    silent = {
        str(name): (state.now - record.unreachable_since) / 1000
        for name, record in state.hosts.items()
        if record.unreachable_since is not None
    }
    faults = faults_of(verdicts, silent)
    if not faults:
        return []
    return incidents(faults, {str(name): dict(record.host.labels) for name, record in state.hosts.items()})


def incidents(faults: Iterable[Fault], labels: Mapping[str, Mapping[str, str]]) -> list[Incident]:
    """The newest first; those of many hosts before others of their time."""
    found: list[Incident] = []
    for near in _together(sorted(faults, key=lambda fault: (fault.ago_s, fault.host))):
        rest = near
        while (place := _place(rest, labels)) is not None:
            shared = [fault for fault in rest if _has(labels, fault.host, place)]
            found.append(Incident(tuple(shared), "=".join(place)))
            rest = [fault for fault in rest if fault not in shared]
        if len(rest) >= MANY:
            found.append(Incident(tuple(rest), "cluster"))
        else:
            found += [Incident((fault,)) for fault in rest]
    return found


def _together(faults: Sequence[Fault]) -> list[list[Fault]]:
    """Split where nothing happened for long."""
    groups: list[list[Fault]] = []
    for fault in faults:
        if groups and fault.ago_s - groups[-1][-1].ago_s <= TOGETHER_S:
            groups[-1].append(fault)
        else:
            groups.append([fault])
    return groups


def _place(faults: Sequence[Fault], labels: Mapping[str, Mapping[str, str]]) -> tuple[str, str] | None:
    """The label that most of them share: MANY at least, and not a label that hosts without a fault mostly have too."""
    held: dict[tuple[str, str], int] = defaultdict(int)
    for host_labels in labels.values():
        for item in host_labels.items():
            held[item] += 1
    shared: dict[tuple[str, str], int] = defaultdict(int)
    for fault in faults:
        for item in labels.get(fault.host, {}).items():
            shared[item] += 1
    fit = [item for item, count in shared.items() if count >= MANY and 2 * count >= held[item]]
    order = {name: n for n, name in enumerate(PLACES)}
    return min(fit, key=lambda item: (-shared[item], order.get(item[0], len(PLACES)), held[item], item), default=None)


def _has(labels: Mapping[str, Mapping[str, str]], host: str, place: tuple[str, str]) -> bool:
    return labels.get(host, {}).get(place[0]) == place[1]
