"""The fence: this host serves one store, and within it never an older leader than one it has served before."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import Iterator, Tuple

from .files import read_json, write_json
from .state import HostError, StateDir

Fence = Tuple[str, int]


class Busy(Exception):
    """Another agent on this host changes something right now; try again shortly."""


@contextmanager
def exclusive(state: StateDir) -> Iterator[None]:
    """One agent at a time decides about fence and tokens. Raises Busy instead of waiting."""
    fd = os.open(state.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy() from None
        yield
    finally:
        os.close(fd)


def read_fence(state: StateDir) -> Fence | None:
    """None before first contact. Raises Damaged, OSError: then nobody is let through."""
    record = read_json(state.fence)
    return None if record is None else (str(record["store"]), int(record["epoch"]))


def check_words(store: object, epoch: object) -> Fence:
    if not isinstance(store, str) or not store or isinstance(epoch, bool) or not isinstance(epoch, int):
        raise HostError("bad_request", "`store` is a text and `epoch` a whole number")
    return store, epoch


def pass_fence(state: StateDir, store: object, epoch: object) -> None:
    """Let this leader through and remember its epoch. Raises HostError `fenced`. Call it inside `exclusive`."""
    name, number = check_words(store, epoch)
    known = read_fence(state)
    if known is not None and name != known[0]:
        raise HostError(
            "fenced", f"this host belongs to store {known[0]}, not to {name}; `adopt` takes it over", store=known[0]
        )
    if known is not None and number < known[1]:
        raise HostError(
            "fenced", f"epoch {number} is over: this host has served epoch {known[1]} already", epoch=known[1]
        )
    if known != (name, number):
        write_json(state.fence, {"store": name, "epoch": number})


def adopt(state: StateDir, store: object, epoch: object) -> None:
    """From now on this host belongs to `store`. The same store's older epoch stays locked out."""
    name, number = check_words(store, epoch)
    known = read_fence(state)
    if known is not None and known[0] == name:
        pass_fence(state, store, epoch)
        return
    write_json(state.fence, {"store": name, "epoch": number})
