"""What a user has: the command line, pointed at one inventory. And what a test has: the journal, read from outside."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opsconsole.cli.wiring import Place
from opsconsole.config.inventory import read_inventory
from opsconsole.errors import StoreError
from opsconsole.runtime import Runtime
from opsconsole.store.store import Event
from scheduler_core.fleet import Reach

PATIENCE_S = 60.0
OPSCONSOLE = (sys.executable, "-m", "opsconsole")


@dataclass
class CommandLine:
    """`opsconsole` with $OPSCONSOLE_INVENTORY set."""

    inventory: Path

    @property
    def place(self) -> Place:
        inventory = read_inventory(str(self.inventory))
        return Place(inventory, inventory.cluster(None))

    def environment(self) -> dict[str, str]:
        return {**os.environ, "OPSCONSOLE_INVENTORY": str(self.inventory)}

    def run(self, *words: str, status: int = 0) -> str:
        """One command, as a user types it."""
        done = subprocess.run([*OPSCONSOLE, *words], env=self.environment(), capture_output=True, text=True, timeout=60)
        assert done.returncode == status, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done.stdout if status == 0 else done.stdout + done.stderr

    def json(self, *words: str) -> Any:
        return json.loads(self.run(*words, "--json"))

    def serve(self, *words: str) -> subprocess.Popen[str]:
        """A headless leader, as a process of its own. What it says is kept beside the inventory."""
        with self.inventory.with_name("serve.log").open("a") as log:
            return subprocess.Popen(
                [*OPSCONSOLE, "serve", "--yes", *words],
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
            )

    def until(self, true: Callable[[], Any], what: str, patience_s: float = PATIENCE_S) -> Any:
        """Waits for something that the command line shows."""
        end = time.monotonic() + patience_s
        while True:
            with contextlib.suppress(AssertionError, StoreError):
                if found := true():
                    return found
            assert time.monotonic() < end, f"waited {patience_s} s for {what}"
            time.sleep(0.1)

    def until_all_answer(self) -> None:
        """Until somebody leads and has read all hosts. The journal tells: a command takes long to start."""
        follower = self.until(self.place.follower, "a store")
        try:
            self.until(lambda: _all_answer(follower), "all hosts to answer")
        finally:
            follower.store.close()

    def events(self) -> list[Event]:
        store = self.place.open_store(read_only=True)
        try:
            return store.tail(0)
        finally:
            store.close()


def _all_answer(follower: Runtime) -> bool:
    follower.follow()
    hosts = follower.state.hosts.values()
    return follower.store.lease().live and bool(hosts) and all(host.reach is Reach.FRESH for host in hosts)
