"""What leading would do at once, in words: shown before a leader acts."""

from __future__ import annotations

from opsconsole.cli.reloading import led_by, pending
from opsconsole.cli.wiring import Place
from opsconsole.leader import LeadPlan
from opsconsole.presenting.sentences import sentence
from opsconsole.presenting.text import count
from opsconsole.runtime import Runtime
from opsconsole.site import INVENTORY
from scheduler_core.decisions import PassDone
from scheduler_core.state import HostRecord


def lead_sentences(plan: LeadPlan) -> list[str]:
    """Hosts that are not all there, then what would happen."""
    hosts = len(plan.state.hosts)
    lines = [f"{hosts - len(plan.silent)} of {count(hosts, 'host')} answered; {count(plan.live_runs, 'live run')}."]
    silent = [host for host in plan.silent if host not in plan.fenced]
    if silent:
        lines.append(f"No answer from {', '.join(silent)}: what runs there is left alone.")
    lines += [f"{host} is lost with runs: its fence command powers it off." for host in plan.fenced]
    lines += [
        words for host, record in plan.state.hosts.items() if host not in plan.silent and (words := _lacks(record))
    ]
    done = [f"At once: {sentence(d)}" for d in plan.decisions if not isinstance(d, PassDone)]
    return lines + (done or ["At once: nothing."])


def _lacks(record: HostRecord) -> str:
    """GPUs that nothing can be placed on."""
    host, unfit, foreign = record.host, record.unfit.bit_count(), record.foreign.bit_count()
    found = [f"{unfit} of its {count(host.gpus, 'GPU')} cannot be used"] if unfit else []
    found += [f"processes of others are on {foreign}"] if foreign else []
    return f"{host.name}: {', '.join(found)}." if found else ""


def changed_since(place: Place, runtime: Runtime) -> list[str]:
    """What the inventory changes against the one that was led by last."""
    old = led_by(runtime.store.get(INVENTORY))
    found = None if old is None else pending(place.cluster.name, runtime.state, old, place.inventory)
    if found is None:
        return []
    return [f"Inventory: {change}" for change in found.changes]
