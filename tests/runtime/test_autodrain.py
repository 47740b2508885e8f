"""From a line of a kernel's log to a drain, through a leader that is at work; once, whoever leads next."""

from __future__ import annotations

from pathlib import Path

import pytest

import opsconsole.leader as live
from opsconsole.health.acting import Automatic
from opsconsole.runtime import Runtime
from scheduler_core.fleet import HostState
from scheduler_core.ids import HostName
from scheduler_core.observations import UndrainRequested
from tests.health.said import xid
from tests.runtime.rig import OPS, Rig, ended, job, on_disk, started, until

H1 = HostName("h1")


@pytest.fixture(autouse=True)
def looked_at_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "READINGS_S", 0.05)


def told(runtime: Runtime) -> list[str]:
    return [event.kind for event in runtime.store.tail(0) if event.kind.startswith("AutoDrain")]


async def looks(runtime: Runtime, times: int = 3) -> None:
    """Until the leader has looked at all hosts so often."""
    assert runtime.leader is not None
    book = runtime.leader.faults
    seen = [book.verdicts]

    def another() -> bool:
        if book.verdicts is not seen[-1]:
            seen.append(book.verdicts)
        return len(seen) > times

    await until(another, "more looks")


async def test_a_person_is_asked_once_whoever_leads(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    async with rig.leading() as runtime:
        rig.pool.hear("line", "h1", {"event": "kernel", "lines": [xid(79)]})
        await until(lambda: H1 in runtime.state.proposals, "health to ask")
        assert runtime.state.proposals[H1].confirm and runtime.state.hosts[H1].state is HostState.SERVING
        await looks(runtime)
        await until(lambda: on_disk(runtime), "the journal")
        assert told(runtime) == ["AutoDrainProposed"]
    async with rig.leading() as runtime:
        await looks(runtime)
        assert told(runtime) == ["AutoDrainProposed"] and H1 in runtime.state.proposals
        await runtime.ask(UndrainRequested(H1, OPS))
        await until(lambda: H1 not in runtime.state.proposals, "a person's word")
        await looks(runtime)
        assert told(runtime) == ["AutoDrainProposed"]


async def test_the_machine_drains_by_the_contract_where_it_may(tmp_path: Path) -> None:
    rig = Rig(tmp_path, auto=Automatic(fatal="drain"))
    async with rig.leading() as runtime:
        await runtime.ask(job("w", 60, gpus=4, min_s=0.5, resumable=True))
        await until(lambda: started(runtime, "w"), "it")
        (host,) = next(iter(runtime.state.runs.values())).members
        rig.pool.hear("line", host, {"event": "kernel", "lines": [xid(79)]})
        await until(lambda: runtime.state.hosts[host].state is HostState.DRAINED, "the drain")
        (drain,) = runtime.state.drains.values()
        assert drain.automatic and drain.mode == "contract" and "xid:79" in drain.by.why
        assert rig.hosts[host].protected == 0, "nobody was stopped too early"
        await until(lambda: started(runtime, "w"), "it to go on elsewhere")
        await looks(runtime)
        assert len(runtime.state.drains) == 1 and not ended(runtime, "w")
