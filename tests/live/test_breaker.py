"""What the breaker holds back is seen and let go from the command line; SIGTERM goes to whom the submission says."""

from __future__ import annotations

from scheduler_core.ids import DrainId, HostName
from scheduler_core.observations import AutoDrainProposed
from tests.live.clusters import Live, live_cluster
from tests.live.test_reload import edited, serving

TREE = "trap 'echo parent' TERM; sh -c \"trap 'echo child' TERM; echo up; sleep 600 & wait\" & echo on; wait; wait"


async def test_a_drain_that_health_asks_for_waits_for_an_operator_and_then_goes_on() -> None:
    async with live_cluster(2) as live:
        edited(live.cluster.inventory, "policy:\n", "policy:\n  breaker_hosts: 0\n  breaker_hosts_fraction: 0%\n")
        with serving(live):
            live.until_all_answer()
            assert live.json("breaker", "reset", "--yes")["outcome"] == "the breaker stops nothing"
            store = live.place.open_store()
            store.ask(AutoDrainProposed(DrainId("d"), HostName("gpu01"), "XID 79"))
            store.close()
            live.until(lambda: live.json("breaker")["held_back"], "the breaker")
            assert live.json("breaker")["held_back"] == [{"kind": "host", "name": "gpu01", "would": "draining: XID 79"}]
            assert "not confirmed" in live.run("breaker", "reset", status=2)
            assert live.json("breaker", "reset", "--yes", "--reason", "seen")["outcome"] == "reset"
            live.until(lambda: live.json("hosts")[0]["state"] == "drained", "the drain")
            assert live.json("breaker")["held_back"] == []
            _stop_target(live)


def _stop_target(live: Live) -> None:
    words = ("--budget", "vision", "--gpus", "1", "--min-runtime", "1s", "--stop-target")
    wid = live.run("submit", "--yes", *words, "main", "--", "sh", "-c", TREE).strip()
    live.until(lambda: "up" in live.run("logs", wid) and "on" in live.run("logs", wid), "the run")
    live.run("cancel", wid, "--yes", "--wait")
    assert "parent" in live.run("logs", wid) and "child" not in live.run("logs", wid)
