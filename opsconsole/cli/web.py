"""`opsconsole web`: the console in a browser of this machine, to look; with `--write` one page may change things."""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
import secrets
import socket
import sys
from urllib.parse import urlsplit

from opsconsole.cli.wiring import Place
from opsconsole.errors import OpsConsoleError, UsageError

READ_ONLY = "it is served read-only: opsconsole web --write gives one page a token"


def run(args: argparse.Namespace) -> int:
    """Serves until a signal."""
    place = Place.of(args)
    public = _origin(args.public_url) if args.public_url else ""
    if not is_loopback(args.address) and not (args.i_have_a_proxy and public):
        raise UsageError(
            f"{args.address} can be reached from elsewhere, and this speaks plain HTTP and asks nobody who they are",
            advice="serve on 127.0.0.1 and come by `ssh -L`; or, behind a proxy that encrypts and asks, give "
            "--i-have-a-proxy --public-url https://…",
        )
    if args.write and not place.inventory.allow_write:
        raise UsageError("--write: the inventory says allow_write: false")
    try:
        from opsconsole.cli.webserve import Gate, WebConsole, serve
    except ImportError as error:
        raise OpsConsoleError(
            f"this needs what is not installed: {error.name}", advice="pip install 'opsconsole[web]'"
        ) from error
    listening = _listen(args.address, args.port)
    token = secrets.token_urlsafe(24) if args.write else ""
    words = [sys.executable, "-m", "opsconsole", "served", "--inventory", place.file, "--cluster", place.cluster.name]
    _tell(place.cluster.name, public or _url(listening), token)
    serve(WebConsole(f"opsconsole: {place.cluster.name}", words, ["--may-write"], Gate(public, token)), listening)
    return 0


def session(args: argparse.Namespace) -> int:
    """The console of one page: what `run` starts for it. One that looks leaves no files behind."""
    from opsconsole.cli.console import show
    from opsconsole.cli.desk import desk_of
    from opsconsole.ui.desk import Desk

    place = Place.of(args)
    desk = desk_of(args, place.inventory.console)
    if args.may_write:
        return asyncio.run(show(place, desk=desk))
    return asyncio.run(show(place, read_only=READ_ONLY, desk=Desk(desk.settings, desk.keymap)))


def is_loopback(address: str) -> bool:
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _origin(url: str) -> str:
    """Scheme and host alone. Raises UsageError."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.query:
        raise UsageError(f"--public-url: {url!r} is no address of a site", advice="for example https://ops.example.org")
    return f"{parts.scheme}://{parts.netloc}"


def _listen(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.create_server((address, port), family=family)
    except (OSError, OverflowError) as error:
        raise OpsConsoleError(
            f"cannot serve at {address} port {port}: {getattr(error, 'strerror', None) or error}",
            advice="choose another --port; 0 takes a free one",
        ) from error


def _url(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _tell(cluster: str, url: str, token: str) -> None:
    print(f"{cluster}, to look: {url}/")
    if token:
        print(f"to change something, in one page, once: {url}/?write={token}")
    print("Whoever has an account on this machine can open the first. Ctrl-C ends it.", flush=True)
