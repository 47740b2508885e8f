"""Any facts in any order, also such as no world would tell: invariants hold, and the journal is enough.

Hypothesis draws trees, fleets, people, hosts and crashes through the engine's public door, and shrinks what fails.
Unlike in the seeded worlds of this package nothing is plausible: hosts contradict themselves, names are wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from scheduler_core.budget import Budget
from scheduler_core.engine import Engine
from scheduler_core.fleet import Host
from scheduler_core.ids import ROOT, BudgetId, CommandId, DrainId, HostName, RunId, WorkloadId
from scheduler_core.image import StateImage, from_image, to_image
from scheduler_core.invariants import require
from scheduler_core.lapses import lapsed
from scheduler_core.observations import (
    AutoDrainProposed,
    AutoDrainWithdrawn,
    BreakerReset,
    By,
    CancelRequested,
    CordonRequested,
    DrainRequested,
    HoldRequested,
    HostAdvanced,
    HostDeclared,
    HostFenced,
    HostSeen,
    HostStale,
    HostUnreachable,
    InventoryLoaded,
    MemberExited,
    MemberNeverStarted,
    MemberReleased,
    MemberStarted,
    Observation,
    ReleaseRequested,
    RequeueRequested,
    UndrainRequested,
    UsageForgotten,
    WeightChanged,
    WorkloadMoved,
    WorkloadSubmitted,
)
from scheduler_core.policy import Policy
from scheduler_core.settled import Settled
from scheduler_core.units import DAY, HOUR, MINUTE, SECOND, WEIGHT
from scheduler_core.witness import Witness
from scheduler_core.workload import OnPreempt, Workload

OPS = By("ops", "drill")
NAMES = [BudgetId(name) for name in ("a", "b", "a/x", "a/y", "b/x")]
hosts = st.sampled_from([HostName(f"h{n}") for n in range(4)])
leaves = st.sampled_from(NAMES)
masks = st.sampled_from([0, 0, 0, 1, 0b11, 0xFF])
spans = st.sampled_from([0, 1, SECOND, 5 * SECOND, MINUTE, 10 * MINUTE, HOUR, DAY])
drains = st.sampled_from([DrainId(f"d{n}") for n in range(4)])


@st.composite
def trees(draw: st.DrawFn) -> tuple[Budget, ...]:
    """`a` and `b`, each perhaps with children."""
    names = [name for name in NAMES if "/" not in name or draw(st.booleans())]
    return tuple(
        Budget(
            name,
            name.rpartition("/")[2],
            BudgetId(name.rpartition("/")[0]) if "/" in name else ROOT,
            draw(st.sampled_from([0, 1, 3])) * WEIGHT,
            draw(st.sampled_from([None, None, 4, 8])),
            over_budget_priority=draw(st.sampled_from([0, 0, 1])),
        )
        for name in names
    )


@st.composite
def fleets(draw: st.DrawFn) -> tuple[Host, ...]:
    count = draw(st.integers(1, 4))
    fence = draw(st.booleans())
    return tuple(Host(HostName(f"h{n}"), draw(st.sampled_from([2, 4, 8])), fence=fence) for n in range(count))


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    return Policy(
        lookback_ms=draw(st.sampled_from([HOUR, 12 * HOUR])),
        count_commitments=draw(st.booleans()),
        preemption_margin_ppm=draw(st.sampled_from([0, 50_000])),
        max_blast_ppm=draw(st.sampled_from([0, 1_000_000, 2_000_000])),
        start_timeout_ms=draw(st.sampled_from([MINUTE, 10 * MINUTE])),
        breaker_gpus=draw(st.sampled_from([4, 64])),
    )


@st.composite
def submissions(draw: st.DrawFn) -> Workload:
    shape = draw(st.sampled_from([None, None, (2, 1), (2, 4), (3, 2)]))
    return Workload(
        WorkloadId("w"),
        draw(leaves),
        shape[0] * shape[1] if shape else draw(st.sampled_from([1, 2, 4, 8, 16])),
        draw(st.sampled_from([0, MINUTE, HOUR])),
        0,
        owner=draw(st.sampled_from("abc")),
        priority=draw(st.sampled_from([0, 0, 1])),
        hosts=shape[0] if shape else None,
        gpus_per_host=shape[1] if shape else None,
        resumable=draw(st.booleans()),
        on_preempt=draw(st.sampled_from(list(OnPreempt))),
        max_retries=draw(st.sampled_from([None, 0])),
        time_limit_ms=draw(st.sampled_from([None, None, MINUTE])),
    )


def encoded(engine: Engine) -> bytes:
    return msgspec.json.encode(to_image(engine.state))


class Console(RuleBasedStateMachine):
    """One engine, its journal and a witness. Every rule is one tick or more."""

    def __init__(self) -> None:
        super().__init__()
        self.engine, self.witness, self.now = Engine(), Witness(), 1_000_000
        self.submitted = 0
        self.journal: list[tuple[int, Sequence[Observation], Any]] = []
        self.crashes: dict[int, None] = {}  # after so many ticks
        self.image, self.since = encoded(self.engine), 0  # the newest snapshot, and where its tail begins

    def see(self, *facts: Observation) -> None:
        self.witness.hear(facts)
        step = self.engine.step(self.now, facts)
        self.journal.append((self.now, facts, step))
        require(self.engine.state, self.witness)

    @initialize(tree=trees(), fleet=fleets(), policy=policies())
    def begin(self, tree: tuple[Budget, ...], fleet: tuple[Host, ...], policy: Policy) -> None:
        self.tree, self.fleet, self.policy = tree, fleet, policy
        self.see(InventoryLoaded(policy, tree, fleet))
        self.see(*(HostSeen(host.name, "boot0") for host in fleet))

    # -- time and crashes ------------------------------------------------------------------------------------------

    @rule(ms=spans)
    def time_passes(self, ms: int) -> None:
        self.now += ms
        self.see()

    @rule()
    def it_is_woken(self) -> None:
        """Before the instant that the engine names, time alone decides nothing."""
        at = self.engine.next_wakeup()
        if at is not None and at > self.engine.state.now:
            self.now = at - 1
            self.see()
            assert self.journal[-1][2].decisions == ()
            self.now = at
        self.see()

    @rule(ms=spans)
    def the_clock_is_set_back(self, ms: int) -> None:
        before, self.now = self.engine.state.now, self.now - ms
        self.see()
        assert self.engine.state.now == before
        self.now = before

    @rule()
    def a_snapshot_is_taken(self) -> None:
        self.image, self.since = encoded(self.engine), len(self.journal)

    @rule()
    def it_crashes(self) -> None:
        """Rebuilt from the whole journal and from the newest snapshot with its tail, it is the same engine."""
        folded = Engine()
        recovered = Engine(from_image(msgspec.json.decode(self.image, type=StateImage)))
        for number, (now, facts, step) in enumerate(self.journal):
            folded.fold(now, facts, step.decisions)
            if number >= self.since:
                recovered.fold(now, facts, step.decisions)
        assert encoded(folded) == encoded(recovered) == encoded(self.engine)
        assert folded.outstanding() == recovered.outstanding() == self.engine.outstanding()
        self.engine = recovered
        self.crashes[len(self.journal)] = None

    def teardown(self) -> None:
        """Deciding again from the observations alone gives the same steps, whatever crashed in between.

        What a crash makes a pass look at again, it looks at again here.
        """
        fresh = Engine()
        for number, (now, facts, step) in enumerate(self.journal):
            if number in self.crashes:
                fresh.state.index.settled = Settled()
            assert fresh.step(now, facts) == step

    # -- what people ask -------------------------------------------------------------------------------------------

    @rule(asked=st.lists(submissions(), min_size=1, max_size=4), start=st.booleans())
    def people_submit(self, asked: list[Workload], start: bool) -> None:
        """Some time later what was placed has started, or not."""
        for workload in asked:
            self.submitted += 1
            named = replace(workload, id=WorkloadId(f"w{self.submitted}"), submitted_at=self.now)
            self.see(WorkloadSubmitted(named))
        self.now += self.policy.pass_interval_ms
        self.see()
        if start:
            self.see(*(MemberStarted(run, host) for run, host in self.tokens()))

    @rule(workload=submissions(), number=st.integers(1, 9))
    def an_id_is_used_again(self, workload: Workload, number: int) -> None:
        self.see(WorkloadSubmitted(replace(workload, id=WorkloadId(f"w{number}"), submitted_at=self.now)))

    @rule(
        which=st.integers(0, 30),
        what=st.sampled_from(["cancel", "requeue", "hold", "release", "move"]),
        override=st.booleans(),
        budget=st.none() | leaves,
    )
    def people_ask_of_a_workload(self, which: int, what: str, override: bool, budget: BudgetId | None) -> None:
        wid = WorkloadId(f"w{self.submitted - which}")
        asked: dict[str, Observation] = {
            "cancel": CancelRequested(wid, OPS),
            "requeue": RequeueRequested(wid, OPS, override),
            "hold": HoldRequested(wid, OPS),
            "release": ReleaseRequested(wid, OPS),
            "move": WorkloadMoved(wid, OPS, budget, int(override)),
        }
        self.see(asked[what])

    @rule(budget=leaves, weight=st.none() | st.sampled_from([0, 1, 3]))
    def people_ask_of_a_budget(self, budget: BudgetId, weight: int | None) -> None:
        asked = UsageForgotten(budget, OPS) if weight is None else WeightChanged(budget, weight * WEIGHT, OPS)
        self.see(asked)

    @rule(which=st.integers(0, 30), host=hosts, ms=spans)
    def people_ask_for_a_while(self, which: int, host: HostName, ms: int) -> None:
        """What is over by now is taken back before anything else happens."""
        until = self.now + ms
        self.see(HoldRequested(WorkloadId(f"w{self.submitted - which}"), OPS, until), CordonRequested(host, OPS, until))
        self.now += MINUTE
        self.see(*lapsed(self.engine.state, self.now))
        assert lapsed(self.engine.state, self.now) == []

    @rule(
        host=hosts,
        what=st.sampled_from(
            ["cordon", "undrain", "repairing", "verifying", "verify_failed", "empty", "dead", "reset"]
        ),
    )
    def people_ask_of_a_host(self, host: HostName, what: Any) -> None:
        match what:
            case "cordon":
                self.see(CordonRequested(host, OPS))
            case "undrain":
                self.see(UndrainRequested(host, OPS))
            case "empty" | "dead":
                self.see(HostDeclared(host, what, OPS))
            case "reset":
                self.see(BreakerReset(OPS))
            case _:
                self.see(HostAdvanced(host, what, OPS))

    @rule(drain=drains, host=hosts, mode=st.sampled_from(["contract", "finish", "now", "auto", "cordon"]), ms=spans)
    def a_host_is_to_be_drained(self, drain: DrainId, host: HostName, mode: Any, ms: int) -> None:
        if mode in ("auto", "cordon"):
            self.see(AutoDrainProposed(drain, host, "XID 79", mode == "cordon"))
        else:
            self.see(DrainRequested(drain, host, OPS, mode, self.now + ms if mode == "finish" else None))

    @rule(drain=drains, host=hosts, causes=st.sets(st.sampled_from(["xid:79", "heat"])), confirm=st.booleans())
    def health_says_what_stands_against_a_host(
        self, drain: DrainId, host: HostName, causes: set[str], confirm: bool
    ) -> None:
        if causes:
            self.see(AutoDrainProposed(drain, host, "sick", False, tuple(sorted(causes)), confirm))
        else:
            self.see(AutoDrainWithdrawn(host, "gone"))

    @rule(tree=trees(), fleet=fleets(), policy=policies(), which=st.integers(0, 6))
    def the_inventory_is_edited(
        self, tree: tuple[Budget, ...], fleet: tuple[Host, ...], policy: Policy, which: int
    ) -> None:
        self.tree = tree if which in (0, 1, 2, 6) else self.tree
        self.fleet = fleet if which in (3, 4, 6) else self.fleet
        self.policy = policy if which in (5, 6) else self.policy
        self.see(InventoryLoaded(self.policy, self.tree, self.fleet))

    # -- what hosts report -----------------------------------------------------------------------------------------

    @rule(
        host=hosts,
        boot=st.sampled_from(["boot0", "boot0", "boot1", ""]),
        foreign=masks,
        unfit=masks,
        empty=st.booleans(),
    )
    def a_host_answers(self, host: HostName, boot: str, foreign: int, unfit: int, empty: bool) -> None:
        self.see(HostSeen(host, boot, foreign=foreign, unfit=unfit, empty=empty))

    @rule()
    def all_hosts_serve_again(self) -> None:
        self.see(*(UndrainRequested(host.name, OPS) for host in self.fleet))
        self.see(*(HostSeen(host.name, "boot0") for host in self.fleet))

    @rule(host=hosts, what=st.sampled_from(["stale", "unreachable", "fenced", "fenced wrongly"]), ms=spans)
    def a_host_falls_silent(self, host: HostName, what: str, ms: int) -> None:
        known = self.engine.state.hosts.get(host)
        fence = known.fence_id if known is not None and what == "fenced" else CommandId("h/fence/1")
        facts: dict[str, Observation] = {"stale": HostStale(host), "unreachable": HostUnreachable(host, "timed out")}
        self.see(facts.get(what, HostFenced(host, fence)))
        self.now += ms
        self.see()

    def tokens(self) -> list[tuple[RunId, HostName]]:
        """Of every member that was ever placed, those that live first."""
        live = [(run.id, host) for run in self.engine.state.runs.values() for host in run.members]
        past = [
            (attempt.run, member.host)
            for record in self.engine.state.workloads.values()
            for attempt in record.attempts
            for member in attempt.members
        ]
        return [*live, *past]

    @precondition(lambda self: self.engine.state.runs)
    @rule(ran_ms=spans)
    def all_runs_start(self, ran_ms: int) -> None:
        self.see(*(MemberStarted(run, host, ran_ms) for run, host in self.tokens()))

    @precondition(lambda self: self.engine.state.runs)
    @rule(code=st.sampled_from([0, 1, 143, None]), signalled=st.booleans(), ago_ms=spans)
    def all_stopping_runs_go(self, code: int | None, signalled: bool, ago_ms: int) -> None:
        for run in [run for run in self.engine.state.runs.values() if run.stop is not None]:
            for host in list(run.members):
                self.see(MemberExited(run.id, host, code, None, signalled), MemberReleased(run.id, host, ago_ms))

    @precondition(lambda self: self.tokens())
    @rule(
        which=st.integers(0, 30),
        what=st.lists(st.sampled_from(["started", "exited", "released", "never"]), min_size=1, max_size=3),
        code=st.sampled_from([0, 0, 1, 143, None]),
        signalled=st.booleans(),
        ms=spans,
    )
    def a_member_is_told_of(self, which: int, what: list[str], code: int | None, signalled: bool, ms: int) -> None:
        """In any order, and as often as it likes. (The witness takes a release by its word: one end per tick.)"""
        tokens = self.tokens()
        run, host = tokens[which % len(tokens)]
        facts: dict[str, Observation] = {
            "started": MemberStarted(run, host, ms),
            "exited": MemberExited(run, host, code, None, signalled),
            "released": MemberReleased(run, host, 0 if "never" in what else ms),
            "never": MemberNeverStarted(run, host, "no such file"),
        }
        self.see(*(facts[fact] for fact in what))


TestConsole = Console.TestCase
TestConsole.settings = settings(
    max_examples=100, stateful_step_count=60, deadline=None, suppress_health_check=list(HealthCheck)
)
