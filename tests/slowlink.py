"""A slow line in front of a server: a TCP proxy whose connections share a rate and wait for a delay, each way."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from dataclasses import dataclass, field

from tests.sshd import next_address

CHUNK = 2048  # connections take turns with so many bytes
BUFFER_S = 0.2  # so much of the line's time lies in its buffers; the rest stays with the sender


@dataclass
class Lane:
    """One direction. `send` says when these bytes come out at the far end."""

    bytes_per_s: float
    delay_s: float
    free_at: float = 0.0

    async def send(self, count: int) -> float:
        loop = asyncio.get_running_loop()
        self.free_at = max(self.free_at, loop.time()) + count / self.bytes_per_s
        due = self.free_at + self.delay_s
        await asyncio.sleep(max(0.0, self.free_at - loop.time() - BUFFER_S))
        return due


@dataclass(eq=False)
class SlowLink:
    """To `address`, `port`; listens on an address of its own, in a thread of its own, between `start` and `stop`."""

    to_address: str
    to_port: int
    round_trip_s: float = 0.3
    bytes_per_s: float = 50_000
    address: str = field(default_factory=next_address)
    port: int = 0
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)

    def start(self) -> SlowLink:
        self._up, self._down = (Lane(self.bytes_per_s, self.round_trip_s / 2) for _ in range(2))
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, self.address, 0))
        self.port = server.sockets[0].getsockname()[1]
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"slow link {self.port}", daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        far, forth = await asyncio.open_connection(self.to_address, self.to_port)
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            await asyncio.gather(carry(near, forth, self._up), carry(far, back, self._down))
        for writer in (back, forth):
            writer.close()


async def carry(source: asyncio.StreamReader, sink: asyncio.StreamWriter, lane: Lane) -> None:
    """Until the source ends; what is under way arrives before that does."""
    under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def arrive() -> None:
        while True:
            due, data = await under_way.get()
            await asyncio.sleep(due - asyncio.get_running_loop().time())
            if not data:
                sink.close()
                return
            sink.write(data)

    arriving = asyncio.create_task(arrive())
    while data := await source.read(CHUNK):
        under_way.put_nowait((await lane.send(len(data)), data))
    under_way.put_nowait((await lane.send(0), b""))
    await arriving
