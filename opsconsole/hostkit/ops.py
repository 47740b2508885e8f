"""What each request does. Every decision is made from files, under one lock per host, so that any agent can make it.

Handlers return the answer's fields and raise HostError for a refusal, Busy to be called again. None of them waits for a
process; a start is answered by the agent when its supervisor has said that it stands.
"""

from __future__ import annotations

import base64
import os
import signal
import time
from typing import Any

from . import VERSION, proc, tree
from .fence import adopt, check_words, exclusive, pass_fence, read_fence
from .files import Damaged, Record, read_json, write_json
from .logfile import read_log
from .runs import Run, all_runs, burn, burnt_note, find_run, forget, never_started, place_order
from .spec import check_number, check_spec
from .state import HostError, StateDir, check_token, disk_error

LOG_CHUNK_MAX = 512 << 10
FINAL = ("released", "never_started")
STOPPED_FIRST = "it was stopped before it started"
LIST_BYTES_MAX = 900_000


class Operations:
    """`memory`: run → GPU bytes by the latest probe; the agent keeps it current. `by_hand`: no leader, no fence."""

    def __init__(self, state: StateDir, by_hand: bool = False) -> None:
        self.state = state
        self.by_hand = by_hand
        self.memory: dict[str, int | None] = {}

    # -- reading ------------------------------------------------------------------------------------------------------

    def hello(self, request: Record) -> Record:
        if request.get("store") is not None:
            with exclusive(self.state):
                self._greet(request["store"], request.get("epoch", 0))
        self._keep_settings(request)
        known = read_fence(self.state)
        return {
            "hostkit": VERSION,
            "boot_id": proc.boot_id(),
            "machine_id": proc.machine_id(),
            "uptime_s": proc.boottime_s(),
            "time_unix_s": time.time(),
            "state_dir": self.state.root,
            "fence": None if known is None else {"store": known[0], "epoch": known[1]},
            **self.list({}),
        }

    def _greet(self, store: object, epoch: object) -> None:
        """First contact adopts, a higher epoch of the same store raises; a stranger may look but changes nothing."""
        name, number = check_words(store, epoch)
        known = read_fence(self.state)
        if known is None or (known[0] == name and known[1] < number):
            try:
                pass_fence(self.state, name, number)
            except OSError as error:
                if known is None:  # a full disk: looking is possible all the same
                    return
                raise disk_error(self.state.base, error) from error

    def _pass(self, request: Record) -> None:
        if not self.by_hand:
            pass_fence(self.state, request.get("store"), request.get("epoch"))

    def _keep_settings(self, request: Record) -> None:
        """What supervisors and workers need of the inventory. Best effort: an older copy does."""
        wanted = {key: request[key] for key in ("system_processes", "free_memory_mib") if request.get(key) is not None}
        try:
            before = read_json(self.state.settings) or {}
        except (Damaged, OSError):
            before = {}
        if wanted and {**before, **wanted} != before:
            try:
                write_json(self.state.settings, {**before, **wanted})
            except OSError:
                return

    def list(self, request: Record) -> Record:
        processes = proc.scan()
        found = [self.describe(run, processes) for run in all_runs(self.state)]
        found.sort(key=lambda run: (run["phase"] in FINAL, -(run["started_unix_s"] or 0), run["token"]))
        return limited(found)

    def describe(self, run: Run, processes: proc.Scan | None = None) -> Record:
        table = proc.scan() if processes is None else processes
        return run.describe(len(tree.members(run, table)), self.memory.get(run.token))

    def log(self, request: Record) -> Record:
        token = check_token(request.get("token"))
        for name in ("offset", "max_bytes"):
            check_number(request.get(name), name)
        run = find_run(self.state, token)
        if run is None:
            raise HostError("unknown_token", "this host has no such run (any more)")
        ended = run.phase() in FINAL or run.other_boot()  # before the reading: what comes after it cannot be missed
        limit = min(LOG_CHUNK_MAX, int(request.get("max_bytes") or LOG_CHUNK_MAX))
        data, following, size, truncated = read_log(run.dir, int(request.get("offset") or 0), limit)
        return {
            "data": base64.b64encode(data).decode("ascii"),
            "offset": following,
            "size": size,
            "truncated": truncated,
            "ended": ended and following >= size,
        }

    # -- changing -----------------------------------------------------------------------------------------------------

    def start(self, request: Record) -> Run | Record:
        """A new run whose supervisor is to be started now, or the answer about a token that was used before."""
        token, spec = check_token(request.get("token")), check_spec(request.get("spec"))
        with exclusive(self.state):
            self._pass(request)
            known = self._known(token)
            if known is not None:
                return {"run": known, "started_before": True}
            ordered = place_order(self.state, token, request.get("store"), request.get("epoch"), spec)
        if ordered is None:
            raise HostError("busy", "the token is being used right now")
        return ordered

    def _known(self, token: str) -> Record | None:
        """RUN of a token that was used before, whatever became of it."""
        run = find_run(self.state, token)
        if run is not None:
            return self.describe(run)
        note = burnt_note(self.state, token)
        if note is None:
            return None
        if note["why"] == "forgotten":
            return dict(note["run"])
        if note["why"] == "stopped":
            return never_started(token, note.get("reason") or STOPPED_FIRST)
        return never_started(token, "its start was cut short; nothing was started")

    def stop(self, request: Record) -> Run | Record:
        """RUN at once; or the run, when its supervisor is dead and somebody has to do the stopping."""
        token = check_token(request.get("token"))
        for name in ("min_ran_s", "checkpoint_grace_s", "stop_grace_s"):
            check_number(request.get(name), name)
        with exclusive(self.state):
            self._pass(request)
            run = find_run(self.state, token)
            if run is None:
                burn(self.state, token, "stopped", str(request.get("reason") or ""))
                return {"run": self._known(token) or never_started(token, STOPPED_FIRST)}
            phase = run.phase()
            if phase in FINAL or run.other_boot():
                return {"run": self.describe(run)}
            guard(run, phase, float(request.get("min_ran_s") or 0))
            return self._order_stop(run, request)

    def _order_stop(self, run: Run, request: Record) -> Run | Record:
        supervisor = run.identity("supervisor") if run.supervised() else None
        try:
            write_stop(run, request)
        except OSError as error:
            if supervisor is None:
                raise disk_error(run.dir, error) from error
            tree.send(supervisor, signal.SIGUSR2)  # no room for the file: with the spec's own graces, then
            return {"run": self.describe(run)}
        if supervisor is not None:
            tree.send(supervisor, signal.SIGUSR1)
        elif run.state is not None and not run.supervised():
            return run
        return {"run": self.describe(run)}

    def forget(self, request: Record) -> Record:
        token = check_token(request.get("token"))
        with exclusive(self.state):
            self._pass(request)
            run = find_run(self.state, token)
            if run is None:
                return {"forgotten": False}
            if run.phase() not in FINAL and not run.other_boot():
                raise HostError("not_ended", f"the run is {run.phase()}; stop it first")
            last_word = {"token": token, "why": "forgotten", "run": self.describe(run), "at_unix_s": time.time()}
            write_json(self.state.burnt_file(token), last_word)
            forget(self.state, run)
        return {"forgotten": True}

    def adopt(self, request: Record) -> Record:
        with exclusive(self.state):
            before = read_fence(self.state)
            adopt(self.state, request.get("store"), request.get("epoch"))
        live = [run for run in all_runs(self.state) if run.phase() not in FINAL and not run.other_boot()]
        older = [run for run in live if run.order.get("store") != request.get("store")]
        return {
            "previous_store": None if before is None else before[0],
            "live_runs_of_older_stores": len(older),
            "tokens": [run.token for run in older][:1000],
        }


def guard(run: Run, phase: str, min_ran_s: float) -> None:
    """Rule 11 on the host itself: refuse while the run is protected. A clock that cannot be read protects."""
    state = run.state or {}
    if min_ran_s <= 0 or state.get("exit") or state.get("signalled"):
        return
    if phase == "starting":
        raise protected("it has just been started", min_ran_s)
    ran = run.ran_s()
    if ran is None:
        raise protected("this host cannot tell how long it has run", min_ran_s)
    if ran < min_ran_s:
        raise protected(f"it has run for {ran:.1f} s of {min_ran_s:.1f} s", min_ran_s - ran)


def protected(why: str, remaining_s: float) -> HostError:
    return HostError("protected", f"protected: {why}", remaining_s=round(remaining_s, 3))


def write_stop(run: Run, request: Record) -> None:
    """Durable before anybody is told. A later request may shorten the graces, never lengthen them. Raises OSError."""
    path = run.path("stop.json")
    wanted = {key: request.get(key) for key in ("reason", "checkpoint_grace_s", "stop_grace_s")}
    try:
        before = read_json(path) or {}
    except Damaged:
        before = {}
    for key in ("checkpoint_grace_s", "stop_grace_s"):
        numbers = [one for one in (wanted[key], before.get(key)) if one is not None]
        wanted[key] = min(numbers) if numbers else None
    wanted["reason"] = before.get("reason") or str(wanted["reason"] or "")[:500] or None
    if wanted == {key: before.get(key) for key in wanted} and os.path.exists(path):
        return
    write_json(path, {**wanted, "store": request.get("store"), "epoch": request.get("epoch"), "at_unix_s": time.time()})


def limited(found: list[Record]) -> Record:
    """As many as a line may hold, live ones first; how many were left out is said."""
    size, kept = 0, []
    for run in found:
        size += 600 + sum(len(str(run.get(key) or "")) for key in ("token", "error", "gpus", "workload", "owner")) * 2
        if size > LIST_BYTES_MAX:
            break
        kept.append(run)
    return {"runs": kept, "left_out": len(found) - len(kept)}


def needs_rescue(run: Run, processes: proc.Scan) -> bool:
    """Its supervisor is dead, and there is something to finish: a stop, an exit's leftovers, or an empty tree."""
    if run.state is None or run.damage or run.other_boot() or run.state.get("phase") in FINAL or run.supervised():
        return False
    run.reload()
    if run.state is None or run.state.get("phase") in FINAL:
        return False
    asked = bool(run.state.get("exit")) or os.path.exists(run.path("stop.json"))
    return asked or not tree.members(run, processes)


def fields_of(error: HostError) -> dict[str, Any]:
    return {"error": error.code, "message": error.message, **error.fields}


RUN_CHANGES = ("phase", "exit", "signalled", "error", "stop_reason", "checkpointed_unix_s")


def signature(described: Record) -> list[Any]:
    """What makes a RUN worth an event when it changes."""
    return [described[key] for key in RUN_CHANGES]


def runs_changed_at(state: StateDir) -> int:
    """Another one whenever a run directory came or went."""
    return os.stat(state.runs).st_mtime_ns
