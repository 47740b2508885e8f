"""The one registry of what can be done: it feeds key bindings, `:` commands, the palette, the footer and the help.

Only actions with a plan can change the cluster, and they only ever open that plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from textual.binding import Binding, BindingType

from opsconsole.presenting.breaker import plan_breaker_reset
from opsconsole.presenting.budget_plans import plan_forget, plan_weight
from opsconsole.presenting.cluster_plans import plan_reload
from opsconsole.presenting.drain_plans import Mode, plan_drain
from opsconsole.presenting.host_plans import plan_cordon, plan_undrain
from opsconsole.presenting.plans import Plan
from opsconsole.presenting.view import ClusterView
from opsconsole.presenting.workload_plans import (
    plan_cancel,
    plan_hold,
    plan_move,
    plan_priority,
    plan_release,
    plan_requeue,
)

Group = Literal["screens", "move", "mark", "view", "look", "act", "console"]
About = Literal["", "host", "workload", "budget"]


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What a person can choose in the dialog of a plan."""

    mode: Mode = "contract"
    for_ms: int | None = None  # for how long it lasts, or runs may go on to their own end in mode `finish`
    to: str = ""  # the new value, as typed


PlanBuilder = Callable[[ClusterView, Sequence[str], PlanOptions], Plan]


@dataclass(frozen=True, slots=True)
class Action:
    """`name` is the command word too. `about`: what it is done to, "" the cluster. `short` stands in the footer."""

    name: str
    keys: tuple[str, ...]
    help: str
    group: Group
    short: str = ""
    usage: str = ""
    about: About = ""
    plan: PlanBuilder | None = None
    call: str = ""  # the Textual action, where it is not `do(name)`
    where: Literal["app", "table"] = "app"
    choices: tuple[Mode, ...] = ()  # how its plan can be carried out, the first by default
    lasts: bool = False  # its plan can be for a while
    to: str = ""  # what its plan needs to know, as the dialog asks for it

    @property
    def words(self) -> list[str]:
        """Those that it takes, where its usage lists them."""
        return self.usage.strip("[]").split("|") if "|" in self.usage else []

    @property
    def options(self) -> dict[str, str]:
        """What can stand behind its command, as on the command line, with the field of the dialog that it fills."""
        if self.plan is None:
            return {}
        found = {"--reason": "reason", "--ticket": "ticket"}
        found |= {"--to": "to"} if self.to else {}
        found |= {"--for": "until"} if self.lasts else {}
        found |= {"--mode": "mode", "--deadline": "until"} if "finish" in self.choices else {}
        return found


def _table(name: str, keys: str, call: str, help: str, group: Group = "move") -> Action:
    return Action(name, tuple(keys.split()), help, group, call=call, where="table")


def _deed(name: str, key: str, help: str, about: About, plan: PlanBuilder, **more: Any) -> Action:
    """What changes the cluster: once its plan has been confirmed."""
    words = [f"[{about.upper()}…]"] * bool(about) + ["--to X"] * ("to" in more) + ["[--for 2h]"] * ("lasts" in more)
    usage, short = " ".join(words), name if key else ""
    return Action(name, (key,) if key else (), f"{help}: opens a plan", "act", short, usage, about, plan, **more)


def _plainly(plan: Callable[[ClusterView, Sequence[str]], Plan]) -> PlanBuilder:
    """Of a plan that can be carried out in one way alone."""
    return lambda view, targets, _: plan(view, targets)


def _for_a_while(plan: Callable[[ClusterView, Sequence[str], int | None], Plan]) -> PlanBuilder:
    return lambda view, targets, options: plan(view, targets, options.for_ms)


def _with_value(plan: Callable[[ClusterView, Sequence[str], str], Plan]) -> PlanBuilder:
    return lambda view, targets, options: plan(view, targets, options.to)


def _screen(name: str, key: str, help: str) -> Action:
    return Action(name, (key,), help, "screens")


ACTIONS: tuple[Action, ...] = (
    _screen("overview", "1", "figures, budgets, hosts, queue, and what needs a person"),
    _screen("hosts", "2", "hosts: freshness, health, runs, state"),
    _screen("queue", "3", "who waits and why; what runs"),
    _screen("budgets", "4", "the budget tree: owed, got, balance, rank"),
    _screen("drains", "5", "drains, running and ended"),
    _screen("timeline", "7", "hardware, scheduler and people in one"),
    _screen("log", "8", "of this console: links, leader, workers, what was asked for and refused"),
    _table("up", "up k", "move(-1)", "up"),
    _table("down", "down j", "move(1)", "down"),
    _table("first", "g home", "end(False)", "to the first row"),
    _table("last", "G end", "end(True)", "to the last row"),
    _table("page_up", "pageup ctrl+b", "page(-1)", "a page up"),
    _table("page_down", "pagedown ctrl+f", "page(1)", "a page down"),
    _table("left", "left h", "aside(-1)", "sideways, to the left"),
    _table("right", "right l", "aside(1)", "sideways, to the right"),
    _table("open", "enter", "open", "open what is selected: a host, a workload, or why it is so", "look"),
    _table("mark", "space", "mark", "mark, or take the mark away", "mark"),
    _table("mark_range", "v", "mark_range", "mark a range: once where it begins, again where it ends", "mark"),
    _table("mark_all", "asterisk", "mark_all", "mark all that the filter shows; again: none", "mark"),
    Action("go", (), "to the detail of a host, a workload or a run", "look", "", "NAME"),
    Action("explain", ("x",), "explain the selected thing", "look", "explain", "[NAME]"),
    Action("ssh", ("s",), "log in on the selected host; the console waits behind it", "look", "ssh", "[HOST]", "host"),
    Action("copy", ("y",), "copy the name to the clipboard and to a file", "look", "copy", "[name|row|screen]"),
    Action(
        "notify", ("n",), "tell me when the selected run, drain or host is done; again: do not", "look", "", "[NAME…]"
    ),
    Action("watches", (), "what you will be told of, and what has ended", "look"),
    Action("handover", (), "what happened, what is open and whose it is; y copies it", "look", "", "[12h]"),
    Action("previous", ("minus",), "the screen before this one", "screens"),
    Action("back", ("escape",), "back: clear the filter, then the marks, then to the screen before", "screens"),
    Action("neighbour_before", ("left_square_bracket",), "the row before, or its details", "look"),
    Action("neighbour_after", ("right_square_bracket",), "the row after, or its details", "look", "next"),
    Action("pane", ("tab",), "the next pane", "screens"),
    Action("filter", ("slash",), "filter: words, key=value, != > < >= <= ~, ! for not", "view", "filter", "[WORDS]"),
    Action("command", ("colon",), "a command", "console", "command"),
    Action("palette", ("ctrl+p",), "everything by name: actions, hosts, workloads, budgets", "console"),
    Action("sort", ("S",), "sort by columns: asks which; - before one reverses it", "view", "", "[COLUMN…]"),
    Action("columns", ("c",), "which columns are shown: asks which", "view", "", "[COLUMN…]"),
    Action("view", (), "show a view that was kept: asks which", "view", "", "[NAME]"),
    Action("save_view", (), "keep filter, order and columns of this table as a view", "view", "", "NAME"),
    Action("delete_view", (), "delete a view", "view", "", "NAME"),
    Action("wide", ("w",), "all columns, whatever the width", "view"),
    Action("zoom", ("z",), "one pane alone, or all of the page", "view"),
    Action("pause", ("p",), "hold the picture still; again: let it go on", "view"),
    _deed(
        "drain",
        "D",
        "drain hosts",
        "host",
        lambda view, targets, o: plan_drain(view, targets, o.mode, o.for_ms),
        choices=("contract", "finish", "now"),
    ),
    _deed(
        "cordon", "C", "cordon hosts, so that nothing new starts there", "host", _for_a_while(plan_cordon), lasts=True
    ),
    _deed("undrain", "U", "return hosts to service", "host", _plainly(plan_undrain)),
    _deed(
        "requeue",
        "R",
        "stop runs and queue them again",
        "workload",
        lambda view, targets, o: plan_requeue(view, targets, o.mode == "now"),
        choices=("contract", "now"),
    ),
    _deed("cancel", "K", "cancel workloads for good", "workload", _plainly(plan_cancel)),
    _deed("hold", "", "keep waiting workloads from starting", "workload", _for_a_while(plan_hold), lasts=True),
    _deed("release", "", "let held workloads wait again", "workload", _plainly(plan_release)),
    _deed("move", "", "move workloads to another budget", "workload", _with_value(plan_move), to="To budget"),
    _deed(
        "priority",
        "",
        "change the priority of workloads within their budget",
        "workload",
        _with_value(plan_priority),
        to="Priority",
    ),
    _deed("weight", "", "change the weight of a budget", "budget", _with_value(plan_weight), to="Weight"),
    _deed("forget", "", "forget the usage of budgets", "budget", _plainly(plan_forget)),
    _deed("reload", "", "go by the inventory's file as it is now", "", lambda view, _, __: plan_reload(view)),
    _deed("breaker", "", "let go on what the breaker stopped", "", lambda view, _, __: plan_breaker_reset(view)),
    Action("undo", (), "take back what was done last from here, where that can be: opens the plan that does", "act"),
    Action("write", (), "open a window in which plans may be carried out", "act", "", "[15m REASON]"),
    Action("readonly", (), "close the write window", "act"),
    Action("lead", (), "lead the cluster from this console, once confirmed", "act", "", "REASON"),
    Action("results", (), "what became of what was asked for from here", "console"),
    Action("poll", ("ctrl+r",), "ask for fresh readings now", "console"),
    Action("theme", (), "other colours", "console", "", "dark|light|contrast|ansi"),
    Action("keys", (), "see and change which keys do what", "console"),
    Action("mouse", (), "give the mouse to the terminal, which then selects text; again: take it back", "console"),
    Action("suspend", ("ctrl+z",), "to the shell that started the console; fg brings it back", "console"),
    Action("help", ("question_mark", "f1"), "this help", "console", "help"),
    Action("leave", ("q",), "back to the screen before; on the overview it says how to quit", "console"),
    Action("quit", ("ctrl+q",), "quit; runs and drains go on", "console", "quit"),
)
BY_NAME: dict[str, Action] = {action.name: action for action in ACTIONS}
ANYWHERE = ("quit", "palette")  # also over a dialog and while text is typed
UNBOUND = "unbound"  # stands for no key: there is none of that name


def _bindings(where: str) -> list[BindingType]:
    return [
        Binding(
            ",".join(a.keys) or UNBOUND,
            a.call or f"do('{a.name}')",
            a.help,
            show=False,
            id=a.name,
            priority=a.name in ANYWHERE,
        )
        for a in ACTIONS
        if a.where == where
    ]


def app_bindings() -> list[BindingType]:
    return _bindings("app")


def table_bindings() -> list[BindingType]:
    return _bindings("table")
