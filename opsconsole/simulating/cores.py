"""Many tasks on as many cores as there are, with progress; Ctrl-C ends all of it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")
Work = Callable[[T, Callable[[float], bool]], R]  # a task, and whom to tell what part is done; False: give up
LOOK_S = 0.1  # between two looks at how far the others are


def on_cores(work: Work[T, R], tasks: Sequence[T], workers: int, progress: Callable[[float], None]) -> list[R]:
    """The results, in the order of the tasks. What `work` holds is not copied to the others: it may be large.

    `progress` hears the part that is done. Ctrl-C ends all of it: KeyboardInterrupt.
    """
    workers = min(workers, len(tasks))
    if workers <= 1:
        return [_here(work, task, at / len(tasks), len(tasks), progress) for at, task in enumerate(tasks)]
    context = get_context("fork")
    parts, given_up = context.Array("d", len(tasks), lock=False), context.Event()
    with ProcessPoolExecutor(workers, context, _start, (work, parts, given_up, os.getpid())) as pool:
        try:
            with _ctrl_c_later():  # and never in the workers, which inherit that
                futures = [pool.submit(_in_worker, at, task) for at, task in enumerate(tasks)]
            for _ in _until_done(futures):
                progress(sum(parts) / len(tasks))
            return [future.result() for future in futures]
        finally:
            given_up.set()
            pool.shutdown(wait=True, cancel_futures=True)


def _here(work: Work[T, R], task: T, before: float, total: int, progress: Callable[[float], None]) -> R:
    def heard(part: float) -> bool:
        progress(before + part / total)
        return True

    return work(task, heard)


@contextmanager
def _ctrl_c_later() -> Iterator[None]:
    """One that comes meanwhile is heard at the end."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _until_done(futures: Sequence[Future[R]]) -> Iterator[None]:
    """Until all are done, or one of them failed."""
    while True:
        done, pending = wait(futures, LOOK_S, FIRST_EXCEPTION)
        yield
        if not pending or any(future.exception() is not None for future in done):
            return


# -- in a worker --------------------------------------------------------------------------------------------------

_shared: dict[str, Any] = {}  # what it was started with


def _start(work: Any, parts: Any, given_up: Any, parent: int) -> None:
    _shared.update(work=work, parts=parts, given_up=given_up, parent=parent)


def _in_worker(at: int, task: Any) -> Any:
    def heard(part: float) -> bool:
        _shared["parts"][at] = part
        return os.getppid() == _shared["parent"] and not _shared["given_up"].is_set()

    return _shared["work"](task, heard)
