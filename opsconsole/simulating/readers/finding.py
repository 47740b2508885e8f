"""Which format a log has, by what stands in it. A name or an ending says nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

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


class Layout(NamedTuple):
    """`header` are its columns; it stands in `at` of the lines that were looked at, or nowhere (None)."""

    table: Table
    header: list[str]
    delimiter: str
    at: int | None


def find_layout(path: str, first: Sequence[str], columns: Mapping[str, str]) -> Layout:
    """Of a file that begins with these lines, none of them empty or a comment. Before a header others may stand.

    `columns` are those of --map, by field. Raises ConfigError where it is none that is known, UsageError for --map.
    """
    for at, line in enumerate(first):
        if SWF_LINE.fullmatch(line):
            return Layout(SWF, list(SWF.header), "", None)
        if _is_pai_without_header(line.split(",")):
            return Layout(PAI_TASKS, list(PAI_TASKS.header), ",", None)
        delimiter, names = _split(line)
        table = _named(names)
        if columns and {column.lower() for column in columns.values()} <= set(names):
            return Layout(_mapped(table or OWN, names, columns), names, delimiter, at)
        if table is SACCT and not set(SACCT_GPUS.split()) & set(names):
            raise refusal(
                path, "is of sacct without GPUs", "print it with AllocTRES and ReqTRES among --format", at + 1
            )
        if table is not None and not columns:
            return Layout(table, names, delimiter, at)
    delimiter, names = _split(first[0])
    if columns:
        _mapped(OWN, names, columns)
    raise refusal(path, *_why_none(first[0], names, delimiter), line=1)


def _split(line: str) -> tuple[str, list[str]]:
    """What parts the columns, and their names; sacct --parsable ends each line with a delimiter."""
    delimiter = max(DELIMITERS, key=line.count)
    delimiter = delimiter if delimiter in line else ""
    names = header_of(line, delimiter)
    return delimiter, names[:-1] if names[-1] == "" else names


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
