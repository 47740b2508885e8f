"""Two stores want the same hosts: the second sees whose they are, and takes them over only when somebody says so."""

from __future__ import annotations

from tests.live.clusters import Live, live_cluster
from tests.live.test_reload import edited, serving
from tests.terminal import on_terminal


async def test_hosts_of_another_store_are_shown_as_such_and_taken_over_when_confirmed() -> None:
    async with live_cluster(2) as live:
        with serving(live):
            live.until_all_answer()
            wid = live.submit("--gpus", "8", "--", "sleep", "600")
            live.until(lambda: live.json("runs")[0]["ran_s"] is not None, "the run")
            (host,) = live.json("runs")[0]["hosts"]
        edited(live.cluster.inventory, "/console\n", "/console2\n")
        plan = live.run("serve", "--dry-run")
        assert "0 of 2 hosts can be used" in plan and "gpu01, gpu02: other store: it belongs to store" in plan
        with serving(live):
            live.until(lambda: all("it belongs to store" in h["why"] for h in live.json("hosts")), "whose they are")
            _adopt(live, host, wid)
        with serving(live):
            live.until_all_answer()
            (row,) = [h for h in live.json("hosts") if h["host"] == host]
            assert row["free"] == 0, "what runs there for the older store keeps its GPUs"
        assert live.run("adopt", "--reason", "x", "--yes").strip().endswith("no host belongs to another store")


def _adopt(live: Live, host: str, wid: str) -> None:
    assert not any(h["reach"] in ("fresh", "stale") for h in live.json("hosts"))
    assert "opsconsole adopt HOST" in live.run("check", "--connect", status=1)
    plan = live.json("adopt", "--reason", "head node died", "--dry-run")
    assert plan["targets"] == ["gpu01", "gpu02"]
    assert "not confirmed" in live.run("adopt", "--reason", "x", status=2)
    with on_terminal(live, "adopt", "--reason", "x") as terminal:
        terminal.until("Type 2 to adopt gpu01, gpu02: ")
        terminal.type("\x03")
        assert terminal.ended() == 130
    assert terminal.said.endswith("opsconsole: not confirmed; nothing was done\n")
    assert f"{wid}~1" in live.run("adopt", host, "--reason", "x", "--dry-run")
    assert live.json("adopt", "--reason", "head node died", "--yes")["outcome"] == "adopted"
