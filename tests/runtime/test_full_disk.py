"""A leader whose disk is really full stops acting, says so, loses nothing, and goes on when there is room (G6-15)."""

from __future__ import annotations

from pathlib import Path

import pytest

from opsconsole.errors import StoreUnavailable
from tests.disks import fill_up
from tests.runtime.rig import Rig, ended, job, problems, started, until


class RigOnDisk(Rig):
    """The store lies on the small disk, the truth of the hosts beside it."""

    @property
    def store_path(self) -> Path:
        return self.path / "disk" / "c.db"


async def test_a_full_disk(tmp_path: Path, small_disk: Path) -> None:
    rig = RigOnDisk(tmp_path)
    async with rig.leading() as runtime:
        await runtime.ask(job("w", 1.0))
        await until(lambda: started(runtime, "w"), "it")
        ballast = fill_up(small_disk)
        await until(lambda: "nothing is done" in runtime.alarms.get("store", ""), "its end to find no room")
        await until(lambda: "runs out" in runtime.alarms.get("lease", ""), "the lease to be in doubt")
        with pytest.raises(StoreUnavailable, match="cannot be written") as refused:
            for _ in range(100):  # the last page of the log may have room for some
                runtime.store.ask(job("late", 0.1))
        assert refused.value.advice in ("free some space on its disk", "look at the disk: dmesg, df")
        assert not ended(runtime, "w"), "what is not in the journal has not happened"
        ballast.unlink()
        await until(lambda: ended(runtime, "w"), "its end to be written")
        await until(lambda: not {"store", "lease"} & runtime.alarms.keys(), "the alarms to be over")
        await runtime.ask(job("next", 0.1))
        await until(lambda: ended(runtime, "next") and not runtime.state.runs, "life to go on")
    assert not problems(rig, runtime, ("w", "next"))
