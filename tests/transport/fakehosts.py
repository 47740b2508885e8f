"""Many hosts in this process: an asyncssh server whose sessions speak the boot report and the protocol, no shell."""

from __future__ import annotations

import asyncio
import json
import re
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

import asyncssh

from opsconsole.transport.address import HostAddress

BOOT_END = b"\nboot; exit\n"
PADDED = json.dumps({"event": "probe", "probe": {"padding": "x" * 2000}}).encode() + b"\n"


class FakeHost:
    """What every session to it says. Its runs start, and end when they are stopped; its probes tell nothing."""

    def __init__(self, boot_id: str = "boot1") -> None:
        self.boot_id = boot_id
        self.runs: dict[str, dict[str, Any]] = {}

    def probe(self) -> bytes:
        """A line, with its newline."""
        return PADDED

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        token = str(request.get("token", ""))
        if request["op"] == "start":
            return {"run": self.runs.setdefault(token, self._started(token, request))}
        if request["op"] == "stop" and token in self.runs:
            self.runs[token] |= {"phase": "released", "exit": {"signal": "SIGTERM"}, "signalled": True}
            return {"run": self.runs[token]}
        return {"boot_id": self.boot_id, "hostkit": "fake", "runs": [*self.runs.values()]}

    def _started(self, token: str, request: dict[str, Any]) -> dict[str, Any]:
        of_order = {"token": token, "store": request["store"], "gpus": request["spec"]["gpus"], "boot_id": self.boot_id}
        return {**of_order, "phase": "running", "ran_s": 0.0, "exit": None, "signalled": False}


class FakeSession(asyncssh.SSHServerSession[bytes]):
    """Answers the boot script with BOOT, then every request; sends a probe every interval."""

    def __init__(self, host: FakeHost) -> None:
        self._host = host
        self._chan: asyncssh.SSHServerChannel[bytes] | None = None
        self._data = b""
        self._booted = False
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        self._chan = chan

    def exec_requested(self, command: str) -> bool:
        return command == "exec /bin/sh"

    def data_received(self, data: bytes, datatype: int | None) -> None:
        self._data += data
        if not self._booted:
            self._boot()
            return
        *lines, self._data = self._data.split(b"\n")
        for line in lines:
            self._answer(json.loads(line))

    def _boot(self) -> None:
        nonce = re.search(rb"nonce=(\w+)", self._data)
        if nonce is None or not self._data.endswith(BOOT_END):
            return
        self._booted, self._data = True, b""
        boot = {"nonce": nonce[1].decode(), "home": "/", "uname": "Fake", "python": "/python3", "have": True}
        self._write(b"\nOPSCONSOLE-BOOT " + json.dumps(boot).encode() + b"\n")

    def _answer(self, request: dict[str, Any]) -> None:
        self._write(json.dumps({"re": request["id"], "ok": True, **self._host.answer(request)}).encode() + b"\n")
        if request["op"] == "hello":
            self._probe(float(request["interval_s"]))

    def _probe(self, interval_s: float) -> None:
        self._write(self._host.probe())
        self._timer = asyncio.get_running_loop().call_later(interval_s, self._probe, interval_s)

    def _write(self, data: bytes) -> None:
        if self._chan is not None and not self._chan.is_closing():
            self._chan.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()


class FakeServer(asyncssh.SSHServer):
    """One connection to a host; `live`, where given, has all that are open."""

    def __init__(self, host: FakeHost, live: set[asyncssh.SSHServerConnection] | None = None) -> None:
        self._host, self._live = host, live

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        if self._live is not None:
            self._live.add(conn)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._live is not None:
            self._live.discard(self._connection)

    def session_requested(self) -> FakeSession:
        return FakeSession(self._host)


class FakeHosts:
    """`count` host names on one port of loopback."""

    def __init__(self, root: Path, count: int) -> None:
        self._root = root
        self._count = count
        self.known_hosts = root / "known_hosts"

    async def __aenter__(self) -> FakeHosts:
        host_key, user_key = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
        user_key.write_private_key(str(self._root / "user"))
        user_key.write_public_key(str(self._root / "user.pub"))
        self._server = await asyncssh.listen(
            "127.0.0.1",
            0,
            server_factory=partial(FakeServer, FakeHost()),
            server_host_keys=[host_key],
            authorized_client_keys=str(self._root / "user.pub"),
            encoding=None,
            backlog=self._count,
        )
        port = self._server.get_port()
        self.known_hosts.write_text(f"[127.0.0.1]:{port} {host_key.export_public_key().decode()}")
        identity = (str(self._root / "user"),)
        self.addresses = [
            HostAddress(f"gpu{n:04d}", "127.0.0.1", port=port, user="me", identity=identity) for n in range(self._count)
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        await self._server.wait_closed()
