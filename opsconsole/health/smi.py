"""Any output of nvidia-smi as readings: CSV, XML, lists, the table for people, and messages between or instead.

What cannot be understood is said, in `warnings` where GPUs were read beside it, in `fatal` where none was. No message
becomes a row, no gap becomes a number. Lines of a kernel's log, which people put into the same files, become `events`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from opsconsole.health.field import Gpu, failed_field, value_field
from opsconsole.health.smi_csv import Rows, is_header
from opsconsole.health.smi_words import GPU_LINE, MIG_LINE, SECTION, read_columns, read_list, read_query, read_table
from opsconsole.health.smi_xml import read_xml
from opsconsole.hostkit.kernel import Reader, parse_kmsg, parse_short
from opsconsole.hostkit.pci import normal_address
from opsconsole.hostkit.readings import plain
from opsconsole.hostkit.smi_text import Trouble, trouble_of

MOST_BYTES = 64 << 20
MOST_TOLD = 16  # messages
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")
LSPCI = re.compile(r"^((?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) .*(?:10de|NVIDIA)", re.IGNORECASE)
OTHER_PCI = re.compile(r"^((?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) \"?([A-Z]|[0-9a-f]{4}:)")
LSPCI_GPU = re.compile(r" (?:\"?0300|\"?0302|VGA compatible controller|3D controller)\b")
KERNEL = re.compile(r"NVRM:|nvidia-nvswitch|\skernel: |^\d+,\d+,\d+,[^;]*;|^(?:<\d+>)?\[\s*\d+\.\d{6}\]")
XML_START = re.compile(r"<\?xml|<!DOCTYPE|<(?!unknown|defunct|none|null|inactive)[a-z]\w*[\s>]")
IDENTITY = ("index", "uuid", "gpu_uuid", "id", "pci.bus_id", "gpu_bus_id", "serial")
NEVER_FATAL = ("warning", "gpu_lost", "gpu_unreachable")
HARMLESS = re.compile(r"^no (running processes|(mig-enabled|compute instances|gpu instances).*) found", re.IGNORECASE)
NOTHING = "nothing was printed: of `nvidia-smi nvlink` that means a GPU without NVLink, else that nothing is known"


@dataclass
class Output:
    """`fatal`: why nothing, or nothing more, is known; no output with one speaks for a sound host."""

    gpus: list[Gpu] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    fatal: str | None = None
    events: list[dict[str, Any]] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        said = {"gpus": self.gpus, "warnings": self.warnings, "fatal": self.fatal}
        return said | ({"events": self.events} if self.events else {})


def read_output(data: bytes, asked: Sequence[str] | None = None) -> Output:
    """`asked`: the fields of --query-…, where the output has no header or the header names them otherwise."""
    text = decoded(data)
    output = Output()
    messages: list[str] = []
    troubles: list[Trouble] = []
    before, xml, after = _xml(text)
    body: list[str] = []
    kernel, listed, of_kernel = Reader(), [], False
    for line in f"{before}\n{after}".split("\n") if xml else text.split("\n"):
        if not line.strip() or line.strip() == "--":
            continue
        if (trouble := trouble_of(line)) is not None:
            troubles.append(trouble)
        elif KERNEL.search(line):
            of_kernel = True
            _kernel_line(kernel, line, output)
        elif of_kernel and line.startswith((" ", "[")):
            continue  # properties of a record of /dev/kmsg; other lines of dmesg -T
        elif LSPCI.match(line):
            listed += [normal_address(line.split()[0])] * bool(LSPCI_GPU.search(line))
            if "(rev ff)" in line:
                output.warnings.append(f"{plain(line)}: the device does not answer")
        elif not OTHER_PCI.match(line):
            body.append(line)
    if xml:
        gpus, wrong = read_xml(xml)
        output.gpus = [gpu for gpu in gpus if gpu]
        output.warnings += [*wrong, *["a block without any field is left out" for gpu in gpus if not gpu]]
        messages += map(plain, body)
    else:
        hopeless = of_kernel or any(trouble.kind not in NEVER_FATAL for trouble in troubles)
        _read_body(body, asked, hopeless, text.endswith("\n"), output, messages)
    output.gpus = newest(output.gpus)
    _tell(output, troubles, messages, listed)
    return output


def newest(gpus: list[Gpu]) -> list[Gpu]:
    """Of several samples of one GPU (-l) the last. Two that differ in any of their names are two."""
    found: dict[Any, Gpu] = {}
    for gpu in gpus:
        names = tuple((name, gpu[name]["value"]) for name in IDENTITY if name in gpu and gpu[name]["state"] == "value")
        found[names or id(gpu)] = gpu
    return list(found.values())


def decoded(data: bytes) -> str:
    """Lines end with \\n; bytes of another code page are replaced. PowerShell writes UTF-16."""
    halves = {"utf-16-be": data[0:200:2], "utf-16-le": data[1:200:2]}
    wide = [name for name, half in halves.items() if half.count(0) > len(half) / 2]
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else (wide or ["utf-8"])[0]
    text = ANSI.sub("", data.decode(encoding, "replace"))
    return text.replace("\0", "").replace("\ufeff", "").replace("\r\n", "\n").replace("\r", "\n")


def _xml(text: str) -> tuple[str, str, str]:
    """What stands before it, the XML or nothing, what stands after it."""
    found = XML_START.search(text)
    if found is None or text[: found.start()].rpartition("\n")[2].strip():
        return "", "", ""
    last = text.rfind("</")
    end = text.find(">", last) + 1 if last >= 0 else 0
    tail = text[end:] if end else ""
    cut = not end or "<" in tail
    return text[: found.start()], text[found.start() :] if cut else text[found.start() : end], "" if cut else tail


def _kernel_line(reader: Reader, line: str, output: Output) -> None:
    record = parse_kmsg(line) if re.match(r"\d+,\d+,\d+,", line) else None
    pair = (record[1], record[2]) if record else parse_short(line)
    found = reader.feed(pair[1]) if pair else None
    if found is not None and pair is not None:
        output.events.append({"monotonic_s": pair[0], **found})


def _read_body(
    body: list[str], asked: Sequence[str] | None, hopeless: bool, ended: bool, output: Output, messages: list[str]
) -> None:
    if any(GPU_LINE.match(line) or MIG_LINE.match(line) for line in body):
        output.gpus, rest = read_list(body)
        messages += map(plain, rest)
    elif any(line.lstrip().startswith(("|", "+--", "+==")) for line in body):
        output.gpus = read_table(body)
        if output.gpus:
            output.warnings.append("the table is for people and leaves things out: use --query-gpu or -q -x")
    elif body and body[0].startswith("#"):
        output.gpus = read_columns(body)
    elif any(SECTION.match(line) for line in body):
        output.gpus = read_query(body)
    else:
        rows = Rows([] if hopeless and asked is None and not any(map(is_header, body)) else body, asked, ended)
        output.gpus = rows.gpus
        messages += rows.messages or (map(plain, body) if not rows.gpus and not rows.had_header else [])
        if rows.had_header and not rows.gpus:
            output.warnings.append("there is a header and no row below it")
        return
    if not output.gpus:
        messages += [plain(line) for line in body if re.search(r"[A-Za-z]{3}", line)][:5]


def _tell(output: Output, troubles: list[Trouble], messages: list[str], listed: list[str]) -> None:
    shown = len(output.gpus)
    gone = [gpu for gpu in output.gpus if all(one["state"] == "failed" for one in gpu.values())]
    for trouble in troubles:
        if trouble.pci is None or trouble.kind == "warning":
            continue
        if gone:  # its own row, in which nothing could be read
            gone.pop(0).setdefault("pci.bus_id", {}).update(value_field(trouble.pci))
            continue
        why = failed_field(trouble.text)
        output.gpus.append({"pci.bus_id": value_field(trouble.pci), "name": why, "uuid": why})
    if listed and len(listed) != shown:
        named = ", ".join(listed)
        said = f"the PCI bus lists {len(listed)} GPU{'s' * (len(listed) > 1)} ({named}), the driver shows {shown}"
        output.warnings.append(f"{said}: one that it does not show is lost, with or without an XID")
    for line in output.events:
        output.warnings.append(line["text"])
    ends = [trouble.text for trouble in troubles if trouble.kind not in NEVER_FATAL]
    rest = [message for message in messages if not HARMLESS.match(message)]
    unreachable = [trouble.text for trouble in troubles if trouble.kind in NEVER_FATAL[1:]]
    fatal = [*ends, *rest] if ends else [] if shown else [*unreachable, *rest]
    output.fatal = "; ".join(map(plain, fatal[:MOST_TOLD])) or None
    output.warnings += [trouble.text for trouble in troubles if trouble.kind == "warning"]
    output.warnings += [message for message in [*messages, *unreachable] if message not in fatal][:MOST_TOLD]
    if not (output.gpus or output.warnings or output.fatal):
        output.warnings.append(NOTHING)
