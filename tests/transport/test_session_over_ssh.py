"""A session with a real sshd: bootstrap by every login shell, requests, bad lines, ends."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from opsconsole.transport.errors import TransportError, Unreach
from opsconsole.transport.link import Connected, Disconnected, Line, LinkState
from tests.sshd import LOGIN_SHELLS, SshdFactory
from tests.transport.driving import KIT, address_of, watching

pytestmark = pytest.mark.sshd


async def test_connect_place_the_kit_and_answer(sshd_factory: SshdFactory) -> None:
    host = sshd_factory("gpu001", max_sessions=1)
    async with watching(address_of(host), known=[host]) as watched:
        await watched.until_live()
        answer = await watched.pool.request("gpu001", "echo", 5.0, text="ä\n'$(x)")
        assert answer["ok"] and answer["echo"] == "ä\n'$(x)"
        connected = watched.of(Connected)[0]
        assert connected.boot.home == str(host.home) and not connected.boot.have
        assert connected.hello["argv"] == ["agent", "--state-dir", str(host.state_dir)]
        assert (host.state_dir / "kit" / KIT.name).read_bytes() == KIT.data
        await watched.until(lambda: len(watched.of(Line)) >= 3)
        status = watched.pool.status("gpu001")
        assert status.rtt_s is not None and status.rtt_s < 5 and status.kind is None


async def test_the_second_connection_finds_the_kit(sshd_factory: SshdFactory) -> None:
    host = sshd_factory("gpu001")
    for expected in (False, True):
        async with watching(address_of(host), known=[host]) as watched:
            await watched.until_live()
            assert watched.of(Connected)[0].boot.have is expected


async def test_a_truncated_kit_is_placed_again(sshd_factory: SshdFactory) -> None:
    host = sshd_factory("gpu001")
    kit = host.state_dir / "kit" / KIT.name
    kit.parent.mkdir(parents=True)
    kit.write_bytes(KIT.data[:100])
    async with watching(address_of(host), known=[host]) as watched:
        await watched.until_live()
        assert kit.read_bytes() == KIT.data


@pytest.mark.parametrize("shell", LOGIN_SHELLS)
async def test_every_login_shell_with_banner_and_noisy_rc(sshd_factory: SshdFactory, shell: str) -> None:
    """G4-09."""
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    host = sshd_factory("gpu001", shell=shell, banner="Authorised use only\n" * 50)
    noise = "printf 'rc \\033[31mnoise without an end'\n"
    (host.home / ".config" / "fish").mkdir(parents=True)
    for rc in (".bashrc", ".zshenv", ".cshrc", ".tcshrc", ".config/fish/config.fish"):
        (host.home / rc).write_text(noise)
    async with watching(address_of(host), known=[host]) as watched:
        await watched.until_live()
        assert (await watched.pool.request("gpu001", "echo", 5.0, text=shell))["echo"] == shell
        assert shell == "dash" or "noise without an end" in watched.of(Connected)[0].noise


async def test_a_megabyte_of_noise_and_an_rc_that_reads_a_line(sshd_factory: SshdFactory) -> None:
    """G4-09."""
    command = 'head -c 1500000 /dev/zero | tr "\\\\0" x; read line; exec bash -c "$SSH_ORIGINAL_COMMAND"'
    host = sshd_factory("gpu001", force_command=command)
    async with watching(address_of(host), known=[host]) as watched:
        await watched.until_live()


async def test_a_foreign_locale_and_environment(sshd_factory: SshdFactory) -> None:
    """G4-21."""
    host = sshd_factory("gpu001", env={"LC_ALL": "xx_YY.ISO-8859-9", "LANG": "tr_TR", "PS4": "$(echo x)", "ENV": "/x"})
    async with watching(address_of(host), known=[host]) as watched:
        await watched.until_live()
        assert watched.of(Connected)[0].hello["env"]["LANG"] == "tr_TR"  # as the host has it; nothing of ours


async def test_bad_lines_are_counted_and_harm_nobody(sshd_factory: SshdFactory) -> None:
    host = sshd_factory("gpu001")
    async with watching(address_of(host), known=[host]) as watched:
        await watched.until_live()
        overlong = asyncio.create_task(watched.pool.request("gpu001", "overlong", 10.0, size=3_000_000))
        await watched.pool.request("gpu001", "garbage", 5.0)
        assert (await overlong)["ok"]
        status = watched.pool.status("gpu001")
        assert (status.state, status.bad_lines) == (LinkState.LIVE, 3)


async def test_a_deadline_passes_and_the_link_lives(sshd_factory: SshdFactory) -> None:
    host = sshd_factory("gpu001")
    async with watching(address_of(host), known=[host]) as watched:
        await watched.until_live()
        with pytest.raises(TransportError) as caught:
            await watched.pool.request("gpu001", "never", 0.2)
        assert caught.value.kind == Unreach.TIMED_OUT and caught.value.outcome_unknown
        assert (await watched.pool.request("gpu001", "echo", 5.0))["ok"]


async def test_an_agent_that_dies_is_started_again_and_its_words_are_kept(sshd_factory: SshdFactory) -> None:
    host = sshd_factory("gpu001")
    async with watching(address_of(host), known=[host]) as watched:
        await watched.until_live()
        with pytest.raises(TransportError) as caught:
            await watched.pool.request("gpu001", "exit", 5.0)
        assert caught.value.outcome_unknown
        await watched.until(lambda: len(watched.of(Connected)) == 2)
        ended = watched.of(Disconnected)[0]
        assert ended.kind == Unreach.CLOSED and "the agent gives up" in ended.why and "status 7" in ended.why


async def test_no_python(sshd_factory: SshdFactory, tmp_path: Path) -> None:
    """G4-22."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("id", "uname", "mkdir", "rm", "wc", "tail", "tr", "sed"):
        (tools / tool).symlink_to(str(shutil.which(tool)))
    (tools / "python3").write_text("#!/bin/sh\necho 2.6.6\n")
    (tools / "python3").chmod(0o755)
    host = sshd_factory("gpu001", env={"PATH": str(tools)})
    async with watching(address_of(host), known=[host]) as watched:
        said = await watched.until_lost("gpu001", Unreach.NO_PYTHON)
        assert f"{tools}/python3 2.6.6" in said and "3.8 or newer" in said


async def test_a_state_directory_that_cannot_be_written_names_path_and_reason(sshd_factory: SshdFactory) -> None:
    """G4-19."""
    host = sshd_factory("gpu001")
    host.state_dir.write_text("a file in the way")
    async with watching(address_of(host), known=[host]) as watched:
        said = await watched.until_lost("gpu001", Unreach.STATE_DIR)
        assert str(host.state_dir) in said and ("ot a directory" in said or "xists" in said)
        host.state_dir.unlink()
        await watched.until_live()


async def test_an_account_without_a_shell(sshd_factory: SshdFactory) -> None:
    host = sshd_factory("gpu001", force_command="echo This account is closed for the holidays; exit 1")
    async with watching(address_of(host), known=[host]) as watched:
        assert "closed for the holidays" in await watched.until_lost("gpu001", Unreach.NO_SHELL)


async def test_a_shell_that_never_gets_ready(sshd_factory: SshdFactory) -> None:
    host = sshd_factory("gpu001", force_command="echo please wait; sleep 100")
    async with watching(address_of(host), known=[host], boot_timeout_s=0.7) as watched:
        assert "please wait" in await watched.until_lost("gpu001", Unreach.TIMED_OUT)


async def test_another_store_is_fenced(sshd_factory: SshdFactory) -> None:
    host = sshd_factory("gpu001")
    async with watching(address_of(host), known=[host], store="other") as watched:
        assert "store s1 leads" in await watched.until_lost("gpu001", Unreach.FENCED)
