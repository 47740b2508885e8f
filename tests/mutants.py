"""Faults planted in the policy, each of which the tests must catch: `python -m tests.mutants [WORD…]` (`make mutants`).

Every fault changes one place of a copy of the tree and runs the tests of the core on it until one fails. A fault that
no test notices is a hole in the tests and makes the exit status 1. Words choose faults by their name.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
TESTS = (
    "tests/sim/test_seeds.py",
    "tests/core",
    "tests/sim",
    "tests/storm/test_storm.py::test_no_seed_breaks_anything",
)
JUDGE = "tests/sim/test_judge.py"  # plants faults of its own
PATIENCE_S = 1200
COPIED = ("scheduler_core", "opsconsole", "tests", "pyproject.toml")


class Mutant(NamedTuple):
    """One place of one module, which must stand there exactly once, and what it becomes."""

    name: str
    module: str
    before: str
    after: str


MUTANTS = (
    # -- the promise (rule 21)
    Mutant("promise: the start is not counted", "reservations", "+ self.state.policy.start_timeout_ms + w", "+ w"),
    Mutant("promise: open to all", "reservations", "if reserved.at < yields_at and", "if not yields_at and"),
    Mutant(
        "promise: victims take no time",
        "reservations",
        "self.closed_to(workload, self._wait_ms)",
        "self.closed_to(workload)",
    ),
    Mutant(
        "promise: late claims go on",
        "planner",
        "if any(m.slots & closed.get(m.host, 0) for m in record.claim):",
        "if not closed and closed:",
    ),
    Mutant(
        "promise: protected runs go",
        "reserving",
        "run.stop is None and run.protected(state.now)",
        "run.stop is None and not run",
    ),
    Mutant("promise: no right is needed", "earliest", "return run.budget in weaker", "return True"),
    Mutant("promise: two for a leaf", "reserving", "if not (leaf in taken or leaf", "if not (leaf"),
    Mutant("promise: given twice", "earliest", "room.reservations.others(workload.id)", "{}"),
    Mutant(
        "promise: no commitment",
        "promises",
        "_commit_whole(state, workload, sign)\n\n\ndef drop_promises",
        "pass\n\n\ndef drop_promises",
    ),
    Mutant("promise: kept by a lost host", "apply_requests", "drop_reservation(state, holder)", "pass"),
    Mutant("promise: kept by one that ended", "outcomes", "drop_promises(state, record)", "drop_claim(state, record)"),
    Mutant(
        "promise: the breaker counts it",
        "apply_decisions",
        "is StopCause.PREEMPT and not decision.reserved:",
        "is StopCause.PREEMPT:",
    ),
    Mutant(
        "promise: pushed back", "reservations", "r.at <= self.state.now), key", "r.at + 60_000 <= self.state.now), key"
    ),
    # -- usage and standings (rules 1 to 8)
    Mutant(
        "double charge", "changes", "charge(chain, at, delta, allocated)", "charge(chain, at, 2 * delta, allocated)"
    ),
    Mutant(
        "ancestors go free",
        "usage",
        "for budget in chain:\n            step =",
        "for budget in chain[:1]:\n            step =",
    ),
    Mutant("window too long", "usage", "times[0] >= now - span:", "times[0] >= now - 2 * span:"),
    Mutant(
        "window edge missed", "usage", "i = bisect_right(times, now - span) - 1", "i = bisect_right(times, now - span)"
    ),
    Mutant("a line kept too long", "usage", "until = times[i + 1] + span if", "until = times[i + 1] + 2 * span if"),
    Mutant("a line kept after a charge", "changes", "state.index.lines.pop(budget, None)", "pass"),
    Mutant(
        "commitments forgotten",
        "fairshare",
        "known = self._charged[budget] = line.level + line.slope * self.now",
        "known = self._charged[budget] = self.usage(budget)",
    ),
    Mutant("over budget stands better", "fairshare", "return (False, True, -self", "return (False, False, -self"),
    Mutant("weight upside down", "budget", "plain_lcm // plain[k], over", "plain[k], over"),
    Mutant(
        "cap off by one",
        "caps",
        "return cap - state.index.held[budget]",
        "return cap + 1 - state.index.held[budget]",
    ),
    Mutant("claims do not count for caps", "caps", " - state.index.claimed[budget] - given", " - given"),
    Mutant("priority upside down", "index", "return (-workload.priority, ", "return (workload.priority, "),
    # -- the contract (rules 10 to 14)
    Mutant(
        "protection ends early",
        "state",
        "or now < self.started_at + self.min_runtime_ms",
        "or now < self.started_at + self.min_runtime_ms - 1",
    ),
    Mutant(
        "a starting run is not protected",
        "state",
        "return self.started_at is None or now <",
        "return self.started_at is not None and now <",
    ),
    Mutant(
        "interruptible too early", "index", "self.promise_heap[0][0] <= now:", "self.promise_heap[0][0] <= now + 1:"
    ),
    Mutant(
        "protection from the first member",
        "apply_runs",
        "started(state, run, max(begun))",
        "started(state, run, min(begun))",
    ),
    Mutant("started before all members are", "apply_runs", "len(begun) == len(run.members):", "begun:"),
    Mutant(
        "a guard of zero goes with every stop", "contract", "in OWN_WORD else run.min_runtime_ms", "in OWN_WORD else 0"
    ),
    Mutant(
        "leaked too early", "contract", "+ state.policy.stop_deadline_ms, host", "- state.policy.stop_grace_ms, host"
    ),
    Mutant("a drain stops the protected", "drain", 'mode == "now" or not protected', 'mode != "finish"'),
    Mutant("one retry too many", "outcomes", "if record.retries >= limit:", "if record.retries > limit:"),
    Mutant(
        "what cannot resume runs again",
        "outcomes",
        "not (record.workload.comes_back or never_ran(run))",
        "not (True or never_ran(run))",
    ),
    # -- placing and preempting (rules 15 to 19)
    Mutant(
        "unallocated before allocated",
        "planner",
        "    plan.take_allocated()\n    plan.reserve()\n    plan.take_unallocated()",
        "    plan.take_unallocated()\n    plan.take_allocated()\n    plan.reserve()",
    ),
    Mutant("margin forgotten", "fairshare", "claimant[3] * PPM <= holder[3] * (PPM - margin_ppm)", "True"),
    Mutant(
        "victims without a right",
        "victims",
        "        else:\n            return None\n        if run.budget",
        "        else:\n            branch = run.budget\n        if run.budget",
    ),
    Mutant(
        "same leaf without priority",
        "victims",
        "if run.budget == self.workload.budget and not self._outranks(run.id):",
        "if False:",
    ),
    Mutant("victims that are not needed", "preemption", "if shape.hosts > 1 or over:", "if False:"),
    Mutant("max_blast forgotten", "preemption", "if victim.allocated_gpus > self._allowance:", "if False:"),
    Mutant(
        "freed GPUs are anybody's",
        "changes",
        "record.usable & ~record.claimed",
        "record.usable",
    ),
    Mutant(
        "a claim on a lost host is kept",
        "apply_hosts",
        "reach_since=state.now)\n    drop_broken_promises(state, record)",
        "reach_since=state.now)",
    ),
    Mutant("a head is forgotten", "settled", "self.open[leaf] = None\n            return", "return"),
    Mutant(
        "the changed host is not looked at",
        "planner",
        "self.cursor.add(widen(self.agenda, self.settled, self.prospects, hosts, turn_comes))",
        "pass",
    ),
    # -- hosts (rules 24 to 29)
    Mutant(
        "foreign processes are free GPUs",
        "state",
        "~(self.foreign | self.unfit | self.leaked)",
        "~(self.unfit | self.leaked)",
    ),
    Mutant("a silent host takes work", "state", "return fit and self.reach is Reach.FRESH", "return fit"),
    Mutant(
        "drained with runs",
        "drain",
        "host.reach is Reach.FRESH and host.empty and not host.runs",
        "host.reach is Reach.FRESH",
    ),
    Mutant(
        "gone before all of it is",
        "changes",
        "return all(m.phase.gone for m in run.members.values())",
        "return any(m.phase.gone for m in run.members.values())",
    ),
    Mutant(
        "a token used twice",
        "state",
        "run_id(self.workload.id, self.attempt + 1, self.day)",
        "run_id(self.workload.id, max(1, self.attempt), self.day)",
    ),
    Mutant(
        "a lost host never is",
        "timers",
        ">= state.policy.lost_after_ms else []",
        ">= 1000 * state.policy.lost_after_ms else []",
    ),
    Mutant("the breaker counts nothing", "breaker", "return max(0, most - recent)", "return most"),
    Mutant(
        "no suspects", "suspects", "if len(found) >= policy.suspect_failures", "if len(found) > policy.suspect_failures"
    ),
    Mutant("an expiry wakes nobody", "engine", "instants.append(state.index.next_expiry())", "pass"),
)


def plant(mutant: Mutant, tree: Path) -> None:
    """Raises ValueError where the place is not there, or not once: the list must follow the code."""
    path = tree / "scheduler_core" / f"{mutant.module}.py"
    text = path.read_text()
    if text.count(mutant.before) != 1:
        raise ValueError(
            f"{mutant.name}: {text.count(mutant.before)} places in {mutant.module}.py hold {mutant.before!r}"
        )
    path.write_text(text.replace(mutant.before, mutant.after))


def caught_by(mutant: Mutant, work: Path) -> str:
    """The first test that failed; nothing where all passed."""
    tree = work / re.sub(r"\W+", "-", mutant.name)
    for name in COPIED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tree / name)
    plant(mutant, tree)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        f"--ignore={JUDGE}",
        *TESTS,
    ]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=PATIENCE_S)
    shutil.rmtree(tree)
    if done.returncode == 0:
        return ""
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return failed[1] if failed else f"pytest ended with {done.returncode}: {done.stdout[-400:]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="only faults with one of these in their name")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    chosen = [m for m in MUTANTS if not args.words or any(word in m.name for word in args.words)]
    missed = 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as work, ThreadPoolExecutor(args.jobs) as pool:
        for mutant, test in zip(chosen, pool.map(partial(caught_by, work=Path(work)), chosen), strict=True):
            missed += not test
            print(f"{'caught' if test else 'MISSED':7} {mutant.name:38} {test}", flush=True)
    print(f"{len(chosen) - missed} caught, {missed} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
