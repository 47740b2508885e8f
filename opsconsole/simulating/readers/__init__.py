"""Reads the logs that sites keep and researchers publish. What is wrong in them is counted, not mended."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from opsconsole.simulating.job import Job, Log
from opsconsole.simulating.oddities import Odd
from opsconsole.simulating.readers.documents import read_document
from opsconsole.simulating.readers.finding import find_delimiter, find_table, header_of
from opsconsole.simulating.readers.journals import is_journal, read_journal
from opsconsole.simulating.readers.opening import file_name, lines_of, refusal
from opsconsole.simulating.readers.rows import RowReader
from opsconsole.simulating.readers.tables import SWF, Table

Cells = Sequence[str] | Odd
Lines = Iterator[tuple[int, str]]


def read_log(path: str, columns: Mapping[str, str] | None = None) -> Log:
    """The jobs of a log, by submission; `-` is the standard input. `columns`: of --map, by field.

    Raises ConfigError where it cannot be read at all or has no known format, UsageError for `columns`, StoreError.
    """
    if is_journal(path):
        return read_journal(path)
    log = Log(file_name(path), "")
    lines = lines_of(path, log.oddities)
    comments: list[str] = []
    first = _first(lines, comments)
    if first is None:
        raise refusal(path, "holds no rows", "is it the right file?")
    if first[1].lstrip()[:1] in "[{":
        text = "\n".join(chain([first[1]], (line for _, line in lines)))
        if "bad_bytes" in log.oddities.counts:
            text = text.replace("\\x", "\\\\x")  # our escapes are none of JSON
        table, header, rows = read_document(path, text)
        return _jobs(log, RowReader(table, header, log.oddities), rows)
    table, has_header = find_table(path, [first[1]], columns or {})
    delimiter = find_delimiter(first[1]) if table is not SWF else ""
    header = header_of(first[1], delimiter) if has_header else list(table.header)
    if header[-1:] == [""]:  # sacct --parsable ends each line with a delimiter
        header.pop()
    body = lines if has_header else chain([first], lines)
    reader = RowReader(table, header, log.oddities, _begins_ms(comments, table))
    return _jobs(log, reader, _rows(body, delimiter, table, len(header)))


def _first(lines: Lines, comments: list[str]) -> tuple[int, str] | None:
    """The first line that is neither empty nor a comment."""
    for number, line in lines:
        if line.startswith(("#", ";")):
            comments.append(line)
        elif line.strip():
            return number, line
    return None


def _begins_ms(comments: Iterable[str], table: Table) -> int:
    """When an SWF log begins, as its header says."""
    for comment in comments if table is SWF else ():
        name, _, value = comment.lstrip("; ").partition(":")
        if name.strip() == "UnixStartTime" and value.strip().isdigit():
            return int(value) * 1000
    return 0


def _rows(lines: Iterable[tuple[int, str]], delimiter: str, table: Table, wanted: int) -> Iterator[tuple[int, Cells]]:
    """The cells of each line; `wanted` is how many the header has."""
    for number, line in lines:
        if not line.strip() or line.startswith(("#", ";")):
            continue
        if delimiter and '"' in line and delimiter != "|":
            cells = next(csv.reader([line], delimiter=delimiter))
        else:
            cells = line.split(delimiter or None)
        if len(cells) == wanted + 1 and not cells[-1]:
            cells.pop()
        if table is SWF:
            cells = ["" if cell in ("-1", "-1.00") else cell for cell in cells]
        if len(cells) == wanted:
            yield number, cells
        else:
            kind = "half_line" if len(cells) < wanted else "extra_fields"
            yield number, Odd(kind, f"{len(cells)} of {wanted}: {line[:60]}")


def _jobs(log: Log, reader: RowReader, rows: Iterable[tuple[int, Cells]]) -> Log:
    log.format = reader.table.name
    jobs: dict[str, Job] = {}
    for line, cells in rows:
        log.rows += 1
        try:
            if isinstance(cells, Odd):
                raise cells
            _keep(log, jobs, reader.read(cells, line), reader.table.requeues)
        except Odd as odd:
            log.oddities.add(odd.kind, line, odd.detail)
    log.jobs = sorted(
        jobs.values(), key=lambda job: job.submitted_at
    )  # a stable sort: rows of one instant stay in order
    return log


def _keep(log: Log, jobs: dict[str, Job], job: Job, requeues: bool) -> None:
    """The first of an id; of a job that was requeued the last. Raises Odd."""
    earlier = jobs.get(job.id)
    if earlier is not None:
        if not requeues or replace(earlier, line=job.line) == job:
            raise Odd("duplicate_id", f"{job.id}, first in line {earlier.line}")
        log.oddities.add("earlier_attempt", earlier.line, job.id)
        del jobs[job.id]
    jobs[job.id] = job
