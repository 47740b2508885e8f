"""known_hosts: the same finds as ssh-keygen -F, and what follows from them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from opsconsole.transport.hostkeys import KnownHosts, KnownHostsStore, fingerprint, read_known_hosts
from tests.sshd import make_key, public_key

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="no ssh-keygen here")


@pytest.fixture
def key(tmp_path: Path) -> str:
    return public_key(make_key(tmp_path / "key"))


def index_of(*lines: str) -> KnownHosts:
    index = KnownHosts()
    for number, line in enumerate(lines, 1):
        index.add_line(f"f:{number}", line)
    return index


NAMES = ("gpu1", "[gpu1]:2222", "*.rack,!bad.rack", "gpu?", "10.0.0.7,alias", "::1", "[fe80::1%eth0]:22000", "UPPER")
LOOKUPS = (
    ("gpu1", 22),
    ("gpu1", 2222),
    ("gpu12", 22),
    ("a.rack", 22),
    ("bad.rack", 22),
    ("10.0.0.7", 22),
    ("alias", 22),
    ("::1", 22),
    ("fe80::1%eth0", 22000),
    ("upper", 22),
)


@pytest.mark.parametrize("hashed", [False, True])
def test_it_finds_what_openssh_finds(tmp_path: Path, key: str, hashed: bool) -> None:
    file = tmp_path / "known_hosts"
    file.write_text("".join(f"{name} {key} number{number}\n" for number, name in enumerate(NAMES)))
    if hashed:
        subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(file)], check=True, capture_output=True)
    index = read_known_hosts([str(file)])
    for host, port in LOOKUPS:
        name = host if port == 22 else f"[{host}]:{port}"
        theirs = subprocess.run(["ssh-keygen", "-F", name, "-f", str(file)], capture_output=True, text=True).stdout
        lines = [line.split()[-1] for line in theirs.splitlines() if line.startswith("# Host")]
        ours = [entry.where.rsplit(":", 1)[1] for entry in index.trust(host, port).entries]
        assert sorted(ours) == sorted(lines), (host, port, theirs)


def test_a_bare_name_counts_only_when_it_matches(key: str) -> None:
    trust = index_of(f"gpu1 {key}").trust("gpu1", 2222)
    assert trust.keys() == [key] and trust.known == ()


def test_markers_are_kept_apart(key: str) -> None:
    index = index_of(f"@cert-authority *.rack {key}", f"@revoked * {key}", f"a.rack {key}")
    trust = index.trust("a.rack", 22)
    assert [len(trust.keys(marker)) for marker in ("", "cert-authority", "revoked")] == [1, 1, 1]
    assert "cert" in trust.algorithms()[0]
    assert index.trust("elsewhere", 22).keys("revoked") == [key]


def test_known_types_are_asked_for_first() -> None:
    trust = index_of("gpu1 ssh-rsa AAAAB3NzaC1yc2E=").trust("gpu1", 22)
    assert trust.algorithms()[:3] == ("rsa-sha2-512", "rsa-sha2-256", "ssh-ed25519")


def test_bad_lines_are_named_and_trusted_for_nothing(key: str) -> None:
    index = index_of("gpu1", f"@nonsense gpu1 {key}", f"|1|bad {key}", "# comment", "")
    assert index.bad_lines == ["f:1", "f:2", "f:3"] and index.trust("gpu1", 22).entries == ()


def test_the_fingerprint_is_the_one_of_ssh_keygen(tmp_path: Path) -> None:
    path = make_key(tmp_path / "k")
    said = subprocess.run(["ssh-keygen", "-l", "-f", str(path)], capture_output=True, text=True).stdout
    assert fingerprint(public_key(path)) in said
    assert fingerprint("ssh-ed25519 ä") == "unreadable"


async def test_a_changed_file_is_read_again(tmp_path: Path, key: str) -> None:
    store, file = KnownHostsStore(), tmp_path / "known_hosts"
    assert (await store.index((str(file),))).trust("gpu1", 22).entries == ()
    file.write_text(f"gpu1 {key}\n")
    first = await store.index((str(file),))
    assert first.trust("gpu1", 22).known and await store.index((str(file),)) is first
