"""Hosts that speak the agent protocol in this process, for speed. Their truth lies in a file, so that it outlives a
leader that is killed: processes are spans of boot time, not real ones."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from opsconsole.clock import boot_now_ms
from opsconsole.errors import OpsConsoleError

GIB = 1 << 30
Fields = dict[str, Any]


class FakeHost:
    """One host. A run lasts as many seconds as its last argument says; a stop ends it after `stop_ms`."""

    def __init__(self, path: Path, name: str, gpus: int = 4, stop_ms: int = 40) -> None:
        self.file, self.name, self.gpus, self.stop_ms = path / f"{name}.json", name, gpus, stop_ms
        self.boot_id, self.foreign, self.mute = f"{name}-boot1", [0] * gpus, False
        self.machine_id = f"machine-{name}"
        self.fence: list[Any] = []
        self.runs: dict[str, Fields] = {}
        self.burnt: dict[str, str] = {}  # why, by token
        self.protected = 0  # stops that came too early
        self.refuse_start = ""
        self.trouble: str | None = None  # what keeps its runs from being over
        if self.file.exists():
            self.__dict__ |= json.loads(self.file.read_text())

    def save(self) -> None:
        kept = {key: getattr(self, key) for key in ("boot_id", "fence", "runs", "burnt", "protected")}
        scratch = self.file.with_suffix(".new")
        scratch.write_text(json.dumps(kept))
        scratch.replace(self.file)

    def reboot(self) -> None:
        self.boot_id += "+"
        self.save()

    # -- what runs -------------------------------------------------------------------------------------------------

    def phase(self, run: Fields) -> str:
        if run["boot_id"] != self.boot_id:
            return "unknown"
        return "released" if boot_now_ms() >= run["ends_ms"] else "stopping" if run["stopped"] else "running"

    def describe(self, token: str) -> Fields:
        if token in self.burnt:
            return {"token": token, "store": None, "phase": "never_started", "error": self.burnt[token]}
        run = self.runs[token]
        phase, now = self.phase(run), boot_now_ms()
        over = phase == "released"
        return {
            "token": token,
            "store": run["store"],
            "phase": phase,
            "ran_s": (min(now, run["ends_ms"]) - run["began_ms"]) / 1000,
            "exit": ({"signal": "SIGTERM"} if run["stopped"] else {"code": run["code"]}) if over else None,
            "released_ago_s": (now - run["ends_ms"]) / 1000 if over else None,
            "signalled": run["stopped"],
            "processes_gone": over or phase == "unknown",
            "gpus": run["gpus"],
            "workload": run["spec"]["workload"],
            "attempt": run["spec"].get("attempt"),
            "error": self.trouble,
        }

    def probe(self) -> Fields:
        live = {gpu: token for token, run in self.runs.items() if self.phase(run) != "released" for gpu in run["gpus"]}
        return {"boot_id": self.boot_id, "gpus": [self._gpu(slot, live) for slot in range(self.gpus)]}

    def _gpu(self, slot: int, live: dict[str, str]) -> Fields:
        uuid = f"GPU-{self.name}-{slot}"
        processes = [{"pid": 1, "run": live[uuid], "system": False}] if uuid in live else []
        if self.foreign[slot]:
            processes.append({"pid": 2, "run": None, "system": False})
        readings = {"memory_used_bytes": {"v": GIB * 20 if processes else 0}}
        return {"slot": slot, "uuid": {"v": uuid}, "processes": {"v": processes}, "readings": readings}

    # -- requests --------------------------------------------------------------------------------------------------

    def answer(self, op: str, fields: Fields) -> Fields:
        if op == "list":
            return {"ok": True, "runs": [self.describe(t) for t in [*self.runs, *self.burnt]]}
        if op == "hello" and not self._passes(fields):
            return self._fenced()
        if op == "hello":
            hello = {"ok": True, "boot_id": self.boot_id, "machine_id": self.machine_id}
            return hello | self.answer("list", {})
        if not self._passes(fields):
            return self._fenced()
        result: Fields = getattr(self, f"_{op}")(fields)
        self.save()
        return result

    def _passes(self, fields: Fields) -> bool:
        store, epoch = fields["store"], fields["epoch"]
        if self.fence and (self.fence[0] != store or self.fence[1] > epoch):
            return False
        self.fence = [store, epoch]
        return True

    def _fenced(self) -> Fields:
        return {"ok": False, "error": "fenced", "message": f"epoch {self.fence[1]} leads here"}

    def _start(self, fields: Fields) -> Fields:
        token, spec = fields["token"], fields["spec"]
        if token not in self.runs and token not in self.burnt:
            if self.refuse_start:
                return {"ok": False, "error": self.refuse_start, "message": "no such GPU"}
            now, seconds = boot_now_ms(), float(spec["argv"][-1])
            self.runs[token] = {
                "store": fields["store"],
                "boot_id": self.boot_id,
                "gpus": spec["gpus"],
                "spec": spec,
                "began_ms": now,
                "ends_ms": now + int(seconds * 1000),
                "stopped": False,
                "code": 0,
            }
        return {"ok": True, "run": self.describe(token)}

    def _stop(self, fields: Fields) -> Fields:
        token, now = fields["token"], boot_now_ms()
        run = self.runs.get(token)
        if run is None:
            self.burnt.setdefault(token, fields["reason"])
        elif self.phase(run) == "running":
            left_ms = fields["min_ran_s"] * 1000 - (now - run["began_ms"])
            if left_ms > 0:
                self.protected += 1
                return {"ok": False, "error": "protected", "message": "protected", "remaining_s": left_ms / 1000}
            run["stopped"], run["ends_ms"] = True, min(run["ends_ms"], now + self.stop_ms)
        return {"ok": True, "run": self.describe(token)}


@dataclass
class FakePool:
    """Links to fake hosts, as a PoolFactory makes them; `hosts` is what each name leads to. `lose_answers`: requests
    that are done and never answered.
    """

    hosts: dict[str, FakeHost]
    hello: Callable[[str], Fields]
    hear: Callable[[str, str, Any], None]
    interval_s: float = 0.02
    down: set[str] = field(default_factory=set)
    lose_answers: int = 0
    sent: list[tuple[str, str, Fields]] = field(default_factory=list)
    wanted: list[str] = field(default_factory=list)
    live: set[str] = field(default_factory=set)
    tried: set[str] = field(default_factory=set)
    tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    started: bool = False

    def start(self) -> None:
        self.started = True
        self.replace([SimpleNamespace(name=name) for name in self.wanted])

    def replace(self, hosts: Iterable[Any]) -> None:
        self.wanted = [host.name for host in hosts]
        for name in [name for name in self.tasks if name not in self.wanted]:
            self.tasks.pop(name).cancel()
            self.live.discard(name)
        for name in self.wanted if self.started else ():
            if name not in self.tasks:
                self.tasks[name] = asyncio.create_task(self._link(name, self.hosts[name]))

    def status(self, host: str) -> Any:
        state = "live" if host in self.live else "lost" if host in self.tried else "never seen"
        return SimpleNamespace(state=state, attempts=1, why="", rtt_s=None)

    def reconnect(self, host: str) -> None:
        """It tries all the time anyway."""

    async def aclose(self) -> None:
        for task in self.tasks.values():
            task.cancel()
        await asyncio.wait(self.tasks.values())

    async def request(self, host: str, op: str, deadline_s: float, **fields: Any) -> Fields:
        await asyncio.sleep(0.002)
        if host not in self.live:
            raise OpsConsoleError("not connected")
        self.sent.append((host, op, fields))
        answer = self.hosts[host].answer(op, fields)
        if op != "list" and self.lose_answers:
            self.lose_answers -= 1
            raise OpsConsoleError("timed out")
        return answer

    async def _link(self, name: str, host: FakeHost) -> None:
        while True:
            await asyncio.sleep(0.01)
            self.tried.add(name)
            if name in self.down:
                continue
            hello = host.answer("hello", self.hello(name))
            if not hello["ok"]:
                self.hear("disconnected", name, ("fenced", hello["message"]))
                return
            self.live.add(name)
            self.hear("connected", name, hello)
            await self._speak(name, host)
            self.live.discard(name)
            self.hear("disconnected", name, ("lost", "cut"))

    async def _speak(self, name: str, host: FakeHost) -> None:
        told: dict[str, str] = {}
        while name not in self.down:
            for token, run in host.runs.items():
                if told.get(token) != host.phase(run):
                    told[token] = host.phase(run)
                    self.hear("line", name, {"event": "run", "run": host.describe(token)})
            if not host.mute:
                self.hear("line", name, {"event": "probe", "probe": json.dumps(host.probe()).encode()})
            await asyncio.sleep(self.interval_s)
