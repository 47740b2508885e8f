"""After the last process: are the GPUs of the run free of it? Asked in a child, because the driver may hang.

Released means that the driver lists no process on those GPUs that this host no longer knows (a living one is somebody
else's), and that the memory in use is explained by the processes listed. What cannot be read is not released. Only
where the host has no NVIDIA device at all is there nothing to ask.
"""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from . import proc
from .files import Damaged, Record, read_json
from .state import StateDir

CHECK_TIMEOUT_S = 30.0
RELEASED, HELD = b"released", b"held"
ANSWER_BYTES = 512
UNKNOWN = "cannot tell whether its GPUs are released"
PAUSE_MAX_S = 15.0
FREE_MEMORY_MIB = 1024  # rule 26, unless the client said otherwise


class ReleaseCheck:
    """Repeated with growing pauses until the answer is yes. `error`: why the last one gave no answer, for people."""

    def __init__(self, state: StateDir, gpus: list[str]) -> None:
        self.dirs = state
        self.gpus = gpus
        self.released = not gpus
        self.error: str | None = None
        self.pid = 0
        self.pipe = -1
        self.started_at = 0.0
        self.pause = 0.2

    def done(self) -> bool:
        return self.released and not self.pid

    def busy(self) -> bool:
        return self.pid != 0

    def fds(self) -> list[int]:
        return [self.pipe] if self.pipe >= 0 else []

    def pause_s(self) -> float:
        return 0.0 if self.done() else self.pause

    def start_if_due(self) -> None:
        """At most one child, also beside one that hangs."""
        now = time.monotonic()
        if self.pid:
            if now - self.started_at > CHECK_TIMEOUT_S:
                os.kill(self.pid, signal.SIGKILL)  # our own child, not reaped yet: the pid is still its
            return
        if self.released or now - self.started_at < self.pause:
            return
        self.started_at = now
        reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            child(self.dirs, self.gpus, writing)
        os.close(writing)
        self.pipe = reading

    def reaped(self, pid: int) -> None:
        if pid != self.pid or not pid:
            return
        answer = os.read(self.pipe, ANSWER_BYTES)
        os.close(self.pipe)
        self.released = answer == RELEASED
        self.error = None if answer in (RELEASED, HELD) else why_unknown(answer)
        self.pid, self.pipe = 0, -1
        self.pause = min(PAUSE_MAX_S, self.pause * 1.5)


def child(state: StateDir, gpus: list[str], writing: int) -> None:
    """Never returns."""
    code = 1
    try:
        os.closerange(3, writing)  # above all the lock: it must not outlive the supervisor in a hung child
        os.closerange(writing + 1, 256)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        from .probe import read_gpus

        os.write(writing, RELEASED if all_released(read_gpus(state), gpus, free_memory_bytes(state)) else HELD)
        code = 0
    except Exception as error:  # reported to a person
        os.write(writing, f"{type(error).__name__}: {error}".encode("utf-8", "replace")[:ANSWER_BYTES])
    finally:
        os._exit(code)


def why_unknown(answer: bytes) -> str:
    """Nothing was said by a child that was killed: by us, for the driver hangs, or by somebody."""
    why = answer.decode("utf-8", "replace") or f"the check ended without an answer; its limit is {CHECK_TIMEOUT_S:g} s"
    return f"{UNKNOWN}: {why}"


def free_memory_bytes(state: StateDir) -> int:
    try:
        mib = (read_json(state.settings) or {}).get("free_memory_mib")
    except (Damaged, OSError):
        mib = None
    return int(FREE_MEMORY_MIB if mib is None else mib) << 20


def all_released(probe: Record, gpus: list[str], free_bytes: int) -> bool:
    """False as long as anything about one of the GPUs is not known."""
    if probe["source"] == "none" and not probe["gpus"] and not probe["pci_gpus"]:
        return True
    by_uuid = {gpu["uuid"].get("v"): gpu for gpu in probe["gpus"]}
    return all(uuid in by_uuid and one_released(by_uuid[uuid], free_bytes) for uuid in gpus)


def one_released(gpu: Record, free_bytes: int) -> bool:
    listed: list[Record] | None = gpu["processes"].get("v")
    if listed is None or any(not is_somebody(entry["pid"]) for entry in listed):
        return False
    used = gpu["readings"].get("memory_used_bytes", {})
    if "absent" in used:
        return True  # shared with the host: there is no number to wait for
    if used.get("v") is None:
        return False
    shares: list[Any] = [entry.get("gpu_memory_bytes") for entry in listed]
    if None in shares:
        return True  # somebody else is on it with an unknown amount, which may explain everything
    return bool(used["v"] - sum(shares) < free_bytes)


def is_somebody(pid: int) -> bool:
    stat = proc.read_stat(pid)
    return stat is not None and stat.state not in "ZX"
