"""The inventory is edited under a headless leader: noticed, shown, and applied when somebody asks for it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.live.clusters import Live, live_cluster


@contextmanager
def serving(live: Live, *words: str) -> Iterator[Callable[[], str]]:
    """A headless leader; the call tells what leaders have said so far."""
    leader = live.serve(*words)
    try:
        yield live.inventory.with_name("serve.log").read_text
    finally:
        leader.terminate()
        try:
            leader.wait(20)
        except subprocess.TimeoutExpired:
            leader.kill()
            leader.wait()


def edited(path: Path, old: str, new: str) -> None:
    """As an editor does it: a new file in place of the old one."""
    text = path.read_text()
    assert old in text
    scratch = path.with_suffix(".new")
    scratch.write_text(text.replace(old, new))
    scratch.replace(path)


def outcome(live: Live, *words: str) -> str:
    return str(live.json("reload", *words)["outcome"])


async def test_who_takes_over_goes_by_what_was_applied_last() -> None:
    """Not by the file as it was when it began to stand by, nor as it is now."""
    async with live_cluster(2) as live:
        with ExitStack() as first:
            first.enter_context(serving(live))
            live.until_all_answer()
            with serving(live, "--standby") as said:
                live.until(lambda: "standing by" in said(), "the other to wait")
                edited(live.inventory, "retry_delay: 5s", "retry_delay: 7s")
                assert outcome(live, "--yes", "--reason", "slower") == "applied"
                edited(live.inventory, "retry_delay: 7s", "retry_delay: 9s")
                first.close()
                live.until(lambda: said().count("leading main") == 2, "the other to lead")
                (row,) = live.json("reload", "--dry-run")["rows"]
                assert row["what"] == "7s → 9s"
                assert outcome(live, "--yes", "--reason", "slower") == "applied"


async def test_an_edit_is_shown_and_applied_when_asked_for() -> None:
    async with live_cluster(2) as live:
        with serving(live) as said:
            _edit_and_reload(live, said)


def _edit_and_reload(live: Live, said: Callable[[], str]) -> None:
    inventory = live.cluster.inventory
    live.until_all_answer()
    wid = live.submit("--gpus", "8", "--", "sleep", "600")
    live.until(lambda: live.json("runs")[0]["ran_s"] is not None, "the run")
    (host,) = live.json("runs")[0]["hosts"]
    assert outcome(live, "--yes") == "the leader goes by this file already"

    text = inventory.read_text()
    (line,) = [line for line in text.splitlines() if f"name: {host}," in line]
    edited(inventory, line + "\n", "")
    edited(inventory, "retry_delay: 5s", "retry_delay: 7s")
    edited(inventory, "probe_interval: 1s", "probe_interval: 2s")
    live.until(lambda: f"host {host}: leaves with 8 GPUs; cordoned at once; {wid}~1 there go on" in said(), "words")
    assert "policy retry_delay: 5s → 7s" in said() and "setting ssh: changed; counts at the next start" in said()
    assert "not confirmed" in live.run("reload", status=2)
    plan = live.json("reload", "--dry-run")
    assert {row["subject"] for row in plan["rows"]} == {host, "retry_delay", "ssh"}
    assert [h["state"] for h in live.json("hosts")] == ["serving", "serving"], "an edit is no confirmed plan"

    assert outcome(live, "--yes", "--reason", "moved") == "applied"
    assert [r["run"] for r in live.json("runs")] == [f"{wid}~1"]
    states = {h["host"]: h["state"] for h in live.json("hosts")}
    assert states[host] == "cordoned" and len(states) == 2
    live.until(lambda: "inventory: over" in said(), "the notice to end")
    assert live.json("explain", wid)["lines"]
    live.run("cancel", wid, "--yes", "--wait")
    live.until(lambda: host not in {h["host"] for h in live.json("hosts")}, "its host to leave with its last run")
    assert any(e.kind == "ReloadRequested" and e.value.by.reason == "moved" for e in live.events())

    inventory.write_text(text.replace("gpus: 8", "gpus: eight"))
    live.until(lambda: "the changed inventory is wrong" in said() and "inventory.yaml:3" in said(), "the first error")
    assert "gpus" in live.run("reload", "--yes", status=2)
    inventory.write_text(text)
    assert outcome(live, "--yes") == "applied"
    live.until_all_answer()
