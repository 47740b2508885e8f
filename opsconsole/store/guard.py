"""Where a store may lie: on a local disk, in a directory that nobody else can write."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from opsconsole.store.errors import StoreError

NETWORK = ("nfs", "cifs", "smb", "lustre", "gpfs", "beegfs", "ceph", "fuse.sshfs", "fuse.glusterfs", "afs", "9p")
LONGEST_PATH = 900


def prepare_directory(path: Path) -> Path:
    """Makes the directory if it is missing (0700) and refuses one that a store is not safe in."""
    if len(str(path)) > LONGEST_PATH:
        raise StoreError(
            f"the state directory's path is {len(str(path))} characters long", advice="choose a shorter one"
        )
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        info = path.stat()
    except OSError as error:
        raise StoreError(
            f"the state directory {path} cannot be made: {error.strerror}", advice="set state_dir in the inventory"
        ) from error
    if info.st_uid != os.geteuid():
        raise StoreError(f"the state directory {path} belongs to another user", advice="set state_dir to one of yours")
    if info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise StoreError(f"others can write to the state directory {path}", advice=f"run: chmod go-w {path}")
    kind = filesystem(path)
    if kind.startswith(NETWORK):
        raise StoreError(
            f"the state directory {path} is on {kind}: SQLite is not safe on network file systems",
            advice="set state_dir to a local disk of the head node",
        )
    return path


def filesystem(path: Path, mounts: str = "/proc/self/mounts") -> str:
    """The type of the file system that holds the path; empty where nobody can tell."""
    best, kind = "", ""
    try:
        lines = Path(mounts).read_text().splitlines()
    except OSError:
        return ""
    real = os.path.realpath(path)
    for line in lines:
        fields = line.split()
        if len(fields) < 3:
            continue
        point = fields[1].replace("\\040", " ")
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, fields[2]
    return kind
