"""Reads the logs that sites keep and researchers publish. What is wrong in them is counted, not mended."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice

from opsconsole.simulating.job import Job, Log
from opsconsole.simulating.oddities import Odd
from opsconsole.simulating.readers.documents import read_document
from opsconsole.simulating.readers.finding import Layout, find_layout
from opsconsole.simulating.readers.journals import is_journal, read_journal
from opsconsole.simulating.readers.opening import file_name, lines_of, refusal
from opsconsole.simulating.readers.rows import RowReader
from opsconsole.simulating.readers.tables import SWF, Table

Cells = Sequence[str] | Odd
Lines = Iterator[tuple[int, str]]
LOOKED_AT = 20  # lines, for the header


def read_log(path: str, columns: Mapping[str, str] | None = None) -> Log:
    """The jobs of a log, by submission; `-` is the standard input. `columns`: of --map, by field.

    Raises ConfigError where it cannot be read at all or has no known format, UsageError for `columns`, StoreError.
    """
    if is_journal(path):
        return read_journal(path)
    log = Log(file_name(path), "")
    lines = lines_of(path, log.oddities)
    comments: list[str] = []
    first = list(islice(_told(lines, comments), LOOKED_AT))
    if not first:
        raise refusal(path, "holds no rows", "is it the right file?")
    every = chain(first, lines)
    if first[0][1].lstrip()[:1] in "[{":
        text = "\n".join(line for _, line in every)
        if "bad_bytes" in log.oddities.counts:
            text = text.replace("\\x", "\\\\x")  # our escapes are none of JSON
        table, header, rows = read_document(path, text)
        return _jobs(log, RowReader(table, header, log.oddities), rows)
    layout = find_layout(path, [line for _, line in first], columns or {})
    reader = RowReader(layout.table, layout.header, log.oddities, _begins_ms(comments, layout.table))
    return _jobs(log, reader, _rows(_told(every, comments), layout))


def _told(lines: Iterable[tuple[int, str]], comments: list[str]) -> Lines:
    """Those that are neither empty nor comments."""
    for number, line in lines:
        if line.startswith(("#", ";")):
            comments.append(line)
        elif line.strip():
            yield number, line


def _begins_ms(comments: Iterable[str], table: Table) -> int:
    """When an SWF log begins, as its header says."""
    for comment in comments if table is SWF else ():
        name, _, value = comment.lstrip("; ").partition(":")
        if name.strip() == "UnixStartTime" and value.strip().isdigit():
            return int(value) * 1000
    return 0


def _rows(lines: Lines, layout: Layout) -> Iterator[tuple[int, Cells]]:
    """The cells of each line."""
    table, header, delimiter, header_at = layout
    for at, (number, line) in enumerate(lines):
        if header_at is not None and at <= header_at:
            if at < header_at:
                yield number, Odd("before_header", line[:60])
            continue
        if delimiter and '"' in line and delimiter != "|":
            cells = next(csv.reader([line], delimiter=delimiter))
        else:
            cells = line.split(delimiter or None)
        if len(cells) == len(header) + 1 and not cells[-1]:
            cells.pop()
        if table is SWF:
            cells = ["" if cell in ("-1", "-1.00") else cell for cell in cells]
        if len(cells) == len(header):
            yield number, cells
        else:
            kind = "half_line" if len(cells) < len(header) else "extra_fields"
            yield number, Odd(kind, f"{len(cells)} of {len(header)}: {line[:60]}")


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
