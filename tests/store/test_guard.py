"""Where a store may lie (G6-12), and whose file it may be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from opsconsole.errors import StoreError
from opsconsole.store import guard
from opsconsole.store.guard import filesystem, is_network, prepare_directory
from opsconsole.store.store import Store


def test_a_missing_directory_is_made_for_its_owner_only(tmp_path: Path) -> None:
    made = prepare_directory(tmp_path / "a" / "b")
    assert made.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_directory_that_others_can_write_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "state"
    path.mkdir()
    path.chmod(mode)
    with pytest.raises(StoreError, match="others can write") as refused:
        Store(path / "a.db")
    assert refused.value.advice == f"run: chmod go-w {path}"
    assert not (path / "a.db").exists()


def test_a_directory_that_others_can_replace_is_refused(tmp_path: Path) -> None:
    """A sticky parent, as /tmp is, is fine: only the owner can rename what lies in it."""
    parent = tmp_path / "open"
    parent.mkdir()
    parent.chmod(0o777)
    with pytest.raises(StoreError, match="others can replace") as refused:
        Store(parent / "state" / "a.db")
    assert refused.value.advice == f"run: chmod o-w {parent}"
    parent.chmod(0o1777)
    Store(parent / "state" / "a.db").close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_belongs_to_another_user_is_refused(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o700)
    os.chown(theirs, 12345, 12345)
    with pytest.raises(StoreError, match="belongs to another user"):
        Store(theirs / "a.db")
    mine = tmp_path / "mine" / "a.db"
    Store(mine).close()
    os.chown(mine, 12345, 12345)
    with pytest.raises(StoreError, match="belongs to another user"):
        Store(mine)


def test_a_file_that_others_can_write_or_a_link_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s" / "a.db"
    Store(path).close()
    path.chmod(0o666)
    with pytest.raises(StoreError, match="others can write to"):
        Store(path)
    path.chmod(0o600)
    (tmp_path / "s" / "b.db").symlink_to(path)
    with pytest.raises(StoreError, match="not a plain file"):
        Store(tmp_path / "s" / "b.db")


def test_a_path_that_is_too_long_or_no_directory_is_refused(tmp_path: Path) -> None:
    """G4-24."""
    with pytest.raises(StoreError, match="characters long"):
        prepare_directory(tmp_path / ("x" * 1000))
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be made") as refused:
        prepare_directory(tmp_path / "file" / "state")
    assert refused.value.advice == "set state_dir in the inventory"


@pytest.mark.parametrize(
    ("kind", "network"),
    [
        *((k, True) for k in ("nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "beegfs", "ceph", "fuse.sshfs", "9p")),
        *((k, True) for k in ("fuse.s3fs", "fuse.juicefs", "fuse.ceph", "wekafs", "fuse")),
        *((k, False) for k in ("ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "fuseblk", "")),
    ],
)
def test_network_file_systems_by_their_type(kind: str, network: bool) -> None:
    assert is_network(kind) is network


def test_a_store_on_nfs_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "filesystem", lambda path: "nfs4")
    with pytest.raises(StoreError, match="is on nfs4: SQLite is not safe") as refused:
        Store(tmp_path / "state" / "a.db")
    assert "local disk" in str(refused.value.advice)
    assert not (tmp_path / "state").exists(), "nothing is left on it"


def test_the_innermost_and_latest_mount_counts_whatever_its_name(tmp_path: Path) -> None:
    home = tmp_path / "my home"
    home.mkdir()
    mounts = tmp_path / "mounts"
    escaped = str(home).replace(" ", "\\040")
    mounts.write_text(f"/dev/sda / ext4 rw 0 0\nauto {escaped} autofs rw 0 0\nnas:/home {escaped} nfs4 rw 0 0\n")
    assert filesystem(home / "state", str(mounts)) == "nfs4"
    assert filesystem(tmp_path / "my homes", str(mounts)) == "ext4"
    assert filesystem(tmp_path, str(tmp_path / "none")) == ""
