"""A forecast for people: what it rests on in sentences, then tables of ranges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from opsconsole.presenting.rows import Cell, Column, Row, TableView
from opsconsole.presenting.text import clean, count, few
from opsconsole.simulating.telling import gpu_h, percent, seconds

EXACT_BELOW_S = 600
MOST_ROWS = 10  # of those who move; --json has all
BETTER = {"wait_p50_s": -1, "wait_p90_s": -1, "delivered_gpu_h": 1, "delivered_over_owed": 1, "lost_gpu_h": -1}
Range = Mapping[str, Any] | None
Say = Callable[[Any], str]


def whole(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def hours(value: float | None) -> str:
    return "–" if value is None else gpu_h(value)


def about(value: float | None) -> str:
    """A span in s. To the second only where it is short: more nobody can know."""
    return seconds(value if value is None or value < EXACT_BELOW_S else round(value / 60) * 60)


FIGURES: tuple[tuple[str, str, Say], ...] = (
    ("wait p50", "wait_p50_s", about),
    ("wait p90", "wait_p90_s", about),
    ("occupancy", "occupancy", percent),
    ("delivered of owed", "delivered_over_owed", percent),
    ("delivered GPU-hours", "delivered_gpu_h", hours),
    ("unallocated GPU-hours", "unallocated_gpu_h", hours),
    ("preemptions", "preemptions", whole),
    ("lost GPU-hours", "lost_gpu_h", hours),
)


def in_words(found: Range, say: Say) -> str:
    """The median, and the range where it has any width."""
    if found is None:
        return "–"
    low, median, high = (say(found[part]) for part in ("low", "median", "high"))
    return median if low == high else f"{median} ({low} to {high})"


def signed(say: Say) -> Say:
    def said(value: float | None) -> str:
        if value is None:
            return "–"
        text = say(abs(value))
        return "0" if text == say(0) else f"{'−' if value < 0 else '+'}{text}"

    return said


def until(horizon_s: float) -> Say:
    """When something comes, from now on."""
    later = f"> {seconds(horizon_s)}"
    return lambda value: later if value is None else "now" if value < 1 else about(value)


# -- sentences ----------------------------------------------------------------------------------------------------


def sentences(data: dict[str, Any]) -> Iterator[str]:
    """What is compared and what it rests on, before the tables."""
    spans = f"{count(data['futures'], 'future')} of {seconds(data['horizon_s'])}, seed {data['seed']}"
    yield f"SIMULATION from {data['as_of']}: {spans}. Medians, with the range of four in five. Nothing is changed."
    yield f"Draft: {clean('; '.join(data['draft']))}" if data["draft"] else "No draft: what comes of it as it is."
    rests = data["rests_on"]
    lengths = [f"{number} on {basis}" for basis, number in rests["lengths"].items() if basis != "nothing"]
    guessed = rests["lengths"].get("nothing", 0)
    if lengths:
        yield f"Run lengths are drawn from the past: {', '.join(lengths)}."
    if guessed:
        yield (
            f"Of {count(guessed, 'workload')} nobody knows how long their like runs: half are taken to last twice what "
            "they have worked, at least their min runtime, and so on."
        )
    arrivals = rests["arrivals"]
    if arrivals["workloads"]:
        window = seconds(arrivals["window_s"])
        few_come = "" if rests["ended"] else "; of those that ended none is known, so that fewer come than did"
        yield f"Arrivals are drawn from the last {window}: {count(arrivals['workloads'], 'workload')}{few_come}."
    else:
        yield "Nothing is known to have been submitted lately: nothing new comes in these futures."
    if rests["silent_hosts"]:
        yield f"Not heard of, and so taken to stay as they are: {few(rests['silent_hosts'])}."


def costs(data: dict[str, Any]) -> Iterator[str]:
    """Of each workload that the draft submits: when it starts, and at whose cost."""
    say = until(data["horizon_s"])
    for row in (row for row in data["starts"] if row["submitted_by_draft"]):
        starts = in_words(row["starts"]["draft"], say)
        missed = round((1 - row["within"]["draft"]) * data["futures"])
        late = f"; not within the horizon in {missed} of {data['futures']}" if missed else ""
        what = f"{count(row['gpus'], 'GPU')} for {clean(row['budget'], 60)}"
        yield f"{clean(row['name'] or row['workload'], 60)} ({what}) starts in {starts}{late}."
        victims = [stop for stop in data["stops"] if row["workload"] in stop["for"]]
        if victims:
            yield f"  Stopped for it: {few([_who(v) for v in victims])}."
    later = [row for row in data["starts"] if row["moves"] == "later"]
    if later and any(row["submitted_by_draft"] for row in data["starts"]):
        yield f"  Later because of the draft: {few([_who(row) for row in later])}."


def _who(row: dict[str, Any]) -> str:
    return clean(f"{row['name'] or row['workload']} of {row['budget']}", 80)


# -- tables -------------------------------------------------------------------------------------------------------


def tables(data: dict[str, Any]) -> Iterator[TableView]:
    """Only those that have something to say."""
    both = "difference" in data["figures"]["wait_p50_s"]
    yield figures_table(data, both)
    if data["budgets"]:
        yield budgets_table(data, both)
    if data["hosts"]:
        yield hosts_table(data, both)
    moved = [row for row in data["starts"] if not row["submitted_by_draft"] and (not both or row["moves"] != "same")]
    if moved:
        yield starts_table(data, moved, both)
    stops = [row for row in data["stops"] if len(set(row["share"].values())) > 1 or not both]
    if stops:
        yield stops_table(stops, both)


def _sides(title: str, both: bool, width: int = 20) -> tuple[Column, ...]:
    names = ("NOW", "DRAFT", "DIFFERENCE") if both else ("FORECAST",)
    return (Column(title, 22, grow=True), *(Column(name, width, right=True) for name in names))


def _cells(found: dict[str, Any], say: Say, both: bool, better: int = 0) -> list[Cell]:
    cells = [Cell(in_words(found["now"], say))]
    if both:
        difference = found["difference"]
        ends = [0 if difference is None else (difference[end] or 0) * better for end in ("low", "high")]
        token = "good" if min(ends) > 0 else "bad" if max(ends) < 0 else ""
        cells += [Cell(in_words(found["draft"], say)), Cell(in_words(difference, signed(say)), token)]
    return cells


def _sides_of(found: dict[str, Any], say: Say, both: bool, better: int) -> list[Cell]:
    """Without the difference, whose direction the colour tells."""
    cells = _cells(found, say, both, better)
    return [cells[0], Cell(cells[1].text, cells[2].token)] if both else cells


def figures_table(data: dict[str, Any], both: bool) -> TableView:
    rows = [
        Row(words, (Cell(words), *_cells(data["figures"][key], say, both, BETTER.get(key, 0))))
        for words, key, say in FIGURES
    ]
    return TableView("Figures", _sides("FIGURE", both), tuple(rows))


def budgets_table(data: dict[str, Any], both: bool) -> TableView:
    """Waits and GPU-hours of each leaf."""
    columns = [Column("BUDGET", 20, grow=True)]
    for title, least in (("WAIT P90", 0), ("GPU-H", 100), ("OF OWED", 140)):
        sides = (" NOW", " DRAFT") if both else ("",)
        columns += [Column(f"{title}{side}", 16, right=True, from_width=least) for side in sides]
    rows = []
    for row in data["budgets"]:
        parts = (("wait_p90_s", about), ("delivered_gpu_h", hours), ("delivered_over_owed", percent))
        cells = [cell for key, say in parts for cell in _sides_of(row[key], say, both, BETTER[key])]
        rows.append(Row(row["path"], (Cell(clean(row["path"], 60)), *cells)))
    return TableView("Budgets", tuple(columns), tuple(rows))


def hosts_table(data: dict[str, Any], both: bool) -> TableView:
    say = until(data["horizon_s"])
    columns = (Column("HOST", 12), *(Column(n, 24, right=True) for n in (("NOW", "DRAFT") if both else ("FORECAST",))))
    rows = []
    for row in data["hosts"]:
        sides = [row["empty"].get(side) for side in (("now", "draft") if both else ("now",))]
        cells = [Cell("not drained" if side is None else in_words(side, say)) for side in sides]
        rows.append(Row(row["host"], (Cell(clean(row["host"], 60)), *cells)))
    return TableView("Drained hosts: known empty in", columns, tuple(rows))


def starts_table(data: dict[str, Any], moved: Sequence[dict[str, Any]], both: bool) -> TableView:
    say = until(data["horizon_s"])
    rows = []
    for row in moved[:MOST_ROWS]:
        token = {"sooner": "good", "later": "bad"}.get(row["moves"], "")
        cells = [Cell(in_words(row["starts"]["now"], say))]
        if both:
            word = f"{about(abs(row['moved_s']))} {row['moves']}"
            cells += [Cell(in_words(row["starts"]["draft"], say)), Cell(word, token)]
        rows.append(Row(row["workload"], (Cell(_who(row)), *cells)))
    left = len(data["starts"]) - len(moved)
    rest = f"{len(moved) - MOST_ROWS} more move" if len(moved) > MOST_ROWS else ""
    same = f"{left} unchanged" if both and left else ""
    more = "; ".join(part for part in (rest if both else rest.replace("move", "wait"), same) if part)
    title = "Who moves" if both else "Who starts"
    return TableView(f"{title}: starts in{f' ({more})' if more else ''}", _sides("WORKLOAD", both), tuple(rows))


def stops_table(stops: Sequence[dict[str, Any]], both: bool) -> TableView:
    """In which part of the futures a run of now is stopped."""
    sides = ("now", "draft") if both else ("now",)
    columns = (
        Column("RUN", 24, grow=True),
        Column("GPUS", 5, right=True),
        *(Column(side.upper() if both else "CHANCE", 7, right=True) for side in sides),
        Column("FOR", 20),
    )
    rows = [
        Row(
            row["workload"],
            (
                Cell(_who(row)),
                Cell(str(row["gpus"])),
                *(Cell(percent(row["share"][side])) for side in sides),
                Cell(clean(few(row["for"], 2), 60)),
            ),
        )
        for row in stops[:MOST_ROWS]
    ]
    more = f" ({len(stops) - MOST_ROWS} more)" if len(stops) > MOST_ROWS else ""
    return TableView(f"Runs that would be stopped{more}", columns, tuple(rows))
