"""The clusters of an inventory: their hosts, each in exactly one place, with its budgets and its policy."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from yaml.nodes import Node

from opsconsole.config.budgets import read_budgets, read_name
from opsconsole.config.health import read_automatic
from opsconsole.config.knobs import read_policy
from opsconsole.config.ranges import expand_names
from opsconsole.config.reach import (
    KEY_ELSEWHERE,
    Folder,
    SshSettings,
    jump_host,
    parse_addresses,
    parse_jump,
    parse_user,
    words,
)
from opsconsole.config.scalars import suggestion
from opsconsole.config.yamlio import Source
from opsconsole.health.acting import Automatic
from scheduler_core.budget import BudgetTree
from scheduler_core.fleet import Host
from scheduler_core.ids import HostName
from scheduler_core.observations import InventoryLoaded
from scheduler_core.policy import Policy

HOST_FIELDS = (
    "name",
    "address",
    "port",
    "user",
    "jump",
    "identity",
    "gpus",
    "labels",
    "cluster",
    "python",
    "state_dir",
    "fence",
)
CLUSTER_FIELDS = ("name", "hosts", "budgets", "policy", "health")
MOST_HOSTS = 20_000
MOST_GPUS_PER_HOST = 64


@dataclass(frozen=True, slots=True)
class InventoryHost:
    """A host and how to reach it. `address` is the name unless given; `local` is this machine."""

    name: str
    address: str
    gpus: int
    cluster: str
    port: int | None = None
    user: str | None = None
    identity: tuple[str, ...] = ()
    jump: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    python: str | None = None
    state_dir: str | None = None
    fence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cluster:
    """One pool of like GPUs with its budgets and policy."""

    name: str
    hosts: tuple[InventoryHost, ...]
    budgets: BudgetTree
    policy: Policy
    auto: Automatic = field(default_factory=Automatic)

    def core_hosts(self) -> tuple[Host, ...]:
        return tuple(Host(HostName(h.name), h.gpus, h.labels, bool(h.fence)) for h in self.hosts)

    def loaded(self) -> InventoryLoaded:
        """The cluster as the core sees it."""
        auto = self.auto
        policy = replace(self.policy, serving_floor=auto.floor, serving_floor_ppm=auto.floor_ppm)
        return InventoryLoaded(policy, self.budgets.budgets, self.core_hosts())


def read_labels(source: Source, node: Node | None, place: str) -> tuple[tuple[str, str], ...]:
    """Labels are texts, as they were typed; ordered by key."""
    entries = source.mapping(node, place)
    found = {key: source.text(value, f"{place}.{key}") for key, value in entries.items()}
    return tuple(sorted((key, value) for key, value in found.items() if value is not None))


@dataclass
class ClusterReader:
    """Reads one file. Remembers where each host and address stands, for what may not stand twice."""

    folder: Folder
    ssh: SshSettings
    fence: tuple[str, ...] = ()  # of hosts that name none
    auto: Automatic = field(default_factory=Automatic)  # of clusters that say nothing of their own
    lines: dict[str, int] = field(default_factory=dict)  # by host name
    places: dict[tuple[str, int | None, str | None], str] = field(default_factory=dict)
    total: int = 0

    @property
    def source(self) -> Source:
        return self.folder.source

    def clusters(self, top: dict[str, Node]) -> tuple[Cluster, ...]:
        if "clusters" in top:
            return self._several(top)
        if "hosts" not in top:
            self.source.fail(None, "hosts", "is missing", "name at least one host")
        return (self._cluster(top, "", self._own_name(top.get("name"))),)

    def _own_name(self, node: Node | None) -> str:
        return "main" if node is None else read_name(self.source, node, "name", node) or "main"

    def _several(self, top: dict[str, Node]) -> tuple[Cluster, ...]:
        source = self.source
        for name in ("budgets", "name"):
            if name in top:
                source.fail(top[name], name, "stands beside clusters", "move it into the cluster that it belongs to")
        clusters: dict[str, Cluster] = {}
        for i, node in enumerate(source.sequence(top["clusters"], "clusters")):
            place = f"clusters[{i}]"
            entries = source.mapping(node, place, CLUSTER_FIELDS)
            named = read_name(source, entries.get("name"), f"{place}.name", node)
            cluster = self._cluster(entries, f"{place}.", named or "?", top.get("policy"), node)
            if named in clusters:
                source.fail(entries["name"], f"{place}.name", f"the cluster {named!r} stands twice", "rename one")
            clusters.setdefault(cluster.name, cluster)
        if not clusters:
            source.fail(top["clusters"], "clusters", "holds no cluster", "name at least one")
        return self._add_shared_hosts(top.get("hosts"), clusters)

    def _add_shared_hosts(self, node: Node | None, clusters: dict[str, Cluster]) -> tuple[Cluster, ...]:
        """Hosts listed at the top name their cluster."""
        hosts = self._hosts(node, "hosts", "", tuple(clusters))
        return tuple(
            replace(c, hosts=(*c.hosts, *(h for h in hosts if h.cluster == c.name))) for c in clusters.values()
        )

    def _cluster(
        self, entries: dict[str, Node], prefix: str, name: str, shared: Node | None = None, owner: Node | None = None
    ) -> Cluster:
        if "budgets" not in entries:
            self.source.fail(owner, f"{prefix}budgets", "is missing", "name at least one budget")
        own = "policy" in entries or shared is None
        policy = read_policy(self.source, entries.get("policy", shared), f"{prefix if own else ''}policy")
        tree = read_budgets(self.source, entries.get("budgets"), f"{prefix}budgets", policy)
        hosts = self._hosts(entries.get("hosts"), f"{prefix}hosts", name, (name,))
        of_all = not prefix  # then its `health` is the file's
        auto = self.auto if of_all else read_automatic(self.source, entries.get("health"), f"{prefix}health", self.auto)
        return Cluster(name, tuple(hosts), tree, policy, auto)

    # -- hosts -----------------------------------------------------------------------------------------------------

    def _hosts(self, node: Node | None, place: str, cluster: str, clusters: tuple[str, ...]) -> list[InventoryHost]:
        """`cluster` is where they are listed, "" at the top beside clusters."""
        found: list[InventoryHost] = []
        nodes = self.source.sequence(node, place)
        for i, child in enumerate(nodes):
            found += self._host(child, f"{place}[{i}]", cluster, clusters)
            if self.total > MOST_HOSTS:
                self.source.fail(child, place, f"holds more than {MOST_HOSTS} hosts", "check the ranges")
                return []
        return found

    def _host(self, node: Node, place: str, cluster: str, clusters: tuple[str, ...]) -> list[InventoryHost]:
        source = self.source
        entries = source.mapping(node, place, HOST_FIELDS)
        if "name" not in entries:
            source.fail(node, f"{place}.name", "is missing", "give the host a name, or a range such as gpu[01-08]")
        names = source.parsed(entries.get("name"), f"{place}.name", expand_names) or []
        self.total += len(names)
        gpus = source.integer(entries.get("gpus"), f"{place}.gpus", 1, MOST_GPUS_PER_HOST)
        if "gpus" not in entries:
            source.fail(node, f"{place}.gpus", "is missing", "say how many GPUs to expect")
        home = self._home(node, entries.get("cluster"), f"{place}.cluster", cluster, clusters)
        common = self._reach(entries, place, home)
        addresses = self._addresses(node, entries.get("address"), f"{place}.address", names)
        hosts = [replace(common, name=n, address=a, gpus=gpus or 0) for n, a in zip(names, addresses, strict=False)]
        for host in hosts:
            self._only_once(node, place, host)
        return hosts

    def _addresses(self, node: Node, given: Node | None, place: str, names: list[str]) -> list[str]:
        """One for each name; a name is its own address unless one is given."""
        if given is None:
            for name in names[:1]:
                self._try_name_as_address(node, place, name)
            return names
        addresses = self.source.parsed(given, place, parse_addresses)
        if addresses is None:
            return names
        if len(addresses) != len(names) and names:
            what = f"{len(names)} names, but {len(addresses)} addresses"
            self.source.fail(given, place, what, "let the two ranges be of one length")
        return addresses

    def _try_name_as_address(self, node: Node, place: str, name: str) -> None:
        try:
            parse_addresses(name)
        except ValueError:
            self.source.fail(node, place, f"the name {name!r} is no address", "give the host an address")

    def _home(self, node: Node, given: Node | None, place: str, cluster: str, clusters: tuple[str, ...]) -> str:
        """The one cluster that a host belongs to."""
        named = self.source.text(given, place)
        if named is None and given is None and not cluster:
            fix = f"add cluster: one of {', '.join(clusters)}"
            self.source.fail(node, place, "is missing", fix)
        elif named is not None and named not in clusters:
            what = f"no cluster {named!r}" if not cluster else f"is listed in {cluster!r}, but names {named!r}"
            self.source.fail(given, place, what, suggestion(named, clusters))
        return named or cluster

    def _reach(self, entries: dict[str, Node], place: str, cluster: str) -> InventoryHost:
        source, ssh = self.source, self.ssh
        return InventoryHost(
            "",
            "",
            0,
            cluster,
            source.integer(entries.get("port"), f"{place}.port", 1, 65535) or ssh.port,
            source.parsed(entries.get("user"), f"{place}.user", parse_user) or ssh.user,
            self.folder.files(entries.get("identity"), f"{place}.identity", KEY_ELSEWHERE) or ssh.identity,
            words(source, entries["jump"], f"{place}.jump", parse_jump) if "jump" in entries else ssh.jump,
            read_labels(source, entries.get("labels"), f"{place}.labels"),
            source.text(entries.get("python"), f"{place}.python"),
            source.text(entries.get("state_dir"), f"{place}.state_dir"),
            self.folder.command(entries["fence"], f"{place}.fence") if "fence" in entries else self.fence,
        )

    def _only_once(self, node: Node, place: str, host: InventoryHost) -> None:
        """Two entries for one machine would count and hand out its GPUs twice."""
        source, line = self.source, node.start_mark.line + 1
        if host.name in self.lines:
            fix = f"first in line {self.lines[host.name]}; remove one"
            source.fail(node, f"{place}.name", f"the host {host.name!r} stands twice", fix)
            return
        self.lines[host.name] = line
        key = (host.address.lower(), host.port, host.state_dir if host.address == "local" else None)
        other = self.places.setdefault(key, host.name)
        if other != host.name:
            what = f"{other} and {host.name} have the same address {host.address}"
            source.fail(node, f"{place}.address", what, f"{other} stands in line {self.lines[other]}; list it once")
        if any(jump_host(hop) == host.address for hop in host.jump):
            source.fail(
                node, f"{place}.jump", f"{host.name} is its own jump host", "remove jump here, or elsewhere set it"
            )
