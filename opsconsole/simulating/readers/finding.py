"""Which format a log has, by what stands in it. A name or an ending says nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from opsconsole.config.scalars import shown, suggestion
from opsconsole.errors import UsageError
from opsconsole.simulating.readers.opening import refusal
from opsconsole.simulating.readers.tables import (
    FIELDS,
    OWN,
    PAI_TASKS,
    SACCT,
    SACCT_GPUS,
    SWF,
    TABLES,
    Table,
)

DELIMITERS = "|\t;,"
SWF_LINE = re.compile(r"\s*-?\d+(\s+-?[\d.]+){17}\s*")
PAI_STATES = ("Terminated", "Failed", "Running", "Waiting")
DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def find_delimiter(header: str) -> str:
    """The one that stands in it most often; "" for columns parted by blanks."""
    best = max(DELIMITERS, key=header.count)
    return best if best in header else ""


def find_table(path: str, first: Sequence[str], columns: Mapping[str, str]) -> tuple[Table, bool]:
    """The table of a file that begins with these lines, none of them empty or a comment; and is the first a header?

    `columns` are those of --map, by field. Raises ConfigError where it is none that is known, UsageError for --map.
    """
    top = first[0]
    if SWF_LINE.fullmatch(top):
        return SWF, False
    delimiter = find_delimiter(top)
    names = header_of(top, delimiter)
    if _is_pai_without_header(top.split(",")):
        return PAI_TASKS, False
    found = _named(names)
    if columns:
        return _mapped(found or OWN, names, columns), True
    if found is None:
        raise refusal(path, *_why_none(top, names, delimiter), line=1)
    if found is SACCT and not set(SACCT_GPUS.split()) & set(names):
        raise refusal(path, "is of sacct without GPUs", "print it with AllocTRES and ReqTRES among --format", 1)
    return found, True


def header_of(line: str, delimiter: str) -> list[str]:
    """Names of columns in small letters."""
    cells = line.split(delimiter) if delimiter else line.split()
    names = [cell.strip().strip('"').lower() for cell in cells]
    return ["index", *names[1:]] if names[0] == "" else names  # pandas leaves the name of its first column out


def _named(names: Sequence[str]) -> Table | None:
    there = set(names)
    if {"state"} <= there and there & {"jobid", "jobidraw"}:
        return SACCT
    fitting = [table for table in TABLES if table.sign <= there]
    return max(fitting, key=lambda table: len(table.sign), default=None)


def _is_pai_without_header(cells: Sequence[str]) -> bool:
    return len(cells) == len(PAI_TASKS.header) and cells[3] in PAI_STATES


def _mapped(table: Table, names: Sequence[str], columns: Mapping[str, str]) -> Table:
    """The table with other columns. Raises UsageError."""
    for field, column in columns.items():
        if field not in FIELDS:
            raise UsageError(f"--map: there is no field {shown(field)}", advice=suggestion(field, FIELDS))
        if column.lower() not in names:
            raise UsageError(f"--map {field}: the log has no column {shown(column)}", advice=suggestion(column, names))
    found = replace(table, columns={**table.columns, **{f: (c.lower(),) for f, c in columns.items()}})
    if "submitted_at" in columns:
        found = replace(found, since_previous="")
    return found


def parse_map(texts: Sequence[str]) -> dict[str, str]:
    """`FIELD=COLUMN`, each once. Raises UsageError."""
    found: dict[str, str] = {}
    for text in (part for given in texts for part in given.split(",")):
        field, sign, column = text.partition("=")
        if not sign or not field or not column:
            raise UsageError(f"--map: {shown(text)} is no FIELD=COLUMN", advice="write for example gpus=NumGPUs")
        if field in found:
            raise UsageError(f"--map: {field} is given twice", advice="keep one of them")
        found[field] = column
    return found


def _why_none(top: str, names: Sequence[str], delimiter: str) -> tuple[str, str]:
    """What is wrong, and what to do."""
    fix = "docs/simulate.md lists the formats; --map FIELD=COLUMN names the columns of others"
    if {"date", "total"} <= set(names):
        return "is a table of GPUs by day and budget, no log", "give it with --budgets"
    if {"job_name", "inst_id"} <= set(names):
        return "is a PAI table without GPUs", "the task table (pai_task_table) tells them"
    if not delimiter or all(cell.replace(".", "", 1).isdigit() for cell in names if cell):
        return f"has no header that is known: {shown(top)}", fix
    return f"is of no known format; it has the columns {', '.join(names[:12])}", fix
