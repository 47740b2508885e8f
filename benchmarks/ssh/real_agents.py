"""The real hostkit on 8 hosts of the demo, 8 simulated GPUs each; the client is a leader with default settings.

The first contact places the zipapp; the second finds it. The agents' goals: 1 % of a core and 30 MB on a host.

python -m benchmarks.ssh.real_agents [HOSTS]
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from benchmarks.figures import say
from benchmarks.ssh.leading import SETTLE_S, Spent, lead, place_of
from opsconsole.cli.wiring import Place
from opsconsole.demo.cluster import DemoCluster
from opsconsole.demo.hosts import marked_processes

HOSTS = 8
STREAM_S = 30.0
TICKS = os.sysconf("SC_CLK_TCK")


def agents(root: Path) -> list[int]:
    """Agents and their workers, by pid."""
    return [pid for pid in marked_processes(root) if b"hostkit" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def cpu_s(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def proportional_mb(pid: int) -> float:
    """Memory with what is shared counted in parts."""
    return int(Path(f"/proc/{pid}/smaps_rollup").read_text().partition("Pss:")[2].split()[0]) / 1024


async def watch_agents(root: Path, hosts: int) -> tuple[float, float]:
    """Percent of a core and MB, per host, while a leader listens."""
    await asyncio.sleep(2 * SETTLE_S)
    pids = agents(root)
    before = sum(map(cpu_s, pids))
    await asyncio.sleep(STREAM_S / 2)
    share = 100 * (sum(map(cpu_s, pids)) - before) / (STREAM_S / 2)
    return share / hosts, sum(map(proportional_mb, pids)) / hosts


async def measure(place: Place, root: Path) -> tuple[Spent, Spent, Spent, tuple[float, float]]:
    first, _ = await lead(place, 0.0)
    watching = asyncio.create_task(watch_agents(root, len(place.cluster.hosts)))
    again, streaming = await lead(place, STREAM_S)
    return first, again, streaming, await watching


async def main(hosts: int) -> None:
    cluster = DemoCluster(hosts)
    await cluster.start()
    try:
        text = cluster.inventory.read_text()
        cluster.inventory.write_text(text.replace("  probe_interval: 1s\n", ""))
        first, again, streaming, (share, memory) = await measure(place_of(cluster.inventory), cluster.root)
    finally:
        await cluster.stop()
    say(f"{hosts} hosts with the real agent: first contact, until read", first.wall_s, "s", 3)
    say(f"{hosts} hosts with the real agent: again, until read", again.wall_s, "s", 3)
    say(f"{hosts} hosts with the real agent: the leader's CPU", streaming.percent, "% of a core", 5)
    say("the agent on a host, 8 GPUs, a reading every 2 s: CPU", share, "% of a core", 1)
    say("the agent on a host: memory, agent and worker", memory, "MB", 30)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else HOSTS))
