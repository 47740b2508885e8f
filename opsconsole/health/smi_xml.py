"""`nvidia-smi -q -x`: every leaf under its own path, so that blocks that repeat names stay apart.

Each GPU's block is read alone: one that is broken or cut takes no other down, and what stands before the break counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, cast
from xml.etree.ElementTree import Element, ParseError, XMLPullParser

from opsconsole.health.field import CUT, Field, Gpu, failed_field, field, put, value_field

ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
SKIPPED = re.compile(
    r"<supported_clocks\b.*?(</supported_clocks>|$)|<!DOCTYPE[^>\[]*(\[.*?\]\s*)?>|<\?.*?\?>", re.DOTALL
)
AMPERSAND = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#\d+|#x[0-9A-Fa-f]+);)")
NO_TAG = re.compile(r"<(unknown|defunct|none|null)>", re.IGNORECASE)  # what a process may be called
DEEPEST = 20
MOST_TOLD = 16
LISTS = ("processes", "accounted_processes", "mig_devices")
ATTACHED = re.compile(r"<attached_gpus>\s*(\d+)")


def read_xml(text: str) -> tuple[list[Gpu], list[str]]:
    """(GPUs, what is wrong). A text without a GPU's block is taken for the inside of one."""
    text = NO_TAG.sub(r"&lt;\1&gt;", AMPERSAND.sub("&amp;", SKIPPED.sub("", ILLEGAL.sub("\ufffd", text))))
    head, *blocks = re.split(r"(?=<gpu[\s>])", text)
    if not blocks and "<nvidia_smi_log" not in text:
        blocks = [f"<gpu>{head.strip()}</gpu>"]
    gpus, wrong = [], []
    for n, block in enumerate(blocks):
        block = block.partition("</gpu>")[0] + ("</gpu>" if "</gpu>" in block else "")
        gpu, whole = read_block(block)
        if not whole and "</gpu>" in block:
            unfolded = read_block(block.replace("\n", ""))  # a terminal may have folded it in the middle of a tag
            gpu, whole = unfolded if unfolded[1] else (gpu, whole)
        gpus.append(gpu)
        if not whole:
            wrong.append(f"the XML of GPU {n} is cut or broken: what stands behind the break is not known")
    wrong[MOST_TOLD:] = [f"so are {len(wrong) - MOST_TOLD} more"] * (len(wrong) > MOST_TOLD)
    told = ATTACHED.search(head)
    if told and int(told.group(1)) != len(gpus):
        wrong.append(f"attached_gpus says {told.group(1)}, {len(gpus)} are shown")
    elif "<nvidia_smi_log" in head and "</nvidia_smi_log>" not in text:
        wrong.append("the XML is cut: GPUs may be missing")
    return gpus, wrong


def read_block(block: str) -> tuple[Gpu, bool]:
    """Its fields, and whether it was whole."""
    parser: XMLPullParser[Any] = XMLPullParser(events=("start", "end"))
    root: Element | None = None
    ended: set[int] = set()
    with suppress(ParseError):  # what was read until then counts
        parser.feed(block)
        for event, element in cast(Iterator[tuple[str, Element]], parser.read_events()):
            root = element if root is None else root
            if event == "end":
                ended.add(id(element))
    if root is None:
        return {}, False
    gpu: Gpu = {"id": field("uuid", root.get("id", ""))} if root.get("id") else {}
    _flatten(root, "", gpu, ended)
    return gpu, id(root) in ended


def _flatten(element: Element, path: str, found: Gpu, ended: set[int]) -> None:
    for child in element:
        name = f"{path}.{child.tag}" if path else child.tag
        if child.tag in LISTS:
            found[name] = _listed(child, ended)
        elif len(child) and name.count(".") < DEEPEST:
            _flatten(child, name, found, ended)
        else:
            put(found, name, _leaf(child, ended))


def _leaf(element: Element, ended: set[int]) -> Field:
    if len(element):
        return failed_field("nested too deeply")
    if id(element) not in ended:
        return failed_field(CUT)
    text = " ".join((element.text or "").split())
    return field(element.tag, text) if text or not element.tag.endswith("list") else value_field([])


def _listed(element: Element, ended: set[int]) -> Field:
    """A process of which not even the memory is known is a process all the same."""
    if id(element) not in ended and not len(element):
        return failed_field(CUT)
    if not len(element) and (element.text or "").strip():
        return field(element.tag, " ".join((element.text or "").split()))
    entries: list[Gpu] = []
    for child in element:
        entries.append({})
        _flatten(child, "", entries[-1], ended)
    return value_field(entries)
