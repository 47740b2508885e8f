"""Faults that other schedulers had (field_reports.json), at the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from opsconsole.cli.logs import find_run
from opsconsole.errors import UsageError
from scheduler_core.ids import WorkloadId
from scheduler_core.observations import RequeueRequested
from tests.cli.told import told
from tests.core.clusters import OPS, Cluster
from tests.ui.worlds import FakeSource


def test_every_attempt_keeps_an_output_of_its_own() -> None:
    """G2-22: requeued twice, three attempts, each under its own name and on its own host."""
    c = Cluster(hosts={"h1": 8, "h2": 8})
    c.running("w", resumable=True)
    hosts = [*c.engine.state.runs[c.run("w")].members]
    for _ in range(2):
        c.see(RequeueRequested(WorkloadId("w"), OPS, override=True))
        c.finish("w", 143, signalled=True)
        c.later(c.policy.pass_interval_ms)
        c.start("w")
        hosts += c.engine.state.runs[c.run("w")].members
    view = FakeSource(c).view()
    assert [find_run(view, f"w~{n}") for n in (1, 2, 3)] == [(f"w~{n}", [hosts[n - 1]]) for n in (1, 2, 3)]
    assert find_run(view, "w") == find_run(view, "w~3")
    with pytest.raises(UsageError, match="w~4 has not run yet"):
        find_run(view, "w~4")


@pytest.mark.parametrize(
    ("checkpoint", "said"),
    [
        ("SIGUSR3", "'SIGUSR3' is no signal that a process can take; did you mean 'SIGUSR2'?"),
        ("SIGKILL", "'SIGKILL' is no signal"),
        ("save 'all", 'the quotes of "save \'all" do not close'),
    ],
)
def test_a_checkpoint_that_could_not_work_is_refused_when_submitted(tmp_path: Path, checkpoint: str, said: str) -> None:
    """Not hours later, when the grace for it runs."""
    cluster = told(tmp_path, Cluster())
    words = ("submit", "--budget", "a", "--gpus", "1", "--min-runtime", "1h", "--checkpoint", checkpoint, "--", "true")
    assert said in cluster.run(*words, status=2)
