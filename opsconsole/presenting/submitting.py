"""The plan of a submission: what one pass would make of it now, by the code that will decide."""

from __future__ import annotations

import shlex
from dataclasses import replace

from opsconsole.presenting.passes import pass_table
from opsconsole.presenting.plans import Plan
from opsconsole.presenting.queue import workload_label
from opsconsole.presenting.text import clean, count, day_clock, span
from opsconsole.presenting.view import ClusterView
from scheduler_core.changes import enqueue
from scheduler_core.observations import WorkloadSubmitted
from scheduler_core.report import plan_report
from scheduler_core.state import WorkloadRecord
from scheduler_core.workload import Workload


def plan_submit(view: ClusterView, workload: Workload) -> Plan:
    """Uses the state of the view up: hand over one that nobody else needs."""
    state, w = view.state, workload
    enqueue(state, WorkloadRecord(w, waiting_since=state.now))
    items = [item for item in plan_report(state).items if w.id in (item.workload, item.for_workload)]
    table = pass_table(items, lambda at: day_clock(view.wall(at), view.wall_ms))
    promise = f"min runtime {span(w.min_runtime_ms)}" if w.allocated else "unallocated: free of charge, never protected"
    title = f"Submit {workload_label(w.id, w.name)} to {state.budgets.paths[w.budget]}"
    return Plan(
        "submit",
        (w.id,),
        replace(table, title=clean(title)),
        (f"{count(w.gpus, 'GPU')}, {promise}", clean(f"runs {shlex.join(w.launch.argv)}")),
        "",
        (),
        lambda by: [WorkloadSubmitted(w)],
    )
