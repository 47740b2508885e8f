"""The console in a real browser: it draws, takes keys, refuses to write without the token, and ends with its page."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser import CHROMIUM, browser
from tests.cli.told import Told
from tests.web.served import served

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: apt install chromium"),
]


async def test_the_console_draws_and_takes_keys(cluster: Told, tmp_path: Path) -> None:
    with served(cluster) as web:
        async with browser() as page:
            await page.open(web.url)
            await page.until_drawn("READ-ONLY")
            await page.press("2")
            await page.until_drawn("gpu04")
            await page.press(*":write 15m test", "Enter")
            await page.until_drawn("no write window: it is served read-only")
            assert not page.complaints
            assert await page.script("document.title") == "opsconsole: main"
            shown = await page.script("document.querySelector('.xterm-screen').clientWidth")
            assert shown > 800, "it fills the window"


async def test_one_page_may_write_with_the_token(cluster: Told) -> None:
    with served(cluster, "--write") as web:
        async with browser() as page:
            await page.open(web.write_url)
            await page.until_drawn("READ-ONLY")
            await page.press(*":write 15m test", "Enter")
            await page.until_drawn("WRITE 1")
            await page.open(web.write_url)
            await page.until(lambda: not web.consoles(), "the console of the page that was left to end")
            assert "this token is not good" in await page.script("document.body.innerText")
            await page.open(web.url)
            await page.until_drawn("READ-ONLY")
            assert all("--may-write" not in words for words in web.consoles())


async def test_a_console_that_is_left_leaves_its_page_with_a_word(cluster: Told) -> None:
    with served(cluster) as web:
        async with browser() as page:
            await page.open(web.url)
            await page.until_drawn("READ-ONLY")
            await page.press(*":quit", "Enter")
            await page.until(lambda: page.sockets_closed == 1, "the socket to close")
            closed = "getComputedStyle(document.querySelector('.closed')).display"
            assert await page.script(closed) == "block"
            await page.until(lambda: not web.consoles(), "its console to end")


async def test_a_page_of_another_site_gets_nothing(cluster: Told) -> None:
    """In the browser's own words: it sends its origin, and is refused."""
    with served(cluster) as web:
        async with browser() as page:
            await page.open("data:text/html,elsewhere")
            opened = await page.script(
                f"new Promise(r => {{ const s = new WebSocket('ws://{web.address}/ws');"
                " s.onopen = () => r('open'); s.onerror = () => r('refused'); })"
            )
            assert opened == "refused" and not web.consoles()
            read = await page.script(f"fetch('{web.url}').then(() => 'read', () => 'refused')")
            assert read == "refused"
