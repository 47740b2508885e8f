"""A headless leader says what it is about to do, asks, and tells what happens; leaving it does what was said."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from pathlib import Path

from tests.live.clusters import Live, live_cluster
from tests.live.test_reload import edited, serving
from tests.terminal import on_terminal

CTRL_C, CTRL_D, CTRL_Q = "\x03", "\x04", "\x11"


async def test_it_asks_before_it_leads_and_can_be_left() -> None:
    async with live_cluster(2) as live:
        await asyncio.to_thread(_asks, live)


def _asks(live: Live) -> None:
    assert "say --yes" in live.run("serve", status=2), "nobody can be asked"
    for typed, status in ((CTRL_C, 130), (CTRL_D, 1), ("no\n", 1)):
        with on_terminal(live, "serve") as terminal:
            terminal.until("Lead this cluster? Type yes: ")
            assert "2 of 2 hosts can be used; 0 live runs.\nAt once: nothing.\n" in terminal.said
            assert str(live.inventory) in terminal.said and "main.db" in terminal.said
            terminal.type(typed)
            assert terminal.ended() == status
        assert terminal.said.endswith("opsconsole: not confirmed; nothing was done\n")
        assert "no longer leading" not in terminal.said
    assert "At once: nothing." in live.run("serve", "--dry-run")
    assert "At once: nothing." in live.run("serve", "--standby", "--dry-run"), "a preview waits for nobody"
    with on_terminal(live, "serve") as terminal:
        terminal.until("Type yes: ")
        terminal.type("yes\n")
        terminal.until("leading main, epoch ")
        assert ": 2 hosts, 0 runs" in terminal.said
        terminal.type(CTRL_C)
        assert terminal.ended() == 0
    assert "no longer leading; runs go on by themselves" in terminal.said
    edited(live.inventory, "retry_delay: 5s", "retry_delay: 6s")
    assert "Inventory: policy retry_delay: 5s → 6s" in live.run("serve", "--dry-run")


async def test_a_console_that_led_says_who_goes_on() -> None:
    async with live_cluster(1) as live:
        await asyncio.to_thread(_hands_over, live)


def _hands_over(live: Live) -> None:
    with on_terminal(live, "--lead", columns=120) as terminal:
        live.until_all_answer()
        terminal.type(CTRL_Q)
        assert terminal.ended() == 0
    found = re.search(r"leading goes on in process (\d+); its words go to (.*/serve\.log)\n", terminal.said)
    assert found is not None, terminal.said[-500:]
    try:
        live.until(lambda: "leading main, epoch 2: 1 host" in Path(found[2]).read_text(), "it to lead")
    finally:
        os.kill(int(found[1]), signal.SIGTERM)
    live.until(lambda: "no longer leading" in Path(found[2]).read_text(), "it to end")


async def test_it_tells_what_happens() -> None:
    async with live_cluster(2) as live:
        await asyncio.to_thread(_tells, live)


def _tells(live: Live) -> None:
    with serving(live) as said:
        live.until(lambda: "leading main" in said(), "it to lead")
        live.submit("--gpus", "2", "--wait", "--", "true")
        held = live.submit("--gpus", "2", "--wait", "--max-retries", "0", "--", "false", status=1) + "\n"
        assert " held\n" in held and "exit status 1 on gpu0" in held, "waiting ends where only a person goes on"
        told = ("submitted to vision: 2 GPUs", "placed on gpu0", "runs on gpu0", "ended on gpu0")
        live.until(lambda: all(words in said() for words in told), "what happened")
        with serving(live, "--standby"):
            live.until(lambda: "standing by: serve at " in said(), "the other to say whom it waits for")
    assert "planned" not in said()
    with serving(live, "--quiet") as said:
        before = said().count("submitted to")
        live.until(lambda: said().count("leading main") > 1, "the next leader")
        live.submit("--gpus", "2", "--wait", "--", "true")
        assert said().count("submitted to") == before
