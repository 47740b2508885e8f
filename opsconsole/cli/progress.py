"""How far a long command is, for whoever looks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn


@contextmanager
def bar(doing: str) -> Iterator[Callable[[float], None]]:
    """On the standard error, where somebody looks at it; it hears the part that is done."""
    if not sys.stderr.isatty():
        yield lambda part: None
        return
    columns = (TextColumn(doing), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("", total=1.0)
        yield lambda part: shown.update(task, completed=part)
