"""The help: what stands on the page, then every key and command, from the registry."""

from __future__ import annotations

import time

from opsconsole.presenting.text import zone
from opsconsole.ui.actions import ACTIONS, Action
from opsconsole.ui.commands import command_words
from opsconsole.ui.keymap import Keymap
from opsconsole.ui.screens.text import Part, Text

GROUPS = ("screens", "look", "act", "view", "mark", "move", "console")
PROMISE = (
    "Nothing changes the cluster but a plan that somebody carries out: {openers} open one. The console starts "
    "read-only; :write 15m reason opens a window for changes. Times are in {zone}."
)
PAGES: dict[str, tuple[Part, ...]] = {
    "overview": (
        ("Availability", "GPUs of serving hosts, and those that runs hold elsewhere, of all installed"),
        ("Occupancy", "GPUs in use by runs, of the available ones"),
        ("Impact", "of what budgets were owed in the last day, capped hour by hour at their demand, what they got"),
        ("Utilisation", "how busy the GPUs are, by fresh readings"),
        ("Queue", "how many wait for what; the waits of now and of the hours before: nine of ten are no longer"),
        ("Needs a person", "what nothing else will put right, the oldest first"),
    ),
    "hosts": (
        ("FRESH", "● live, ◐ late (over 2 intervals), ○ stale (over 5), ✖ lost and why"),
        ("was 70%", "an old reading: the newest that is known"),
        ("PROTECTED FOR", "until the last run there may be stopped by a drain or for others"),
        ("STATE", "serving takes new runs; cordoned, draining and drained do not"),
    ),
    "host": (
        ("TREND", "how busy each GPU was since this was opened; · is a reading that was not fresh"),
        ("PROTECTED", "until a drain, or somebody with a better claim, may stop the run"),
        ("THEN", "what becomes of it: ? unverified where the host cannot be asked"),
        ("Evidence", "verdicts and counters of the newest reading, the kernel's log, and what happened to it"),
    ),
    "workload": (
        ("CONTRACT", "how much of its min runtime the run has had; then it is interruptible"),
        ("LOST", "work that a stop threw away, since the last checkpoint"),
        ("Output", "of the newest run, as it is written; on its last line it follows, further up it stays"),
    ),
    "queue": (
        ("POS", "the order in which the waiting are taken: by what their budgets are owed"),
        ("MOVE", "▲ so many places nearer than ten minutes ago, ▼ further away"),
        ("MIN", "min runtime; free: unallocated, never protected"),
        ("WHY", "the one reason nearest to being lifted"),
        ("STARTS BY", "promised: GPUs are reserved; ~ as far as known now, > not before"),
        ("CONTRACT", "how much of its min runtime a run has had; then it is interruptible"),
    ),
    "budgets": (
        ("OWED, GOT", "GPU-hours of the span in the title: its share of the cluster, and what it used"),
        ("BALANCE", "got of owed: under 1 it has had less than its share"),
        ("RANK", "among its siblings, the lowest is taken first"),
        ("RUNNING, WAITING", "GPUs of allocated runs, GPUs wanted"),
    ),
    "drains": (
        ("EMPTY BY", "at the latest: the last protection that ends there, and the graces"),
        ("BLOCKED", "the host cannot be asked, so nobody can say that it is empty"),
    ),
    "log": (("ABOUT", "link, leader, worker, alarm, request or what was said: of this console, while it is open"),),
    "timeline": (("SOURCE", "hardware, run, scheduler or person: who made it happen"),),
}
FILTERS: tuple[Part, ...] = (
    ("word", "rows with that in one of their words"),
    ("key=value  key!=value", "a column, shown or not: state=serving, owner!=ada, busy=? for what is not known"),
    ("key>value  < >= <=", "amounts: waited>2h, busy<50%, gpus>=8"),
    ("key~pattern", "a regular expression"),
    ("!part", "what that part would not: !draining, !budget=olmo/eval"),
    ('"two words"', 'quotes keep blanks together: why="no shape"'),
)


def help_text(page: str, keymap: Keymap) -> Text:
    promise = PROMISE.format(openers=openers(keymap), zone=zone(time.time_ns() // 1_000_000))
    parts: list[Part] = [promise, "", page.upper(), *PAGES[page], ""]
    for group in GROUPS:
        parts += [group.upper(), *(_line(action, keymap) for action in ACTIONS if action.group == group), ""]
    return Text("Help", [*parts, "FILTERS, after /", *FILTERS])


def openers(keymap: Keymap) -> str:
    """What opens plans: keys, and commands where there are none."""
    deeds = [action.name for action in ACTIONS if action.plan is not None]
    keys = [keymap.shown(name) for name in deeds if keymap.of(name)]
    commands = [f":{name}" for name in deeds if not keymap.of(name)]
    return ", ".join([" ".join(keys)] * bool(keys) + commands)


def _line(action: Action, keymap: Keymap) -> Part:
    keys = keymap.shown(action.name)
    command = f":{action.name} {action.usage}".strip() if action.name in command_words() else ""
    return (f"{keys:10} {command}" if keys else command, action.help)
