"""The host "local": the same session without SSH."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from opsconsole.errors import UsageError
from opsconsole.transport.address import HostAddress
from opsconsole.transport.errors import TransportError, Unreach
from opsconsole.transport.link import Connected, Line
from tests.transport.driving import watching


async def test_a_local_host_answers_and_its_agent_leaves(tmp_path: Path) -> None:
    async with watching(HostAddress("here", "local", state_dir=str(tmp_path / "a state"))) as watched:
        await watched.until_live()
        assert (await watched.pool.request("here", "echo", 5.0, text="hi"))["echo"] == "hi"
        await watched.until(lambda: len(watched.of(Line)) >= 2)
        connected = watched.of(Connected)[0]
        assert connected.boot.state_dir == str(tmp_path / "a state")
        pid = connected.hello["pid"]
        await watched.pool.aclose()
        await watched.until(lambda: not os.path.exists(f"/proc/{pid}") or "Z" in state_of(pid))


def state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "Z"


async def test_a_quoted_path_reaches_no_shell(tmp_path: Path) -> None:
    odd = tmp_path / "it's $(touch hit) `touch hit`; touch hit #"
    async with watching(HostAddress("here", "local", state_dir=str(odd))) as watched:
        await watched.until_live()
    assert "kit" in os.listdir(odd) and "hit" not in os.listdir(tmp_path)


async def test_the_named_python_alone_is_used(tmp_path: Path) -> None:
    async with watching(
        HostAddress("good", "local", state_dir=str(tmp_path / "g"), python=sys.executable),
        HostAddress("bad", "local", state_dir=str(tmp_path / "b"), python="/nonexistent/python3"),
    ) as watched:
        await watched.until_live("good")
        assert "none on PATH" in await watched.until_lost("bad", Unreach.NO_PYTHON)


async def test_a_foreign_state_directory_is_refused(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a directory away")
    directory = tmp_path / "theirs"
    directory.mkdir()
    os.chown(directory, 65534, 65534)
    async with watching(HostAddress("here", "local", state_dir=str(directory))) as watched:
        assert "belongs to another user" in await watched.until_lost("here", Unreach.STATE_DIR)


async def test_requests_to_hosts_that_are_not_there(tmp_path: Path) -> None:
    async with watching(HostAddress("here", "local", state_dir="/proc/nope")) as watched:
        with pytest.raises(TransportError) as caught:
            await watched.pool.request("here", "echo", 1.0)
        assert caught.value.kind == Unreach.NEVER_SEEN and not caught.value.outcome_unknown
        with pytest.raises(UsageError):
            await watched.pool.request("elsewhere", "echo", 1.0)


def test_the_pool_alone_does_not_import_asyncssh() -> None:
    code = "import sys, opsconsole.transport.pool, opsconsole.transport.check; sys.exit('asyncssh' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
