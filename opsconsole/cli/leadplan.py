"""What leading would do at once, in words: shown before a leader acts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from opsconsole.cli.kept import led_by
from opsconsole.cli.reloading import pending
from opsconsole.cli.wiring import Place
from opsconsole.presenting.hosts import failures
from opsconsole.presenting.sentences import sentence
from opsconsole.presenting.text import clean, count, few
from opsconsole.presenting.view import ClusterView
from opsconsole.runtime import Runtime
from opsconsole.site import INVENTORY
from scheduler_core.decisions import PassDone
from scheduler_core.fleet import Reach
from scheduler_core.ids import HostName
from scheduler_core.state import HostRecord

if TYPE_CHECKING:
    from opsconsole.leader import LeadPlan

NAMED = 8  # hosts of one reason


def lead_sentences(plan: LeadPlan, view: ClusterView) -> list[str]:
    """Hosts that are not all there and why, then what would happen. `view` is of the state before."""
    hosts = plan.state.hosts
    away = {name: record for name, record in hosts.items() if record.reach is not Reach.FRESH}
    answered = f"{len(hosts) - len(away)} of {count(len(hosts), 'host')} can be used"
    lines = [f"{answered}; {count(plan.live_runs, 'live run')}.", *_away(plan, away)]
    lines += [f"{host} is lost with runs: its fence command powers it off." for host in plan.fenced]
    lines += [words for host in hosts if host not in away and (words := _lacks(hosts[host], view))]
    done = [f"At once: {sentence(d)}" for d in plan.decisions if not isinstance(d, PassDone)]
    return lines + (done or ["At once: nothing."])


def _away(plan: LeadPlan, away: dict[HostName, HostRecord]) -> Iterator[str]:
    """Hosts that cannot be used, together where they have one reason."""
    by_why: dict[str, list[HostName]] = {}
    for name, record in away.items():
        if name not in plan.fenced:
            by_why.setdefault(clean(record.unreachable_why).rstrip(".") or "no answer yet", []).append(name)
    for why, names in by_why.items():
        runs = any(away[name].runs for name in names)
        yield f"{_named(names)}: {why}{'; what runs there is left alone' if runs else ''}."


def _lacks(record: HostRecord, view: ClusterView) -> str:
    """GPUs that nothing can be placed on."""
    host, unfit, foreign = record.host, record.unfit.bit_count(), record.foreign.bit_count()
    found = [f"{unfit} of its {count(host.gpus, 'GPU')} cannot be used"] if unfit else []
    found += [f"processes of others are on {foreign}"] if foreign else []
    found += failures(view, record)[:1] if unfit else []
    return f"{host.name}: {', '.join(found)}." if found else ""


def _named(names: Sequence[str]) -> str:
    return few(names, NAMED)


def changed_since(place: Place, runtime: Runtime) -> list[str]:
    """What the inventory changes against the one that was led by last."""
    old = led_by(runtime.store.get(INVENTORY))
    found = None if old is None else pending(place.cluster.name, runtime.state, old, place.inventory)
    if found is None:
        return []
    return [f"Inventory: {change}" for change in found.changes]
