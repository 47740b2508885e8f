"""Where a store may lie: on a local disk, in a directory that nobody else can write."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from opsconsole.errors import StoreError

# By the beginning of the type: nfs4, smb3, cephfs and the like count too.
NETWORK = (
    *("nfs", "cifs", "smb", "ncpfs", "afs", "9p", "davfs", "ceph", "gluster", "ocfs2", "gfs"),
    *("lustre", "gpfs", "beegfs", "orangefs", "pvfs", "panfs", "wekafs"),
)
LOCAL_FUSE = ("fuseblk", "fuse.overlayfs", "fuse-overlayfs", "fuse.ext2", "fuse.ext4")
LONGEST_PATH = 900


def prepare_directory(path: Path) -> Path:
    """Makes the directory if it is missing (0700) and refuses one that a store is not safe in, before it is made."""
    if len(os.fsencode(path)) > LONGEST_PATH:
        raise StoreError(
            f"the state directory's path is {len(os.fsencode(path))} characters long", advice="choose a shorter one"
        )
    _require_local(path)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        info = path.stat()
    except OSError as error:
        raise StoreError(
            f"the state directory {path} cannot be made: {error.strerror}", advice="set state_dir in the inventory"
        ) from error
    if not stat.S_ISDIR(info.st_mode):
        raise StoreError(f"the state directory {path} is not a directory", advice="set state_dir in the inventory")
    if info.st_uid != os.geteuid():
        raise StoreError(f"the state directory {path} belongs to another user", advice="set state_dir to one of yours")
    if info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise StoreError(f"others can write to the state directory {path}", advice=f"run: chmod go-w {path}")
    _require_own_parents(path)
    return path


def _require_own_parents(path: Path) -> None:
    """Who can write above it can put another directory in its place; the sticky bit of /tmp forbids that."""
    for parent in path.resolve().parents:
        mode = parent.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise StoreError(
                f"others can replace the state directory {path}: they can write to {parent}",
                advice=f"run: chmod o-w {parent}",
            )


def _require_local(path: Path) -> None:
    kind = filesystem(path)
    if is_network(kind):
        raise StoreError(
            f"the state directory {path} is on {kind}: SQLite is not safe on network file systems",
            advice="set state_dir to a local disk of the head node",
        )


def is_network(kind: str) -> bool:
    """FUSE is taken for a network unless it is known to be local: sshfs, s3fs, juicefs and mergerfs lock badly."""
    if kind.startswith("fuse"):
        return kind not in LOCAL_FUSE
    return kind.startswith(NETWORK)


def filesystem(path: Path, mounts: str = "/proc/self/mounts") -> str:
    """The type of the file system that holds the path; empty where nobody can tell."""
    best, kind = "", ""
    try:
        lines = Path(mounts).read_text(errors="surrogateescape").splitlines()
    except OSError:
        return ""
    real = os.path.realpath(path)
    for line in lines:
        fields = line.split()
        if len(fields) < 3:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[1])
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):  # the later of two mounts on one point is the one in use
            best, kind = point, fields[2]
    return kind
