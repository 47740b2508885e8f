"""`drain --wait` says what it waits for, and ends when the host itself says that nothing is left."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.live.commands import OPSCONSOLE
from tests.live.trio import Trio

pytestmark = pytest.mark.sshd


def test_processes_of_others_are_named_while_a_drain_waits_for_them(trio: Trio) -> None:
    gpus = trio.inventory.parent / "gpu1" / "gpus.json"
    table = json.loads(gpus.read_text())
    table["gpus"][0]["foreign"] = [{"pid": 4242, "user": "maria", "name": "python", "gpu_memory_bytes": 1 << 30}]
    gpus.write_text(json.dumps(table))
    trio.until(lambda: "python (pid 4242 of maria)" in str(trio.json("hosts")), "the process to be seen")
    words = (*OPSCONSOLE, "drain", "gpu1", "--reason", "fan change", "--yes", "--wait")
    said = trio.inventory.with_name("said")
    with said.open("w") as out:
        waiting = subprocess.Popen(words, env=trio.environment(), stdout=out, stderr=subprocess.STDOUT)
    who = "processes of others are on 1 GPU: python (pid 4242 of maria)"
    told = f"gpu1: 0 runs left; nobody can say when it is empty: {who}\n"
    trio.until(lambda: told in said.read_text(), "what it waits for")
    assert waiting.poll() is None
    gpus.write_text(json.dumps({**table, "gpus": [{**gpu, "foreign": []} for gpu in table["gpus"]]}))
    assert waiting.wait(20) == 0
    assert said.read_text().endswith("drain: gpu1: drained\n")
