"""The console in a browser: a page, and for each page that is open one console of its own, which ends with it.

textual-serve carries keys and pictures between the page's socket and the console's process. What it leaves open is
closed here: pages of other sites, names that lead to this address (DNS rebinding), sizes and words that nobody checked,
consoles that outlive their page.
"""

from __future__ import annotations

import asyncio
import contextlib
import html
import secrets
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from string import Template
from urllib.parse import urlsplit

from aiohttp import WSMessage, WSMsgType, web
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

MOST_SESSIONS = 16
LEAVE_S = 4.0
WIDTHS, HEIGHTS = (20, 500), (5, 200)
LOOPBACK = ("localhost", "127.0.0.1", "::1")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Gate:
    """Who is let in. `public`: the origin (scheme and host) under which a proxy shows it, or nothing.

    `token`: whoever opens a session with it may change the cluster; it is good once.
    """

    public: str = ""
    token: str = ""

    def knows(self, request: web.Request) -> bool:
        """Was it asked under a name of ours? On a port of its own, where somebody tunnels."""
        return name_of(request.host) in LOOPBACK or (bool(self.public) and request.host == urlsplit(self.public).netloc)

    def is_own_page(self, request: web.Request) -> bool:
        """Browsers say which page opens a socket; only ours may."""
        origin = request.headers.get("Origin", "")
        return origin in (f"http://{request.host}", self.public or None)

    def fits(self, token: str) -> bool:
        return bool(self.token) and secrets.compare_digest(token.encode(), self.token.encode())

    def spend(self, token: str) -> bool:
        """True for the right one, once."""
        if not self.fits(token):
            return False
        self.token = ""
        return True


class Session(AppService):
    """One console. No shell comes between; it is gone when `stop` returns."""

    def __init__(self, words: Sequence[str], websocket: web.WebSocketResponse, downloads: DownloadManager) -> None:
        super().__init__(
            "",
            write_bytes=websocket.send_bytes,
            write_str=websocket.send_str,
            close=websocket.close,  # type: ignore[arg-type]  # its answer is of no interest
            download_manager=downloads,
        )
        self.words = words

    async def _open_app_process(self, width: int = 80, height: int = 24) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            *self.words, stdin=pipe, stdout=pipe, stderr=pipe, env=self._build_environment(width, height)
        )
        self._stdin = self._process.stdin
        return self._process

    async def run(self) -> None:
        """Ends with the console, and its page's socket with it."""
        try:
            await super().run()
        finally:
            await self.remote_close()

    async def stop(self) -> None:
        """Kills what has not left in time. Not by `wait_for`: the reader of textual-serve outlives being cancelled."""
        if self._process is None:
            return
        leaving = asyncio.create_task(self._left(self._process))
        try:
            await asyncio.wait([leaving], timeout=LEAVE_S)
        finally:
            with contextlib.suppress(ProcessLookupError):
                if self._process.returncode is None:
                    self._process.kill()
        await leaving

    async def _left(self, process: asyncio.subprocess.Process) -> None:
        """By itself: it closes its output a little before it is gone."""
        await super().stop()
        await process.wait()


@dataclass
class WebConsole:
    """`command`: the console's words for a page that looks; `may_write` are added to it for one with the token."""

    title: str
    command: Sequence[str]
    may_write: Sequence[str]
    gate: Gate
    open: set[web.WebSocketResponse] = field(default_factory=set)
    downloads: DownloadManager = field(default_factory=DownloadManager)

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard])
        app.router.add_get("/", self._page)
        for name, kind in (("css", "text/css"), ("js", "text/javascript")):
            app.router.add_get(f"/page.{name}", _file(f"web.{name}", kind))
        app.router.add_get("/ws", self._socket)
        app.router.add_get("/ws/{token}", self._socket)
        app.router.add_static("/static", str(files("textual_serve") / "static"))
        app.on_shutdown.append(self._shut)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if not self.gate.knows(request):
            return refused(f"this console is not served as {request.host}")
        response = await handler(request)
        if not response.prepared:
            response.headers.update(self._headers(request))
        return response

    def _headers(self, request: web.Request) -> dict[str, str]:
        """The page takes nothing from elsewhere, talks to nobody else, and stands in no other page."""
        policy = (
            f"default-src 'self'; connect-src {self._sockets(request)}; style-src 'self' 'unsafe-inline'",
            "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        )
        return {
            "Content-Security-Policy": "; ".join(policy),
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
        }

    def _sockets(self, request: web.Request) -> str:
        """Where sockets of a page lead. One that came through the proxy goes back through it."""
        public = urlsplit(self.gate.public)
        if public.netloc and name_of(request.host) not in LOOPBACK:
            return f"{'wss' if public.scheme == 'https' else 'ws'}://{public.netloc}"
        return f"ws://{request.host}"

    async def _page(self, request: web.Request) -> web.Response:
        at, token = f"{self._sockets(request)}/ws", request.query.get("write", "")
        if token:
            if not self.gate.fits(token):
                return refused("this token is not good, or not any more: open / to look, or start opsconsole web again")
            at += f"/{token}"
        page = Template((files(__package__) / "web.html").read_text())
        text = page.substitute(title=html.escape(self.title), socket=html.escape(at, quote=True))
        return web.Response(text=text, content_type="text/html")

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        """A console for as long as the socket lives."""
        if not self.gate.is_own_page(request):
            return refused("only the console's own page opens a console")
        if len(self.open) >= MOST_SESSIONS:
            return web.Response(status=503, text=f"{MOST_SESSIONS} consoles are open already: close one\n")
        token = request.match_info.get("token", "")
        if token and not self.gate.spend(token):
            return refused("this token is not good, or not any more")
        websocket = web.WebSocketResponse(heartbeat=15)
        session = Session([*self.command, *(self.may_write if token else ())], websocket, self.downloads)
        self.open.add(websocket)
        try:
            await websocket.prepare(request)
            width, height = (request.query.get(name, "") for name in ("width", "height"))
            await session.start(*size(_number(width, 80), _number(height, 24)))
            async for message in websocket:
                await pass_on(message, websocket, session)
        finally:
            try:
                await session.stop()
            finally:
                self.open.discard(websocket)
        return websocket

    async def _shut(self, app: web.Application) -> None:
        for websocket in list(self.open):
            await websocket.close()


async def pass_on(message: WSMessage, websocket: web.WebSocketResponse, session: AppService) -> None:
    """What a page says, to its console. What is none of its words is left out."""
    try:
        said = message.json() if message.type is WSMsgType.TEXT else None
    except (ValueError, RecursionError):
        return
    match said:
        case ["stdin", str(text)]:
            await session.send_bytes(text.encode(errors="replace"))
        case ["resize", {"width": int(width), "height": int(height)}]:
            await session.set_terminal_size(*size(width, height))
        case ["ping", str(when)]:
            await websocket.send_json(["pong", when])
        case ["focus"]:
            await session.focus()
        case ["blur"]:
            await session.blur()


def name_of(host: str) -> str:
    """Without the port; nothing of what is no host."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def size(width: int, height: int) -> tuple[int, int]:
    """A terminal that exists: nobody makes a console draw a billion cells."""
    return max(WIDTHS[0], min(WIDTHS[1], width)), max(HEIGHTS[0], min(HEIGHTS[1], height))


def _number(text: str, default: int) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else default


def _file(name: str, kind: str) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        return web.Response(text=(files(__package__) / name).read_text(), content_type=kind)

    return handler


def refused(why: str) -> web.Response:
    return web.Response(status=403, text=f"{why}\n")


def serve(console: WebConsole, listening: socket.socket) -> None:
    """Until a signal. All consoles have gone when it returns."""
    web.run_app(console.app(), sock=listening, print=None, access_log=None, shutdown_timeout=LEAVE_S + 2)
