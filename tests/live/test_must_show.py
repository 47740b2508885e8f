"""What must be shown on real hosts: nothing lost, nothing twice, nothing early, whatever breaks meanwhile.

Each story is told once per fault; the fault happens in every step of it. What is believed in the end is what the
workloads themselves wrote down on their hosts (`testimony`), and that the journal's usage agrees with it.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from scheduler_core.fleet import HostState, Reach
from scheduler_core.ids import BudgetId, RunId, WorkloadId
from scheduler_core.invariants import check
from scheduler_core.state import ClusterState
from scheduler_core.units import GPU, HOUR, SECOND
from scheduler_core.workload import Outcome
from tests.live.commands import OPSCONSOLE
from tests.live.testimony import Life, early, lives, twice
from tests.live.trio import FAULTS, Fault, Trio, kill_leader

pytestmark = pytest.mark.sshd
every_fault = pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)


def verify(trio: Trio, known_late_s: float = 0.0) -> None:
    """The promises, as seen from outside. `known_late_s`: how long ends were not known to anybody."""
    state, found = trio.state, lives(trio.stamps)
    usage = wrong_usage(trio, found, known_late_s)
    problems = [*twice(found), *early(found, trio.min_s), *lost(state, found), *check(state), *usage]
    assert not problems, "\n".join(problems)


def lost(state: ClusterState, found: list[Life]) -> Iterator[str]:
    """What the journal holds for running has not ended, and what lives is held for running."""
    for life in found:
        run = state.runs.get(RunId(life.token))
        if life.alive and run is None:
            yield f"{life.token} lives on {life.host}, and nobody knows"
        if not life.alive and run is not None and run.stop is None and not life.finished:
            yield f"{life.token} is gone from {life.host}, and nobody knows"


def wrong_usage(trio: Trio, found: list[Life], known_late_s: float) -> Iterator[str]:
    """Each budget is charged from dispatch until its processes were gone, as the processes say, to the second."""
    state, apart_ms = trio.state, trio.clocks_apart_ms()
    held, slack = Counter[BudgetId](), Counter[BudgetId]()
    for life in found:
        record = state.workloads[WorkloadId(life.workload)]
        placed_at = trio.placed_at(life.token)
        ended_at = state.now if life.token in state.runs else int(life.last * 1000) + apart_ms
        budget, amount = record.workload.budget, len(life.gpus) * GPU
        held[budget] += amount * (ended_at - placed_at)
        slack[budget] += amount * int((1 + known_late_s) * SECOND)
    for leaf in ("a", "b"):
        charged = state.ledgers.used(BudgetId(leaf), state.now, HOUR)
        if not 0 <= charged - held[BudgetId(leaf)] <= slack[BudgetId(leaf)]:
            yield f"{leaf} is charged {charged}, its runs held {held[BudgetId(leaf)]} to the second"


@every_fault
def test_submit_run_logs_cancel(trio: Trio, fault: Fault) -> None:
    with fault(trio):
        gang = trio.submit("gang", "--hosts", "2", gpus=4)
    first = next(iter(trio.wait(lambda: trio.running(gang), "the gang to start").members))
    said = trio.inventory.with_name("said")
    with said.open("wb") as out:
        logs = subprocess.Popen([*OPSCONSOLE, "logs", "-f", gang], env=trio.environment(), stdout=out)
    trio.wait(lambda: said.stat().st_size, "its first line")
    with fault(trio):
        pass  # it just runs
    with fault(trio):
        trio.let_finish(gang)
    trio.wait(lambda: trio.ended(gang), "the gang to end")
    assert trio.record(gang).outcome is Outcome.SUCCEEDED and len(trio.lives_of(gang)) == 2
    assert logs.wait(40) == 0
    (life,) = (life for life in trio.lives_of(gang) if life.host == first)
    assert said.read_text().split() == [str(n) for n in range(life.beats)], "every line, once"

    unwanted = trio.submit("unwanted", min_s=100)
    trio.wait(lambda: trio.running(unwanted), "the other to start")
    with fault(trio):
        trio.cancel(unwanted)
    trio.wait(lambda: trio.ended(unwanted), "the other to be cancelled")
    assert trio.record(unwanted).outcome is Outcome.CANCELLED and len(trio.lives_of(unwanted)) == 1
    verify(trio)


@every_fault
def test_preempt_and_requeue(trio: Trio, fault: Fault) -> None:
    squatters = [trio.submit(f"squat{n}", min_s=8) for n in range(3)]
    trio.wait(lambda: all(trio.running(wid) for wid in squatters), "the squatters to start")
    with fault(trio):
        claim = trio.submit("claim", budget="b", min_s=1)
    trio.wait(lambda: trio.running(claim), "the claimant to start")
    stopped = {wid: trio.record(wid).attempts for wid in squatters if trio.record(wid).attempts}
    assert len(stopped) == 1, stopped
    (victim,) = stopped
    assert trio.record(victim).attempts[0].stop.for_workload == claim  # type: ignore[union-attr]
    with fault(trio):
        trio.run("requeue", claim, "--reason", "moved", "--yes")
    trio.wait(lambda: trio.running(claim, 2), "the claimant's second attempt")
    trio.let_finish(claim)
    trio.wait(lambda: trio.running(victim, 2), "the victim to go on")
    verify(trio)


@every_fault
def test_drain_and_undrain(trio: Trio, fault: Fault) -> None:
    mover = trio.submit("mover", min_s=8)
    run = trio.wait(lambda: trio.running(mover), "it to start")
    (name,) = run.members
    with fault(trio):
        trio.run("drain", name, "--reason", "fan", "--yes")
    trio.wait(lambda: trio.state.hosts[name].state is HostState.DRAINED, "the host to be drained")
    trio.wait(lambda: trio.running(mover, 2), "it to go on elsewhere")
    with fault(trio):
        trio.run("undrain", name, "--yes")
    fillers = [trio.submit(f"filler{n}") for n in range(2)]
    trio.wait(lambda: all(trio.running(wid) for wid in fillers), "all hosts to be used")
    assert trio.state.hosts[name].runs
    verify(trio)


def test_what_is_asked_while_the_leader_lies_dead_is_done_by_the_next(trio: Trio) -> None:
    trio.lead()
    dead, standing_by = trio.leaders
    dead.kill()
    wid = trio.submit("asked")
    trio.wait(lambda: trio.running(wid), "it to start")
    assert standing_by.poll() is None and len(trio.lives_of(wid)) == 1
    verify(trio)


def test_a_host_that_reboots_takes_its_runs_along_and_they_start_anew_once(trio: Trio) -> None:
    gang = trio.submit("gang", "--hosts", "2", gpus=4, min_s=60)
    solo = trio.submit("solo", min_s=60)
    trio.wait(lambda: trio.running(solo), "one to start")
    name = list(trio.wait(lambda: trio.running(gang), "the other to start").members)[1]
    host = next(h for h in trio.hosts if h.name == name)
    del trio.min_s[gang]  # a broken host ends protection
    host.stop()
    died_at = time.monotonic()
    trio.wait(lambda: trio.reach(host) is Reach.UNREACHABLE, "the loss to be noticed")
    assert trio.running(gang), "unreachable is not dead"
    (trio.inventory.parent / name / "boot-id").write_text("second\n")
    host.start()
    trio.wait(lambda: trio.running(gang, 2), "the gang's second attempt")
    assert trio.record(gang).attempts[0].outcome == "requeued"
    assert trio.record(solo).attempt == 1
    assert len(trio.lives_of(gang)) == 4
    verify(trio, known_late_s=time.monotonic() - died_at)


def test_a_changed_host_key_is_refused_and_said_and_runs_keep_their_gpus(trio: Trio) -> None:
    kept = trio.submit("kept", min_s=1)
    run = trio.wait(lambda: trio.running(kept), "it to start")
    (name,) = run.members
    host = next(h for h in trio.hosts if h.name == name)
    host.kill()
    host.rotate_host_key()
    host.start()
    trio.wait(lambda: "host key changed" in trio.state.hosts[name].unreachable_why, "the new key to be refused")
    known_hosts = trio.inventory.with_name("known_hosts")
    assert str(known_hosts) in trio.state.hosts[name].unreachable_why
    late = trio.submit("late", gpus=6)
    advice = re.search(r"ssh-keygen -f \S+ -R '\S+'", " ".join(trio.json("explain", name)["lines"]))
    assert advice is not None, "what to do is said where somebody looks"
    assert trio.state.hosts[name].held and trio.running(kept) and not trio.started(late)

    subprocess.run(advice[0], shell=True, check=True, capture_output=True)
    with known_hosts.open("a") as out:
        out.write(host.known_hosts_line)
    trio.lead()
    kill_leader(trio)
    trio.wait(trio.all_fresh, "the host to be trusted again")
    trio.let_finish(kept)
    trio.wait(lambda: trio.running(late), "the next to start")
    assert len(trio.lives_of(kept)) == 1 and trio.record(kept).outcome is Outcome.SUCCEEDED
    verify(trio)
