"""Small JSON files that are either the old one or the new one, whatever happens in between."""

from __future__ import annotations

import errno
import json
import os
from typing import Any, Dict

Record = Dict[str, Any]


class Damaged(ValueError):
    """A file of ours is there but says nothing that can be read. Never taken for missing."""


def sync_directory(path: str) -> None:
    """The names in `path` survive a power cut after this."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems cannot sync a directory
            raise
    finally:
        os.close(fd)


def write_json(path: str, value: Record, durable: bool = True) -> None:
    """Replace `path` whole. Raises OSError."""
    write_whole(path, json.dumps(value, separators=(",", ":")).encode("ascii"), durable)


def write_whole(path: str, data: bytes, durable: bool = True) -> None:
    """Replace `path` whole. With `durable` its content and name are on the disk on return. Raises OSError."""
    scratch = f"{path}.{os.getpid()}.new"
    fd = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        try:
            write_all(fd, data)
            if durable:
                os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(scratch, path)
    except OSError:
        remove(scratch)
        raise
    if durable:
        sync_directory(os.path.dirname(path))


def write_all(fd: int, data: bytes) -> None:
    """Every byte, or OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def read_json(path: str) -> Record | None:
    """The object in `path`, or None where there is no such file. Raises Damaged, OSError."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        value = json.loads(data)
    except ValueError as error:
        raise Damaged(f"{path} is damaged: {error}") from error
    if not isinstance(value, dict):
        raise Damaged(f"{path} holds no JSON object")
    return value


def remove(path: str) -> None:
    """`path` is gone afterwards; it may have been gone before."""
    try:
        os.unlink(path)
    except OSError:
        return
