"""Runs as their directories tell them. Reading decides a phase from facts; what cannot be known is `unknown`.

A supervisor is alive exactly as long as the lock of its run is held: the kernel lets go of it however the process ends,
and no pid is trusted for that. The order at a start is: burn the token (exclusive create, synced), make the directory,
write the spec, start the supervisor. A crash in between leaves a token that never starts, never one that starts twice.
"""

from __future__ import annotations

import fcntl
import os
import time

from . import proc
from .files import Damaged, Record, read_json, sync_directory, write_json
from .spec import attempt_of, workload_of
from .state import StateDir

SUPERVISOR_START_S = 30.0  # a supervisor that comes later than this after its order refuses to start
REASON_CHARACTERS = 500
LIVE = ("starting", "running", "stopping", "exited", "unknown")


class Run:
    """One run directory. `state` is None until its supervisor has written something."""

    def __init__(self, run_dir: str) -> None:
        self.dir = run_dir
        self.order: Record = {}
        self.state: Record | None = None
        self.damage: str | None = None
        self.reload()

    def reload(self) -> None:
        self.damage = None
        try:
            self.order = read_json(self.path("spec.json")) or {}
            self.state = read_json(self.path("state.json"))
        except (Damaged, OSError) as error:
            self.damage = str(error)

    def path(self, name: str) -> str:
        return os.path.join(self.dir, name)

    @property
    def token(self) -> str:
        return str(self.order.get("token", os.path.basename(self.dir)))

    @property
    def spec(self) -> Record:
        found = self.order.get("spec")
        return found if isinstance(found, dict) else {}

    @property
    def gpus(self) -> list[str]:
        return [str(gpu) for gpu in self.spec.get("gpus") or []]

    def identity(self, who: str) -> proc.Identity | None:
        """`supervisor` or `main`, as long as this is the boot in which it was started."""
        found = (self.state or {}).get(who)
        if not found or self.other_boot():
            return None
        return proc.Identity(int(found["pid"]), int(found["start"]))

    def other_boot(self) -> bool:
        """It was started in an earlier boot, so none of its processes exists any more."""
        started_in = (self.state or self.order).get("boot_id")
        return started_in is not None and started_in != proc.boot_id()

    def supervised(self) -> bool:
        return lock_is_held(self.path("lock"))

    def phase(self) -> str:
        state = self.state
        if self.damage:
            return "unknown"
        if state is None:
            return self._phase_before_state()
        phase = str(state["phase"])
        if phase in ("released", "never_started"):
            return phase
        if self.other_boot():
            return "released" if state.get("exit") else "unknown"
        if self.supervised():
            return phase
        return self._phase_without_supervisor()

    def _phase_before_state(self) -> str:
        if self.supervised():
            return "starting"
        now, ordered = proc.boottime_s(), self.order.get("ordered_boot_s")
        if self.other_boot() or (now and ordered and now - ordered > SUPERVISOR_START_S):
            return "never_started"
        return "starting"

    def _phase_without_supervisor(self) -> str:
        """Its last word may have been written between our reading the state and our trying the lock."""
        self.reload()
        state = self.state or {}
        if state.get("phase") in ("released", "never_started"):
            return str(state["phase"])
        return "exited" if state.get("exit") else "unknown"

    def ran_s(self) -> float | None:
        """Seconds the main process has run, on the boot-time clock; None where that cannot be told."""
        state = self.state or {}
        if state.get("ran_s") is not None:
            return float(state["ran_s"])
        now, started = proc.boottime_s(), state.get("started_boot_s")
        if now is None or started is None or self.other_boot():
            return None
        return max(0.0, now - float(started))

    def released_ago_s(self) -> float | None:
        """Seconds since its GPUs were free, on the boot-time clock; None before, and where nobody can tell."""
        now, released = proc.boottime_s(), (self.state or {}).get("released_boot_s")
        if now is None or released is None or self.other_boot():
            return None
        return max(0.0, now - float(released))

    def note(self, phase: str) -> str | None:
        """What a person should know besides the phase."""
        if self.damage:
            return self.damage
        if phase == "unknown" and self.other_boot():
            return "the host was rebooted while it ran: its processes are gone, its exit status is not known"
        if phase == "unknown":
            return "its supervisor was killed: its exit status will never be known"
        if phase == "never_started" and self.state is None:
            return "its supervisor never came up; nothing was started"
        error = (self.state or {}).get("error")
        return None if error is None else str(error)

    def describe(self, pids: int, gpu_memory_bytes: int | None = None) -> Record:
        """RUN of docs/agent-protocol.md."""
        phase = self.phase()
        state = self.state or {}
        return {
            "token": self.token,
            "store": self.order.get("store"),
            "phase": phase,
            "started_unix_s": state.get("started_unix_s"),
            "ran_s": None if phase == "never_started" else self.ran_s(),
            "released_ago_s": self.released_ago_s(),
            "exit": state.get("exit"),
            "signalled": bool(state.get("signalled")),
            "stop_reason": state.get("stop_reason"),
            "error": self.note(phase),
            "pids": pids,
            "gpu_memory_bytes": gpu_memory_bytes,
            "attempt": attempt_of(self.token, self.spec),
            "workload": workload_of(self.token, self.spec),
            "gpus": self.gpus,
            "owner": self.spec.get("owner"),
            "boot_id": (self.state or self.order).get("boot_id"),
            "checkpointed_unix_s": modified_unix_s(self.path("checkpointed")),
            "processes_gone": phase in ("released", "never_started") or self.other_boot(),
        }


def never_started(token: str, error: str | None) -> Record:
    """RUN of a token that is burnt and has no directory."""
    unknown = ("store", "started_unix_s", "ran_s", "released_ago_s", "exit", "stop_reason", "gpu_memory_bytes", "owner")
    return {
        "token": token,
        "phase": "never_started",
        "signalled": False,
        "error": error,
        "pids": 0,
        "attempt": attempt_of(token, {}),
        "workload": workload_of(token, {}),
        "gpus": [],
        "boot_id": None,
        "checkpointed_unix_s": None,
        "processes_gone": True,
        **dict.fromkeys(unknown),
    }


def modified_unix_s(path: str) -> float | None:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return None


def lock_is_held(path: str) -> bool:
    """Somebody holds the lock of a run: its supervisor."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def all_runs(state: StateDir) -> list[Run]:
    """Every run directory, by name. A directory without an order was cut short by a crash and is left out."""
    found = [Run(entry.path) for entry in sorted(os.scandir(state.runs), key=lambda e: e.name) if entry.is_dir()]
    return [run for run in found if run.order or run.damage]


def find_run(state: StateDir, token: str) -> Run | None:
    run = Run(state.run_dir(token))
    return run if run.order or run.damage else None


def burn(state: StateDir, token: str, why: str, reason: str = "") -> bool:
    """Use the token up, for ever; `reason` is for its owner. False when it was used up already. Raises OSError."""
    path = state.burnt_file(token)
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return False
    os.close(fd)
    write_json(path, {"token": token, "why": why, "reason": reason[:REASON_CHARACTERS], "at_unix_s": time.time()})
    return True


def burnt_note(state: StateDir, token: str) -> Record | None:
    """Its `why` is `started`, `stopped` or `forgotten`. None for a token never seen. A damaged note still burns."""
    path = state.burnt_file(token)
    if not os.path.exists(path):
        return None
    try:
        return {"why": "started", **(read_json(path) or {})}
    except (Damaged, OSError):
        return {"why": "started"}


def place_order(state: StateDir, token: str, store: object, epoch: object, spec: Record) -> Run | None:
    """Burn the token and make its directory. None when the token was used before. Raises OSError."""
    if not burn(state, token, "started"):
        return None
    run_dir = state.run_dir(token)
    os.mkdir(run_dir, 0o700)
    os.close(os.open(os.path.join(run_dir, "lock"), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    order = {
        "token": token,
        "store": store,
        "epoch": epoch,
        "spec": spec,
        "boot_id": proc.boot_id(),
        "ordered_unix_s": time.time(),
        "ordered_boot_s": proc.boottime_s(),
    }
    write_json(os.path.join(run_dir, "spec.json"), order)
    sync_directory(state.runs)
    return Run(run_dir)


def forget(state: StateDir, run: Run) -> None:
    """Remove the directory; its token stays burnt."""
    import shutil  # rarely needed, and it brings compression libraries along

    shutil.rmtree(run.dir)
    sync_directory(state.runs)


def count_by_phase(found: list[Run]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for run in found:
        phase = run.phase()
        counts[phase] = counts.get(phase, 0) + 1
    return counts
