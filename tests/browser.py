"""A real browser without a screen, driven by its own DevTools: what its sockets hear, its keys, its complaints."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp

PATIENCE_S = 60.0
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = (
    "--headless=new",
    "--no-sandbox",  # it visits nothing but our own page
    "--remote-debugging-port=0",
    "--no-first-run",
    "--disable-dev-shm-usage",
    "--enable-unsafe-swiftshader",  # WebGL without a graphics card
    "--window-size=1280,900",
    "about:blank",
)
ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


@dataclass
class Page:
    """One tab. `heard`: all that sockets told it; `complaints`: errors of its scripts and its rules."""

    devtools: aiohttp.ClientWebSocketResponse
    heard: bytes = b""
    complaints: list[str] = field(default_factory=list)
    sockets_closed: int = 0
    _answers: dict[int, asyncio.Future[Any]] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    @property
    def text(self) -> str:
        """What the console has drawn so far, without colours and places; what was drawn together stands together."""
        return ESCAPES.sub("", self.heard.decode(errors="ignore"))

    async def listen(self) -> None:
        async for message in self.devtools:
            said = message.json()
            if "id" in said:
                self._answers.pop(said["id"]).set_result(said)
            else:
                self._hear(said["method"], said["params"])

    def _hear(self, what: str, told: Any) -> None:
        if what == "Network.webSocketFrameReceived" and told["response"]["opcode"] == 2:
            self.heard += base64.b64decode(told["response"]["payloadData"])
        elif what == "Network.webSocketClosed":
            self.sockets_closed += 1
        elif what == "Runtime.exceptionThrown":
            self.complaints.append(told["exceptionDetails"]["exception"].get("description", "an exception"))
        elif what == "Log.entryAdded" and told["entry"]["level"] == "error":
            self.complaints.append(told["entry"]["text"])

    async def do(self, method: str, **params: Any) -> Any:
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        await self.devtools.send_json({"id": number, "method": method, "params": params})
        said = await asyncio.wait_for(answer, PATIENCE_S)
        assert "error" not in said, said
        return said["result"]

    async def open(self, url: str) -> None:
        self.heard = b""
        await self.do("Page.navigate", url=url)

    async def script(self, text: str) -> Any:
        """The value of an expression in the page."""
        return (await self.do("Runtime.evaluate", expression=text, awaitPromise=True))["result"].get("value")

    async def press(self, *keys: str) -> None:
        """Characters, or names of keys such as Enter and Escape."""
        codes = {"Enter": 13, "Escape": 27}
        for key in keys:
            more: dict[str, Any] = {"windowsVirtualKeyCode": codes[key]} if key in codes else {"text": key}
            await self.do("Input.dispatchKeyEvent", type="keyDown", key=key, **more)
            await self.do("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def until(self, true: Callable[[], bool], what: str) -> None:
        end = asyncio.get_running_loop().time() + PATIENCE_S
        while not true():
            assert asyncio.get_running_loop().time() < end, f"waited for {what}; it was told:\n{self.text[-4000:]}"
            await asyncio.sleep(0.05)

    async def until_drawn(self, words: str) -> None:
        await self.until(lambda: words in self.text, repr(words))

    async def picture(self, path: Path) -> None:
        """A PNG, for people who look into a failure."""
        path.write_bytes(base64.b64decode((await self.do("Page.captureScreenshot"))["data"]))


@asynccontextmanager
async def browser() -> AsyncIterator[Page]:
    """Leaves nothing behind."""
    assert CHROMIUM is not None
    with tempfile.TemporaryDirectory(prefix="opsconsole-browser-", ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [CHROMIUM, f"--user-data-dir={profile}", *OPTIONS],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            port = await _port(Path(profile) / "DevToolsActivePort")
            async with aiohttp.ClientSession() as http:
                async with http.get(f"http://127.0.0.1:{port}/json/list") as answer:
                    tab = next(t for t in await answer.json() if t["type"] == "page")
                async with http.ws_connect(tab["webSocketDebuggerUrl"], max_msg_size=1 << 26) as devtools:
                    page = Page(devtools)
                    listening = asyncio.create_task(page.listen())
                    for domain in ("Page", "Network", "Runtime", "Log"):
                        await page.do(f"{domain}.enable")
                    try:
                        yield page
                    finally:
                        listening.cancel()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


async def _port(file: Path) -> int:
    end = asyncio.get_running_loop().time() + PATIENCE_S
    while not (file.exists() and file.read_text().strip()):
        assert asyncio.get_running_loop().time() < end, "the browser does not start"
        await asyncio.sleep(0.05)
    return int(file.read_text().split()[0])
