"""SIGKILL to a whole tree, looking again until nothing of it is left."""

from __future__ import annotations

import signal

from . import proc, tree

POLL_S = 0.1
POLL_MAX_S = 5.0
STUCK = "cannot be killed"


class Killing:
    """`poll_s`: how soon to look again."""

    def __init__(self) -> None:
        self.killed: set[proc.Identity] = set()
        self.poll_s = POLL_S

    def kill(self, members: set[int], processes: proc.Scan) -> str | None:
        """Once to each process; those that do not die of it are named."""
        stuck = []
        for pid in members:
            identity = processes[pid].identity
            if identity not in self.killed:
                self.killed.add(identity)
                self.poll_s = POLL_S
                tree.send(identity, signal.SIGKILL)
            elif processes[pid].state == "D":
                stuck.append(pid)
        self.poll_s = min(POLL_MAX_S, self.poll_s * 1.5)
        return f"{STUCK}: process {', '.join(map(str, sorted(stuck)))} waits for a device" if stuck else None
