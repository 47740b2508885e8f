"""What could come next in a filter: keys of columns, then what their rows say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from opsconsole.presenting.filtering import SIGNS, UNKNOWN
from opsconsole.presenting.rows import Column, TableView, find_column
from opsconsole.presenting.text import clean

LAST = re.compile(r'(?:[^\s"]|"[^"]*"|"[^"]*$)*$')  # the part that is being typed
PART = re.compile(rf"(?P<head>!?(?P<key>[A-Za-z][\w.-]*)(?P<sign>{'|'.join(SIGNS)}))(?P<value>.*)", re.S)
LOOKED_AT = 2000  # rows
MOST = 40


def last_part(text: str) -> str:
    """Behind the last blank that stands in no quotes."""
    found = LAST.search(text)
    return found[0] if found is not None else ""


def complete_filter(text: str, view: TableView) -> Sequence[str]:
    """Whole parts that the last one could become, the likeliest first."""
    part = last_part(text)
    match = PART.fullmatch(part)
    if match is None:
        no = "!" if part.startswith("!") else ""
        begun = part.removeprefix("!").lower()
        heads = (column.key + _sign(column) for column in view.columns if column.key)
        return [no + head for head in heads if head.startswith(begun)]
    at = find_column(view.columns, match["key"])
    if at is None or match["sign"] not in ("=", "!="):
        return ()
    begun = match["value"].replace('"', "").casefold()
    return [match["head"] + _quoted(value) for value in _values(view, at) if value.casefold().startswith(begun)][:MOST]


def _sign(column: Column) -> str:
    """What mostly stands behind the key."""
    return ">" if column.right and not column.by.endswith("_ms") else "="


def _values(view: TableView, at: int) -> Iterable[str]:
    """Words of that column, the most frequent first; numbers are not listed."""
    column, read = view.columns[at], view.reader(at)
    if column.order:
        return column.order
    counts = Counter(word for n in range(min(LOOKED_AT, len(view.rows))) for word in _said(_main(read(n))))
    return [word for word, _ in counts.most_common()]


def _main(value: Any) -> Any:
    """Of a column that shows several."""
    return next(filter(None, value), "") if isinstance(value, tuple) else value


def _said(value: Any) -> Iterable[str]:
    if value is None:
        yield UNKNOWN
    elif isinstance(value, bool):
        yield "yes" if value else "no"
    elif isinstance(value, str):
        if value and '"' not in value:
            yield clean(value, 60)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _said(part)


def _quoted(value: str) -> str:
    return f'"{value}"' if re.search(r"\s", value) else value
