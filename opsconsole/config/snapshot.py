"""Reads the snapshot file of `opsconsole plan` (docs/snapshot.md): a state to plan on, by hand or from life."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import Decimal

from yaml.nodes import Node, ScalarNode

from opsconsole.config.budgets import read_budgets
from opsconsole.config.clusters import MOST_GPUS_PER_HOST, MOST_HOSTS, read_labels
from opsconsole.config.knobs import read_policy
from opsconsole.config.ranges import expand, expand_names
from opsconsole.config.scalars import parse_name, suggestion
from opsconsole.config.workloads import Site, Strictness, build_workload
from opsconsole.config.yamlio import Source
from scheduler_core.budget import BudgetTree
from scheduler_core.changes import add_host, enqueue, hold, started
from scheduler_core.fleet import Host, HostState, Reach
from scheduler_core.ids import DrainId, HostName, WorkloadId, run_id
from scheduler_core.observations import By
from scheduler_core.policy import Policy
from scheduler_core.rebuilding import rebuild, set_inventory
from scheduler_core.state import ClusterState, DrainRecord, MemberPhase, MemberRecord, Run, WorkloadRecord
from scheduler_core.units import DAY, GPU, GPU_HOUR, count, lowest_bits
from scheduler_core.workload import Workload, WorkloadPhase

TOP = ("now", "policy", "budgets", "hosts", "usage", "unallocated_usage", "workloads")
HOST_FIELDS = ("name", "gpus", "state", "labels", "in_service")
WORKLOAD_FIELDS = (
    "id",
    "budget",
    "gpus",
    "min_runtime",
    "resumable",
    "priority",
    "running",
    "waiting",
    "hosts",
    "gpus_per_host",
    "needs",
    "time_limit",
    "owner",
    "name",
    "checkpoint_age",
    "on_preempt",
    "max_retries",
    "attempt",
    "held",
)
STRUCTURED = ("running", "waiting", "needs", "id", "checkpoint_age", "attempt", "held")
STATES = [*(s.value for s in HostState), Reach.UNREACHABLE.value, Reach.LOST.value]
LONGEST = 10 * 365 * DAY
MOST_HOUR_DIGITS = 12


def read_snapshot(path: str) -> ClusterState:
    """The state that the file describes. Raises ConfigError with everything that is wrong in it."""
    source = Source.open(path)
    top = source.mapping(source.root(), "", TOP)
    for name in ("now", "budgets", "hosts"):
        if name not in top:
            source.fail(None, name, "is missing", "see docs/snapshot.md")
    reader = _SnapshotReader(source)
    reader.read(top)
    source.check()
    rebuild(reader.state)
    return reader.state


@dataclass
class _SnapshotReader:
    source: Source
    state: ClusterState = field(default_factory=ClusterState)
    service: int = 0  # GPU time that the hosts served in the window
    site: Site = field(default_factory=lambda: Site(BudgetTree(()), Policy(), ()))
    ids: dict[str, int] = field(default_factory=dict)  # of workloads, with the line where each stands
    longest_ms: int = 0  # how long ago the first of them began, within the window

    def read(self, top: dict[str, Node]) -> None:
        source, state = self.source, self.state
        state.now = source.instant_ms(top.get("now"), "now") or 0
        policy = read_policy(source, top.get("policy"))
        tree = read_budgets(source, top.get("budgets"))
        set_inventory(state, policy, tree)
        for i, node in enumerate(source.sequence(top.get("hosts"), "hosts")):
            self._hosts(node, f"hosts[{i}]")
        self._usage(top.get("usage"), "usage", allocated=True)
        self._usage(top.get("unallocated_usage"), "unallocated_usage", allocated=False)
        self.site = Site(tree, policy, [r.host for r in state.hosts.values()])
        for i, node in enumerate(source.sequence(top.get("workloads"), "workloads")):
            self._workload(node, f"workloads[{i}]")
        before_first = policy.lookback_ms - self.longest_ms  # counts as served by today's GPUs (rule 4)
        state.ledgers.service.seeded = self.service + state.ledgers.service.rate * before_first

    # -- hosts -----------------------------------------------------------------------------------------------------

    def _hosts(self, node: Node, place: str) -> None:
        source = self.source
        entries = source.mapping(node, place, HOST_FIELDS)
        names = source.parsed(entries.get("name"), f"{place}.name", expand_names)
        if "name" not in entries:
            source.fail(node, f"{place}.name", "is missing", "give the host a name, or a range such as gpu[01-08]")
        gpus = source.integer(entries.get("gpus"), f"{place}.gpus", 1, MOST_GPUS_PER_HOST)
        if "gpus" not in entries:
            source.fail(node, f"{place}.gpus", "is missing", "say how many GPUs it has")
        state = source.choice(entries.get("state"), f"{place}.state", STATES) or "serving"
        labels = read_labels(source, entries.get("labels"), f"{place}.labels")
        span = source.span_ms(entries.get("in_service"), f"{place}.in_service", 0, LONGEST)
        if len(self.state.hosts) + len(names or ()) > MOST_HOSTS:
            source.fail(node, place, f"the file holds more than {MOST_HOSTS} hosts", "check the ranges")
            return
        for name in names or ():
            if name in self.state.hosts:
                source.fail(node, f"{place}.name", f"the host {name!r} stands twice", "remove one")
            elif gpus is not None:
                self._add_host(Host(HostName(name), gpus, labels), state, span)

    def _add_host(self, host: Host, state: str, span: int | None) -> None:
        reach = Reach(state) if state in (Reach.UNREACHABLE, Reach.LOST) else Reach.FRESH
        admin = HostState.SERVING if reach is not Reach.FRESH else HostState(state)
        record = add_host(self.state, host, state=admin, reach=reach, boot_id="snapshot", since=self.state.now)
        lookback = self.state.policy.lookback_ms
        if span is None:
            span = lookback if state == HostState.SERVING else 0
        self.service += host.gpus * GPU * min(span, lookback)
        self.longest_ms = max(self.longest_ms, min(span, lookback))
        if admin is HostState.DRAINING:
            drain = DrainRecord(DrainId(f"d-{host.name}"), host.name, "contract", By("snapshot"), self.state.now)
            record.drain = drain.id
            self.state.drains[drain.id] = drain
        if reach is not Reach.FRESH:
            record.unreachable_since = self.state.now

    # -- usage -----------------------------------------------------------------------------------------------------

    def _usage(self, node: Node | None, place: str, allocated: bool) -> None:
        """GPU-hours already charged in the window, per leaf; the ancestors get the sums."""
        tree = self.state.budgets
        leaves = {tree.paths[leaf]: leaf for leaf in tree.leaves}
        for path, value in self.source.mapping(node, place).items():
            hours = self.source.decimal(value, f"{place}.{path}", MOST_HOUR_DIGITS, 10**12)
            leaf = leaves.get(path)
            if leaf is None:
                inner = path in tree.by_path
                what = f"{path!r} is not a leaf" if inner else f"no budget {path!r}"
                self.source.fail(value, f"{place}.{path}", what, suggestion(path, leaves))
            elif hours is not None:
                amount = int((Decimal(GPU_HOUR) * hours).to_integral_value())
                self.state.ledgers.seed(tree.chains[leaf], amount, allocated)

    # -- workloads -------------------------------------------------------------------------------------------------

    def _workload(self, node: Node, place: str) -> None:
        source = self.source
        entries = source.mapping(node, place, WORKLOAD_FIELDS)
        wid = source.parsed(entries.get("id"), f"{place}.id", parse_name)
        if "id" not in entries:
            source.fail(node, f"{place}.id", "is missing", "give it an id")
        elif wid in self.ids:
            fix = f"first in line {self.ids[wid]}; choose another"
            source.fail(entries["id"], f"{place}.id", f"the id {wid!r} stands twice", fix)
        self.ids.setdefault(wid or "", node.start_mark.line + 1)
        if ("running" in entries) == ("waiting" in entries):
            both = "running" in entries
            what = "is both running and waiting" if both else "is neither running nor waiting"
            source.fail(node, place, what, "give it exactly one of the two")
            return
        waiting = source.span_ms(entries.get("waiting"), f"{place}.waiting", 0, LONGEST) or 0
        workload = self._fields(node, entries, place, WorkloadId(wid or ""), waiting)
        if workload is None or wid is None or wid in self.state.workloads:
            if "running" in entries:  # for its errors
                self._where(entries, place, workload)
            return
        attempt = source.integer(entries.get("attempt"), f"{place}.attempt", 0, 10**9) or 0
        record = WorkloadRecord(workload, waiting_since=self.state.now - waiting, attempt=attempt)
        if "running" in entries:
            if "held" in entries:
                source.fail(entries["held"], f"{place}.held", "only a waiting workload can be held", "remove it")
            self._running(entries, place, record)
        else:
            self._waiting(entries.get("held"), f"{place}.held", record)

    def _fields(
        self, node: Node, entries: dict[str, Node], place: str, wid: WorkloadId, waiting: int
    ) -> Workload | None:
        source = self.source
        plain = {k: source.text(v, f"{place}.{k}") for k, v in entries.items() if k not in STRUCTURED}
        lenient = "running" in entries or "held" in entries
        return build_workload(
            {k: v for k, v in plain.items() if v is not None},
            self.site,
            wid,
            self.state.now - waiting,
            lambda name, what, fix: source.fail(entries.get(name, node), f"{place}.{name}", what, fix),
            needs=read_labels(source, entries.get("needs"), f"{place}.needs"),
            strictness=Strictness.RUNNING if lenient else Strictness.SNAPSHOT,
        )

    def _waiting(self, held: Node | None, place: str, record: WorkloadRecord) -> None:
        word = self.source.text(held, place)
        typed = isinstance(held, ScalarNode) and not held.style  # quoted, "true" is a reason
        if word is not None and not (typed and word == "false"):
            record.phase = WorkloadPhase.HELD
            record.reason = "" if typed and word == "true" else word
        enqueue(self.state, record)

    def _running(self, entries: dict[str, Node], place: str, record: WorkloadRecord) -> None:
        members, ran, age = self._where(entries, place, record.workload)
        if members:
            self._start(record, members, ran, age)

    def _where(
        self, entries: dict[str, Node], place: str, workload: Workload | None
    ) -> tuple[dict[HostName, int], int, int | None]:
        """Slots by host, for how long it has run, and the age of its checkpoint."""
        source = self.source
        running = source.mapping(entries["running"], f"{place}.running", ("on", "for"))
        for name in ("on", "for"):
            if name not in running:
                source.fail(entries["running"], f"{place}.running.{name}", "is missing", "see docs/snapshot.md")
        ran = source.span_ms(running.get("for"), f"{place}.running.for", 0, LONGEST) or 0
        members = self._members(running.get("on"), f"{place}.running.on", workload)
        return members, ran, source.span_ms(entries.get("checkpoint_age"), f"{place}.checkpoint_age", 0, LONGEST)

    def _start(self, record: WorkloadRecord, members: dict[HostName, int], ran: int, age: int | None) -> None:
        state, w = self.state, record.workload
        begun = state.now - ran
        record.workload = w = replace(w, submitted_at=begun)
        record.attempt = max(1, record.attempt)
        record.phase, record.run = WorkloadPhase.RUNNING, run_id(w.id, record.attempt)
        parts = {name: MemberRecord(slots, MemberPhase.STARTED, "snapshot") for name, slots in members.items()}
        run = Run(record.run, w.id, w.budget, w.allocated, w.min_runtime_ms, begun, parts)
        enqueue(state, record)
        hold(state, run)
        started(state, run, begun)
        run.checkpoint_at = None if age is None else state.now - age

    def _members(self, node: Node | None, place: str, w: Workload | None) -> dict[HostName, int]:
        """Slots by host. The GPUs must exist, be free of other runs, and be those that the workload asked for."""
        source, before = self.source, len(self.source.problems)
        members: dict[HostName, int] = {}
        for key, value in source.mapping(node, place).items():
            gpus = source.integer(value, f"{place}.{key}", 1, MOST_GPUS_PER_HOST)
            for name in self._names(value, f"{place}.{key}", key):
                if name in members:
                    source.fail(value, f"{place}.{key}", f"the host {name!r} stands twice", "name it once")
                elif gpus is not None and (slots := self._slots(value, f"{place}.{key}", name, gpus)):
                    members[name] = slots
        if len(source.problems) > before or node is None or w is None:
            return {}
        counts = {mask.bit_count() for mask in members.values()}
        total = sum(mask.bit_count() for mask in members.values())
        if total != w.gpus:
            source.fail(node, place, f"adds up to {count(total, 'GPU')}, but {w.id} has {w.gpus}", "let the two agree")
        elif w.hosts and (len(members) != w.hosts or counts != {w.gpus_per_host}):
            source.fail(node, place, f"is not {w.hosts} hosts x {w.gpus_per_host} GPUs", "let the two agree")
        return members

    def _names(self, node: Node, place: str, pattern: str) -> list[HostName]:
        try:
            return [HostName(name) for name in expand(pattern)]
        except ValueError as error:
            what, _, fix = str(error).partition("; ")
            self.source.fail(node, place, what, fix)
            return []

    def _slots(self, node: Node, place: str, name: HostName, gpus: int) -> int:
        """The lowest free slots of the host; 0, with the problem kept, where there are not enough."""
        record = self.state.hosts.get(name)
        if record is None:
            self.source.fail(node, place, f"no host {name!r}", suggestion(name, self.state.hosts))
            return 0
        if record.state is HostState.DRAINED:
            self.source.fail(node, place, f"{name} is drained: known empty", "change its state, or the run")
            return 0
        slots = record.host.all_slots & ~record.held
        if slots.bit_count() < gpus:
            held = f"{record.held.bit_count()} in use by {', '.join(record.runs) or 'nobody'}"
            what = f"{name} has no room for {count(gpus, 'GPU')}: it has {record.host.gpus}, {held}"
            self.source.fail(node, place, what)
            return 0
        return lowest_bits(slots, gpus)
