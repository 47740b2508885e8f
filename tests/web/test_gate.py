"""Who gets at a served console, and with what: other pages, other names, spent tokens, words that nobody expects."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import aiohttp.web
import pytest

from opsconsole.cli import webserve
from tests.cli.told import Told
from tests.waiting import until
from tests.web.served import PATIENCE_S, Served, served, small_cluster, words_of

DRAWN = b"Availability"


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One for all who only ask it."""
    with served(small_cluster(tmp_path_factory.mktemp("asked"))) as web:
        yield web


async def drawn(socket: aiohttp.ClientWebSocketResponse) -> None:
    """The console behind it has drawn its first screen."""
    heard = b""
    while DRAWN not in heard:
        message = await socket.receive(PATIENCE_S)
        assert message.type is aiohttp.WSMsgType.BINARY, message
        heard += message.data


async def page(http: aiohttp.ClientSession, web: Served) -> aiohttp.ClientWebSocketResponse:
    """The socket of a page of its own, with its console drawn."""
    socket = await http.ws_connect(f"ws://{web.address}/ws", origin=f"http://{web.address}")
    await drawn(socket)
    return socket


async def status(http: aiohttp.ClientSession, url: str, **headers: str) -> int:
    async with http.get(url, headers=headers) as answer:
        return answer.status


async def refused_socket(http: aiohttp.ClientSession, url: str, origin: str | None) -> int:
    with pytest.raises(aiohttp.WSServerHandshakeError) as error:
        await http.ws_connect(url, origin=origin)
    return error.value.status


async def test_only_its_own_page_gets_a_console(cluster: Told) -> None:
    with served(cluster) as web:
        async with aiohttp.ClientSession() as http:
            at = f"ws://{web.address}/ws"
            for origin in (None, "http://evil.example", f"https://{web.address}", "null", f"http://{web.address}.evil"):
                assert await refused_socket(http, at, origin) == 403
            assert not web.consoles()
            async with http.ws_connect(at, origin=f"http://{web.address}") as own:
                await drawn(own)


@pytest.mark.parametrize("host", ["evil.example:8000", "localhost.evil.example", "127.0.0.1.nip.io", "[::1", "@"])
async def test_a_name_that_leads_here_is_not_ours(web: Served, host: str) -> None:
    """DNS rebinding: the page of another site, whose name now means this machine."""
    async with aiohttp.ClientSession() as http:
        assert await status(http, web.url, Host=host) == 403
        assert await status(http, web.url, Host="localhost:9000") == 200, "so it looks through a tunnel"


async def test_a_page_behind_a_proxy(cluster: Told) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    with served(cluster, "--port", port, "--public-url", "https://ops.example.org") as web:
        assert web.url == "https://ops.example.org/"
        at = f"http://127.0.0.1:{port}"
        async with aiohttp.ClientSession() as http:
            async with http.get(at, headers={"Host": "ops.example.org"}) as answer:
                assert "wss://ops.example.org/ws" in await answer.text()
                assert "connect-src wss://ops.example.org;" in answer.headers["Content-Security-Policy"]
            headers = {"Host": "ops.example.org"}
            async with http.ws_connect(f"{at}/ws", origin="https://ops.example.org", headers=headers) as own:
                await drawn(own)


async def test_the_token_is_good_once_and_for_one_console(cluster: Told) -> None:
    with served(cluster, "--write") as web:
        token = web.write_url.partition("?write=")[2]
        origin, at = f"http://{web.address}", f"ws://{web.address}/ws"
        async with aiohttp.ClientSession() as http:
            assert await status(http, f"{web.url}?write=guess") == 403
            assert await refused_socket(http, f"{at}/guess", origin) == 403
            assert [await status(http, web.write_url) for _ in "ab"] == [200, 200], "a page alone spends nothing"
            async with http.ws_connect(f"{at}/{token}", origin=origin) as writes:
                await drawn(writes)
                assert await refused_socket(http, f"{at}/{token}", origin) == 403
                assert await status(http, web.write_url) == 403
                async with http.ws_connect(at, origin=origin) as looks:
                    await drawn(looks)
                    assert sorted("--may-write" in words for words in web.consoles()) == [False, True]


@pytest.mark.parametrize(
    "path",
    [
        "/?write=$(touch%20{folder}/pwned)",
        "/ws?width=80;touch%20{folder}/pwned&height=24",
        "/ws?width=$(touch%20{folder}/pwned)&height=`touch%20{folder}/pwned`",
        "/ws/x;touch%20{folder}/pwned?width=1",
        "/static/..%2f..%2f..%2f..%2fetc%2fpasswd",
        "/?fontsize=%22%3E%3Cscript%3Ealert(1)%3C/script%3E",
    ],
)
async def test_an_address_gives_no_words_to_any_process(web: Served, path: str, tmp_path: Path) -> None:
    url = f"http://{web.address}{path.format(folder=tmp_path)}"
    async with aiohttp.ClientSession() as http:
        if path.startswith("/ws?"):
            async with http.ws_connect(url, origin=f"http://{web.address}") as socket:
                await drawn(socket)
                *_, newest = web.consoles()
                assert newest[1:5] == ["-m", "opsconsole", "served", "--inventory"]
                assert "pwned" not in str(web.consoles())
        else:
            async with http.get(url) as answer:
                assert "alert(1)" not in await answer.text()
                assert answer.status in (200, 403, 404)
    assert not (tmp_path / "pwned").exists()


async def test_what_is_no_word_of_a_page_does_no_harm(cluster: Told) -> None:
    with served(cluster) as web:
        own = f"http://{web.address}"
        async with aiohttp.ClientSession() as http, http.ws_connect(f"{own}/ws", origin=own) as socket:
            await drawn(socket)
            for said in (
                "[" * 100_000,
                "",
                "{",
                "[]",
                "17",
                '["stdin"]',
                '["stdin", 7]',
                '["stdin", "\\ud800"]',
                '["resize", {}]',
            ):
                await socket.send_str(said)
            await socket.send_str(json.dumps(["resize", {"width": 10**12, "height": -3}]))
            await socket.send_bytes(b"\x00" * 100)
            await socket.send_str(json.dumps(["ping", "17"]))
            while (message := await socket.receive(PATIENCE_S)).type is not aiohttp.WSMsgType.TEXT:
                assert message.type is aiohttp.WSMsgType.BINARY
            assert json.loads(message.data) == ["pong", "17"]


def test_terminals_have_sizes_that_exist() -> None:
    size = webserve.size
    assert size(10**12, -3) == (500, 5) and size(0, 10**9) == (20, 200) and size(120, 40) == (120, 40)


async def test_there_are_not_more_consoles_than_the_machine_bears(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And one that does not leave when its page does is killed."""
    monkeypatch.setattr(webserve, "LEAVE_S", 0.5)
    console = webserve.WebConsole("t", ["sleep", "600"], [], webserve.Gate())
    runner = aiohttp.web.AppRunner(console.app())
    await runner.setup()
    await aiohttp.web.TCPSite(runner, "127.0.0.1", 0).start()
    at = "http://{}:{}".format(*runner.addresses[0])
    async with aiohttp.ClientSession(at) as http:
        sockets = [await http.ws_connect("/ws", origin=at) for _ in range(webserve.MOST_SESSIONS)]
        assert await refused_socket(http, "/ws", at) == 503
        await asyncio.gather(*(socket.close() for socket in sockets))
        await until(lambda: not console.open, "the consoles to end")
    await runner.cleanup()


async def test_a_console_ends_with_its_socket(cluster: Told) -> None:
    with served(cluster) as web:
        async with aiohttp.ClientSession() as http:
            socket = await page(http, web)
            assert len(web.consoles()) == 1
            await socket.close()
            await until(lambda: not web.consoles(), "the console to end")


async def test_consoles_end_with_the_server_even_where_that_is_killed(cluster: Told) -> None:
    with served(cluster) as web:
        async with aiohttp.ClientSession() as http:
            socket = await page(http, web)
            pids = web.pids()
            web.process.kill()
            await until(lambda: not any(words_of(pid) for pid in pids), "the console to notice")
            await socket.close()


async def test_a_signal_ends_all(cluster: Told) -> None:
    with served(cluster) as web:
        async with aiohttp.ClientSession() as http:
            socket = await page(http, web)
            pids = web.pids()
            assert await asyncio.to_thread(web.end) == 0
            assert not any(words_of(pid) for pid in pids)
            await socket.close()


async def test_consoles_that_leave_are_let_go_without_a_word(cluster: Told) -> None:
    with served(cluster) as web:
        async with aiohttp.ClientSession() as http:
            pages = [await http.ws_connect(f"ws://{web.address}/ws", origin=f"http://{web.address}") for _ in range(4)]
            await asyncio.gather(*map(drawn, pages))
            assert await asyncio.to_thread(web.end) == 0
        assert web.process.stderr is not None and web.process.stderr.read() == ""
