"""One scenario, killed at a write point and led again: `python -m tests.runtime.crashlab DIR FROM TO`.

Every point has a directory, hosts and a store of its own; the leaders are forked, so that many of them can die in a
minute. Prints a line of JSON per point: where it died and what was wrong afterwards (nothing).
"""

from __future__ import annotations

import asyncio
import faulthandler
import json
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

from opsconsole.store.store import Store
from scheduler_core.ids import DrainId, HostName, WorkloadId
from scheduler_core.observations import CancelRequested, DrainRequested
from tests.crashing import dies_at
from tests.runtime.rig import OPS, Rig, ended, job, on_disk, problems, quick, record, started, until

AT_ONCE = 8
LONGEST_S = 25.0
WIDS = ("gang", "claim", "free", "gone")


async def scenario(rig: Rig) -> list[str]:
    """Leads, asks for what was not asked for yet, and stays until all has ended."""
    looker = Store(rig.store_path)
    await until(lambda: not looker.lease().live, "the dead leader's lease to run out")
    async with rig.leading() as runtime:
        for asked in (
            job("gang", 0.5, gpus=8, min_s=0.15, resumable=True),
            job("claim", 0.1, gpus=4, min_s=0.05, budget="b"),
            job("free", 0.05, gpus=1, min_s=0),
            job("gone", 60, gpus=1, min_s=30, budget="b"),
        ):
            if asked.workload.id not in runtime.state.workloads:
                await runtime.ask(asked)
            if asked.workload.id == "gang" and not record(runtime, "gang").attempts:
                await until(lambda: started(runtime, "gang") or bool(record(runtime, "gang").attempts), "the gang")
        if not runtime.state.drains:
            await runtime.ask(DrainRequested(DrainId("d"), HostName("h2"), OPS))
        await until(lambda: started(runtime, "gone") or ended(runtime, "gone"), "the long one")
        if not ended(runtime, "gone"):
            await runtime.ask(CancelRequested(WorkloadId("gone"), OPS))
        await until(lambda: all_but_gang(runtime) and on_disk(runtime), "all to end")
    return problems(rig, runtime, WIDS[1:])


def all_but_gang(runtime: object) -> bool:
    """The gang needs both hosts, one of which is drained: it waits, or has ended before."""
    return ended(runtime, *WIDS[1:])  # type: ignore[arg-type]


def lead(path: Path, stop_at: int) -> list[str]:
    """In this process, which ends at that write point."""
    quick()
    return asyncio.run(scenario(Rig(path, before_write=dies_at(stop_at))))


def forked(path: Path, stop_at: int) -> tuple[int, list[str]]:
    """Exit status and findings of a leader in a child."""
    out = path / "findings.json"
    pid = os.fork()
    if pid == 0:
        faulthandler.dump_traceback_later(LONGEST_S, exit=True)
        try:
            out.write_text(json.dumps(lead(path, stop_at)))
        except BaseException:
            out.write_text(json.dumps([traceback.format_exc()]))
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    found: list[str] = json.loads(out.read_text()) if out.exists() else []
    return os.waitstatus_to_exitcode(status), found


def point(path: Path, stop_at: int) -> dict[str, object]:
    """A leader that dies there, and one that goes on."""
    path.mkdir()
    Store(path / "c.db").close()
    died, wrong = forked(path, stop_at)
    if died == -signal.SIGKILL:
        again, wrong = forked(path, 0)
        wrong += [f"the second leader ended with {again}"] if again else []
    return {"point": stop_at, "killed": died == -signal.SIGKILL, "wrong": wrong}


def main(root: Path, points: range) -> Iterator[dict[str, object]]:
    """All of them, several at a time."""
    pids: list[int] = []
    for stop_at in points:
        if len(pids) == AT_ONCE:
            os.waitpid(pids.pop(0), 0)
        pid = os.fork()
        if pid == 0:
            result = point(root / str(stop_at), stop_at)
            (root / f"{stop_at}.json").write_text(json.dumps(result))
            os._exit(0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)
    for stop_at in points:
        yield json.loads((root / f"{stop_at}.json").read_text())


if __name__ == "__main__":
    for line in main(Path(sys.argv[1]), range(int(sys.argv[2]), int(sys.argv[3]))):
        print(json.dumps(line), flush=True)
