"""What people put into a file to see what follows from it: a kernel's log, readings as agents or nvidia-smi print them.

Each text becomes moments of one host, in order: what it had said by then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opsconsole.health.finding import number
from opsconsole.health.smi import Output, decoded, read_output
from opsconsole.health.smi_names import probe_of
from opsconsole.health.verdict import Said
from opsconsole.hostkit.kernel import Reader, parse_kmsg, parse_short

JSON = re.compile(r'\{|\[\s*[{"\]]')  # no CSV's gap, no time of a kernel's line
NOT_KNOWN = (
    "is neither a kernel's log, nor readings in JSON, nor an output of nvidia-smi; "
    "see docs/health.md for what is read, and `opsconsole health parse-smi` for why"
)

NO_NAMES = "has no header: which fields it holds nobody knows; name them with --fields, or ask nvidia-smi for a header"


@dataclass(frozen=True, slots=True)
class Moment:
    """What a host had said at `at_s`, on the clock of its boot."""

    at_s: float
    said: Said


def moments(data: bytes, asked: Sequence[str] | None = None) -> list[Moment]:
    """At least one. `asked`: the fields of a query of nvidia-smi. Raises ValueError where the text is nothing known."""
    text = decoded(data).strip()
    if JSON.match(text):
        return list(_of_values(_values(text)))
    lines, uptime_s = kernel_lines(text)
    if lines:
        return [_moment(None, lines, uptime_s)]
    output = read_output(data, asked)
    if not output.gpus and (output.fatal is None or not _is_of_driver(output)):
        raise ValueError(NOT_KNOWN)
    if output.gpus and all(name.startswith("column_") for gpu in output.gpus for name in gpu):
        raise ValueError(NO_NAMES)
    return [_moment(probe_of(output.as_json()), [])]


def kernel_lines(text: str) -> tuple[list[dict[str, Any]], float | None]:
    """As agents send them, and the newest time since boot in them."""
    reader, found, newest = Reader(), [], None
    for line in text.split("\n"):
        record = parse_kmsg(line)
        pair = (record[1], record[2]) if record else parse_short(line)
        if pair is None:
            continue
        newest = max(newest or 0.0, pair[0]) if pair[0] is not None else newest
        if (event := reader.feed(pair[1])) is not None:
            found.append({"monotonic_s": pair[0], **event})
    return found, newest


def _is_of_driver(output: Output) -> bool:
    """A failure of nvidia-smi is a reading, too; of other words nothing follows."""
    words = (output.fatal or "").lower()
    return any(word in words for word in ("nvml", "nvidia", "no devices", "field ", "gpu"))


def _values(text: str) -> list[Any]:
    """One document, a list, or a line each. Raises ValueError that names the line."""
    try:
        found = json.loads(text)
        return found if isinstance(found, list) else [found]
    except ValueError:
        pass
    found = []
    for n, line in enumerate(text.split("\n"), start=1):
        try:
            found += [json.loads(line)] if line.strip() else []
        except ValueError as error:
            raise ValueError(f"line {n} is no JSON: {error}; write one document, or one on each line") from None
    return found


def _of_values(values: list[Any]) -> Iterator[Moment]:
    """Kernel lines that stand alone are of the moment behind them; at the end, of the last one."""
    kernel: list[dict[str, Any]] = []
    probe: Mapping[str, Any] | None = None
    told = 0
    for n, value in enumerate(values, start=1):
        found, lines = _read(value, n)
        kernel += lines
        probe = found if found is not None else probe
        if found is not None:
            told = len(kernel)
            yield _moment(probe, kernel)
    if told < len(kernel) or probe is None:
        yield _moment(probe, kernel, None if probe else _newest(kernel))


def _read(value: Any, n: int) -> tuple[Mapping[str, Any] | None, list[dict[str, Any]]]:
    """(probe, kernel lines) of one document. Raises ValueError."""
    if not isinstance(value, dict):
        raise ValueError(f"value {n} is no object; write a probe, a kernel event, or an object with both")
    if isinstance(value.get("probe"), dict) or isinstance(value.get("kernel"), list):
        probe = value.get("probe")
        return (probe if isinstance(probe, dict) else None), _lines(value.get("kernel"))
    if isinstance(value.get("lines"), list):
        return None, _lines(value["lines"])
    if "text" in value or "xid" in value:
        return None, _lines([value])
    gpus = value.get("gpus")
    if isinstance(gpus, list) and "fatal" in value:
        return probe_of(value), _lines(value.get("events"))
    if isinstance(gpus, list) or "driver" in value:
        return value, []
    raise ValueError(f"value {n} has none of gpus, driver, probe, kernel, lines, text; write a probe or a kernel event")


def _lines(found: Any) -> list[dict[str, Any]]:
    """Texts are read as the kernel's log, objects are as agents send them."""
    lines: list[dict[str, Any]] = []
    for line in found if isinstance(found, list) else []:
        if isinstance(line, dict) and "xid" not in line:
            again, _ = kernel_lines(str(line.get("text") or ""))
            lines += [{**one, "monotonic_s": line.get("monotonic_s", one["monotonic_s"])} for one in again]
        elif isinstance(line, dict):
            lines.append(line)
        else:
            lines += kernel_lines(str(line))[0]
    return lines


def _newest(kernel: list[dict[str, Any]]) -> float | None:
    return max((at for line in kernel if (at := number(line.get("monotonic_s"))) is not None), default=None)


def _moment(probe: Mapping[str, Any] | None, kernel: list[dict[str, Any]], uptime_s: float | None = None) -> Moment:
    """Its GPUs are those that are told of: nobody says how many there should be."""
    gpus = [gpu for gpu in (probe or {}).get("gpus") or [] if isinstance(gpu, dict)]
    slots = [gpu["slot"] for gpu in gpus if type(gpu.get("slot")) is int]
    at_s = number((probe or {}).get("uptime_s")) or uptime_s or 0.0
    return Moment(
        at_s, Said(max(slots, default=-1) + 1, probe, 0.0 if probe else None, tuple(kernel), uptime_s=uptime_s)
    )
