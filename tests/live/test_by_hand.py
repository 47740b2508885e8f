"""Weights, priorities, moves, usage, and holds for a while, from the command line under a real leader."""

from __future__ import annotations

from typing import Any

from tests.live.clusters import Live, live_cluster
from tests.live.test_reload import edited, serving

BY = ("--yes", "--reason", "a deadline", "--ticket", "OPS-7")


def weight(live: Live, path: str) -> float:
    return next(float(row["weight"]) for row in live.json("budgets") if row["budget"] == path)


def told(live: Live) -> list[str]:
    return [what for line in live.run("events", "--since", "10m").splitlines() for what in [line.split("  ", 2)[2]]]


def waiting(live: Live) -> dict[str, Any]:
    return {row["workload"]: row for row in live.json("queue")}


async def test_a_weight_by_hand_outlives_the_leader_and_the_file_has_the_last_word() -> None:
    async with live_cluster(1) as live:
        with serving(live):
            live.until_all_answer()
            assert "vision: its weight is 2 already" in live.run("weight", "vision", "--to", "2", *BY, status=2)
            assert "'two' will not do" in live.run("weight", "vision", "--to", "two", *BY, status=2)
            assert live.json("weight", "vision", "--to", "5", *BY)["outcome"] == "requested"
            assert weight(live, "vision") == 5
            assert "weight of vision set to 5 by" in " ".join(told(live)) and "a deadline [OPS-7]" in told(live)[-1]
        with serving(live):
            live.until_all_answer()
            assert weight(live, "vision") == 5
            edited(live.inventory, "{name: vision, weight: 2}", "{name: vision, weight: 4}")
            effect = live.json("reload", "--dry-run")["effect"]
            assert effect[1].startswith("weight 5 of vision by hand ends")
            live.run("reload", "--yes", "--reason", "as in the file")
            assert weight(live, "vision") == 4


async def test_work_is_moved_ordered_and_held_for_a_while() -> None:
    async with live_cluster(1) as live:
        with serving(live):
            live.until_all_answer()
            first = live.submit("--gpus", "8", "--min-runtime", "2m", "--", "sleep", "300")
            live.until(lambda: live.json("runs"), "the run")
            one, two = (live.submit("--gpus", "8", "--min-runtime", "1m", "--", "sleep", "1") for _ in range(2))
            assert [*waiting(live)] == [one, two]
            assert live.json("priority", two, "--to", "5", *BY)["outcome"] == "requested"
            assert [*waiting(live)] == [two, one]
            live.run("move", one, two, "--to", "olmo/eval", *BY)
            assert {row["budget"] for row in waiting(live).values()} == {"olmo/eval"}
            assert live.json("hold", one, two, "--for", "15s", "--wait", *BY)["outcome"] == "held"
            assert {row["reason"] for row in waiting(live).values()} == {"held"}
            live.until(lambda: "held" not in {row["reason"] for row in waiting(live).values()}, "the holds to end")
            assert sum("released by timer: the time of this hold is over" in what for what in told(live)) == 2
            assert live.json("forget", "vision", *BY)["targets"] == ["vision"]
            got = next(row["got_gpu_h"] for row in live.json("budgets") if row["budget"] == "vision")
            assert got < 0.02, "since then"
            late = live.run("cancel", first, "nosuch", *BY, status=2)
            assert "no workload 'nosuch'" in late and live.json("runs"), "nothing was done"
            assert live.json("cancel", first, "--wait", *BY)["outcome"] == "ended"
