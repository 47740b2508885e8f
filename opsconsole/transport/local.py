"""The same session over a local process, for a host whose address is "local": no SSH, same script, same agent."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from pathlib import Path
from typing import cast

from opsconsole.transport.address import HostAddress
from opsconsole.transport.errors import TransportError, Unreach
from opsconsole.transport.session import Session


class LocalChannel(asyncio.SubprocessProtocol):
    """The pipes of /bin/sh, as bytes for a Session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._transport: asyncio.SubprocessTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.SubprocessTransport, transport)
        self._session.attach(self)

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        assert isinstance(data, bytes)
        if fd == 1:
            self._session.feed(data)
        else:
            self._session.feed_stderr(data)

    def process_exited(self) -> None:
        if self._transport is not None:
            self._session.exited(self._transport.get_returncode() or 0)

    def connection_lost(self, exc: Exception | None) -> None:
        self._session.lost(str(exc) if exc else "")

    def write(self, data: bytes) -> None:
        pipe = self._transport.get_pipe_transport(0) if self._transport is not None else None
        if pipe is not None and not pipe.is_closing():
            cast(asyncio.WriteTransport, pipe).write(data)

    def abort(self) -> None:
        """End the agent at once. It has a process group of its own; runs have left it."""
        transport, self._transport = self._transport, None
        if transport is None:
            return
        if transport.get_returncode() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(transport.get_pid(), signal.SIGTERM)
        transport.close()  # kills what did not leave


class LocalOpener:
    """Opens sessions on this machine."""

    async def open(self, address: HostAddress, session: Session) -> None:
        """Start /bin/sh. Raises TransportError."""
        try:
            await asyncio.get_running_loop().subprocess_exec(
                lambda: LocalChannel(session), "/bin/sh", start_new_session=True, cwd=Path.home()
            )
        except OSError as error:
            raise TransportError(
                address.name, "start /bin/sh", error.strerror or str(error), Unreach.NO_SHELL
            ) from None
