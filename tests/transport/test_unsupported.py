"""Keywords of an ssh configuration that OpenSSH follows and opsconsole does not are reported, not ignored (G4-07)."""

from __future__ import annotations

from pathlib import Path

import pytest

from opsconsole.transport.unsupported import unsupported


def found(tmp_path: Path, text: str) -> list[tuple[int, str]]:
    path = tmp_path / "config"
    path.write_text(text)
    return [(each.line, each.keyword) for each in unsupported([str(path)])]


@pytest.mark.parametrize(
    "line",
    [
        "StrictHostKeyChecking no",
        "stricthostkeychecking=accept-new",
        'KnownHostsCommand "/usr/bin/keys %H"',
        "RevokedHostKeys ~/.ssh/revoked",
        "Match final host gpu*",
        "Match !canonical",
        "CanonicalizeHostname always",
        "PKCS11Provider /usr/lib/opensc.so",
        "  Ciphers = aes128-cbc",
    ],
)
def test_what_is_not_done_is_named_with_its_line(tmp_path: Path, line: str) -> None:
    text = f"# a comment\nHost *\n{line}\n"
    assert found(tmp_path, text) == [(3, line.replace("=", " ").split()[0])]


@pytest.mark.parametrize(
    "line",
    [
        "# StrictHostKeyChecking no",
        "StrictHostKeyChecking yes",
        "CanonicalizeHostname no",
        "Match host final.example.org",
        "ControlMaster auto",
        "SendEnv LANG LC_*",
        "HostKeyAlias gpu",
        "ProxyJump gate",
        "HashKnownHosts yes",
        "",
    ],
)
def test_what_is_followed_or_changes_nothing_is_not(tmp_path: Path, line: str) -> None:
    assert found(tmp_path, line) == []


def test_included_files_are_read_and_a_circle_ends(tmp_path: Path) -> None:
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d" / "site.conf").write_text(f"VerifyHostKeyDNS yes\nInclude {tmp_path}/config\n")
    (tmp_path / "config").write_text("Include conf.d/*.conf\nBindInterface ib0\n")
    (first, second) = unsupported([str(tmp_path / "config"), str(tmp_path / "missing")])
    assert (Path(first.file).name, first.line) == ("site.conf", 1) and second.keyword == "BindInterface"
    assert "known_hosts" in first.fix
