"""A host for tests: its own state directory, boot id and GPUs, the real zipapp, and a client of its agent."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MARK = "OPSCONSOLE_TEST_HOSTKIT"
GIB = 1 << 30
PATIENCE_S = 45.0

Message = dict[str, Any]


class Client:
    """The console's side of one session."""

    def __init__(self, host: Host, *arguments: str) -> None:
        self.host = host
        self.process = subprocess.Popen(
            host.command("agent", *arguments),
            env=host.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        self.events: list[Message] = []
        self.answers: dict[Any, Message] = {}
        self._rest = b""
        self._number = 0

    def send(self, message: Message) -> None:
        self.send_bytes(json.dumps(message).encode() + b"\n")

    def send_bytes(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    def pump(self, timeout_s: float) -> bool:
        """Take in what comes within the time; False when the agent closed its output."""
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], timeout_s)[0]:
            return True
        data = os.read(self.process.stdout.fileno(), 1 << 16)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            assert len(line) <= 1 << 20
            message = json.loads(line)
            if "re" in message:
                self.answers[message["re"]] = message
            else:
                self.events.append(message)
        return bool(data)

    def ask(self, op: str, **fields: Any) -> Message:
        """Send a request and wait for its answer."""
        self._number += 1
        self.send({"id": self._number, "op": op, **fields})
        return self.answer_to(self._number)

    def answer_to(self, number: Any, timeout_s: float = PATIENCE_S) -> Message:
        wait_until(lambda: number in self.answers or not self.pump(0.05), timeout_s)
        return self.answers.pop(number)

    def hello(self, **fields: Any) -> Message:
        return self.ask("hello", **{"store": "s1", "epoch": 1, "interval_s": 0.2, **fields})

    def start(self, token: str, argv: Sequence[str], **spec: Any) -> Message:
        fields = {"store": "s1", "epoch": 1, "token": token}
        return self.ask("start", **fields, spec={"argv": list(argv), "cwd": None, "env": {}, **spec})

    def stop(self, token: str, **fields: Any) -> Message:
        wanted = {
            "store": "s1",
            "epoch": 1,
            "reason": "test",
            "min_ran_s": 0,
            "checkpoint_grace_s": 5,
            "stop_grace_s": 5,
        }
        return self.ask("stop", token=token, **{**wanted, **fields})

    def run(self, token: str) -> Message:
        return next(run for run in self.ask("list")["runs"] if run["token"] == token)

    def wait_phase(self, token: str, *phases: str, timeout_s: float = PATIENCE_S) -> Message:
        """The RUN as soon as it is in one of the phases."""
        found: list[Message] = []

        def reached() -> bool:
            found[:] = [self.run(token)]
            if found[0]["phase"] in phases:
                return True
            self.pump(0.05)
            return False

        wait_until(reached, timeout_s)
        return found[0]

    def wait_event(self, wanted: Callable[[Message], bool], timeout_s: float = PATIENCE_S) -> Message:
        wait_until(lambda: any(map(wanted, self.events)) or not self.pump(0.05), timeout_s)
        return next(event for event in self.events if wanted(event))

    def next_probe(self) -> Message:
        """A probe that began after this call."""
        self.events.clear()
        probes: list[Message] = []

        def second() -> bool:
            self.pump(0.05)
            probes[:] = [event["probe"] for event in self.events if event["event"] == "probe"]
            return len(probes) >= 2

        wait_until(second)
        return probes[1]

    def log(self, token: str, offset: int = 0, max_bytes: int = 65536) -> Message:
        return self.ask("log", token=token, offset=offset, max_bytes=max_bytes)

    def close(self) -> int:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        try:
            return self.process.wait(10)
        finally:
            self.process.stdout.close()

    def kill(self) -> None:
        """As a crash or the OOM killer would."""
        self.process.kill()
        self.process.wait()


@dataclass
class Host:
    """One machine as the hostkit sees it. `kit` is how its code is started."""

    root: Path
    kit: list[str]
    fake: bool = True
    clients: list[Client] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state.mkdir(parents=True, mode=0o700)
        self.boot_file.write_text("boot-1\n")
        self.machine_file.write_text("feedfacefeedface\n")
        self.gpus([{"pci": "00000000:10:00.0", "uuid": "GPU-a"}, {"pci": "00000000:20:00.0", "uuid": "GPU-b"}])

    @property
    def state(self) -> Path:
        return self.root / "state"

    @property
    def base(self) -> Path:
        return self.state / "hosts" / "feedfacefeedface"

    @property
    def boot_file(self) -> Path:
        return self.root / "boot_id"

    @property
    def machine_file(self) -> Path:
        return self.root / "machine-id"

    @property
    def gpu_file(self) -> Path:
        return self.root / "gpus.json"

    def gpus(self, gpus: list[Message], kernel: Sequence[Message] = (), driver: Any = "580.1") -> None:
        table = {"driver": driver, "gpus": gpus, "kernel": list(kernel)}
        scratch = self.gpu_file.with_suffix(".new")
        scratch.write_text(json.dumps(table))
        scratch.replace(self.gpu_file)

    def environment(self) -> dict[str, str]:
        found = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(self.root),
            "OPSCONSOLE_STATE_DIR": str(self.state),
            "OPSCONSOLE_BOOT_ID_FILE": str(self.boot_file),
            "OPSCONSOLE_MACHINE_ID_FILE": str(self.machine_file),
            MARK: str(self.root),
        }
        return {**found, "OPSCONSOLE_FAKE_NVML": str(self.gpu_file)} if self.fake else found

    def command(self, *arguments: str) -> list[str]:
        return [*self.kit, *arguments]

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command by hand on this host."""
        return subprocess.run(
            self.command(*arguments),
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def connect(self, greet: bool = True, **hello: Any) -> Client:
        client = Client(self)
        self.clients.append(client)
        if greet:
            assert client.hello(**hello)["ok"]
        return client

    def run_dir(self, token: str) -> Path:
        """The directory of a run whose token starts so that it can be recognised."""
        found = [path for path in (self.base / "runs").iterdir() if self.order(path)["token"] == token]
        assert len(found) == 1, found
        return found[0]

    @staticmethod
    def order(run_dir: Path) -> Message:
        found: Message = json.loads((run_dir / "spec.json").read_text())
        return found

    def run_state(self, token: str) -> Message:
        found: Message = json.loads((self.run_dir(token) / "state.json").read_text())
        return found

    def processes(self) -> dict[int, str]:
        """pid → command line of everything that carries this host's mark, zombies left out."""
        wanted = f"{MARK}={self.root}".encode()
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError):
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found[int(entry.name)] = (
                        (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                    )
        return found

    def processes_like(self, text: str) -> list[int]:
        return [pid for pid, line in self.processes().items() if text in line]

    def power_off(self) -> None:
        """Every process of the host goes at once."""
        for client in self.clients:
            for stream in (client.process.stdin, client.process.stdout):
                if stream is not None:
                    stream.close()
        while left := self.processes():
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)
        for client in self.clients:
            client.process.wait()
        self.clients.clear()


def wait_until(reached: Callable[[], bool], timeout_s: float = PATIENCE_S) -> None:
    """Look again until it is so. Fails after the time, with the condition's name."""
    deadline = time.monotonic() + timeout_s
    while not reached():
        assert time.monotonic() < deadline, f"not reached in {timeout_s} s: {reached}"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """It runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
