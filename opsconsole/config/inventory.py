"""inventory.yaml: hosts, clusters, budgets, policy, how to reach everything (docs/inventory.md)."""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from yaml.nodes import Node

from opsconsole.config.budgets import read_budgets, read_name
from opsconsole.config.errors import ConfigError, Problem
from opsconsole.config.knobs import read_policy
from opsconsole.config.ranges import expand
from opsconsole.config.scalars import suggestion
from opsconsole.config.yamlio import Source
from scheduler_core.budget import BudgetTree
from scheduler_core.fleet import Host
from scheduler_core.ids import HostName
from scheduler_core.observations import InventoryLoaded
from scheduler_core.policy import Policy

TOP = (
    "name",
    "hosts",
    "clusters",
    "budgets",
    "policy",
    "ssh",
    "state_dir",
    "system_processes",
    "health",
    "fence",
    "on_quit",
    "allow_write",
)
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
)
CLUSTER_FIELDS = ("name", "hosts", "budgets", "policy")
SSH_FIELDS = (
    "user",
    "port",
    "identity",
    "jump",
    "known_hosts",
    "config",
    "connect_timeout",
    "connecting",
    "probe_interval",
)
HEALTH_FIELDS = ("auto", "rules")


@dataclass(frozen=True, slots=True)
class SshSettings:
    """Defaults of all hosts. None: as ~/.ssh/config says."""

    user: str | None = None
    port: int | None = None
    identity: tuple[str, ...] = ()
    jump: tuple[str, ...] = ()
    known_hosts: tuple[str, ...] = ()
    config: tuple[str, ...] | None = None
    connect_timeout_ms: int = 10_000
    connecting: int = 32
    probe_interval_ms: int = 2_000


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


@dataclass(frozen=True, slots=True)
class Cluster:
    """One pool of like GPUs with its budgets and policy."""

    name: str
    hosts: tuple[InventoryHost, ...]
    budgets: BudgetTree
    policy: Policy

    def loaded(self) -> InventoryLoaded:
        """The cluster as the core sees it."""
        hosts = tuple(Host(HostName(h.name), h.gpus, h.labels) for h in self.hosts)
        return InventoryLoaded(self.policy, self.budgets.budgets, hosts)


@dataclass(frozen=True, slots=True)
class Inventory:
    path: str
    clusters: tuple[Cluster, ...]
    ssh: SshSettings
    state_dir: Path
    system_processes: tuple[str, ...] = ()
    fence: tuple[str, ...] = ()
    on_quit: str = "serve"
    allow_write: bool = True

    def cluster(self, name: str | None) -> Cluster:
        """The named one, or the only one. Raises ConfigError that names them all."""
        if name is None and len(self.clusters) == 1:
            return self.clusters[0]
        names = [c.name for c in self.clusters]
        for cluster in self.clusters:
            if cluster.name == name:
                return cluster
        what = "holds several clusters" if name is None else f"holds no cluster {name!r}"
        raise ConfigError([Problem(self.path, 0, "clusters", what, f"choose with --cluster: {', '.join(names)}")])

    def store_path(self, cluster: Cluster) -> Path:
        return self.state_dir / f"{cluster.name}.db"


def find_inventory(given: str | None, environment: Mapping[str, str] = os.environ) -> str:
    """--inventory, $OPSCONSOLE_INVENTORY, ./inventory.yaml, then the user's. Raises ConfigError that names the
    places."""
    user = Path(environment.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "opsconsole/inventory.yaml"
    explicit = given or environment.get("OPSCONSOLE_INVENTORY")
    if explicit:
        return explicit
    for place in (Path("inventory.yaml"), user):
        if place.exists():
            return str(place)
    raise ConfigError([Problem("inventory.yaml", 0, "", f"is neither here nor at {user}", "give it with --inventory")])


def read_inventory(path: str) -> Inventory:
    """Raises ConfigError with everything that is wrong in the file."""
    source = Source.open(path)
    top = source.mapping(source.root(), "", TOP)
    reader = _InventoryReader(source, _ssh(source, top.get("ssh")))
    clusters = reader.clusters(top)
    directory = source.text(top.get("state_dir"), "state_dir")
    inventory = Inventory(
        source.file,
        clusters,
        reader.ssh,
        Path(directory).expanduser() if directory else default_state_dir(),
        _words(source, top.get("system_processes"), "system_processes"),
        _words(source, top.get("fence"), "fence"),
        source.choice(top.get("on_quit"), "on_quit", ("serve", "stop")) or "serve",
        source.boolean(top.get("allow_write"), "allow_write") is not False,
    )
    _health(source, top.get("health"))
    source.check()
    return inventory


def default_state_dir() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state"
    return Path(base) / "opsconsole"


def _health(source: Source, node: Node | None) -> None:
    """Kept for the health rules to come; its shape is checked already."""
    entries = source.mapping(node, "health", HEALTH_FIELDS)
    source.choice(entries.get("auto"), "health.auto", ("off", "propose", "drain"))
    source.mapping(entries.get("rules"), "health.rules")


def _ssh(source: Source, node: Node | None) -> SshSettings:
    entries = source.mapping(node, "ssh", SSH_FIELDS)
    default = SshSettings()
    timeout = source.span_ms(entries.get("connect_timeout"), "ssh.connect_timeout", 1000, 600_000)
    interval = source.span_ms(entries.get("probe_interval"), "ssh.probe_interval", 500, 600_000)
    return SshSettings(
        source.text(entries.get("user"), "ssh.user"),
        source.integer(entries.get("port"), "ssh.port", 1, 65535),
        _words(source, entries.get("identity"), "ssh.identity"),
        _words(source, entries.get("jump"), "ssh.jump"),
        _words(source, entries.get("known_hosts"), "ssh.known_hosts"),
        _words(source, entries["config"], "ssh.config") if "config" in entries else None,
        timeout or default.connect_timeout_ms,
        source.integer(entries.get("connecting"), "ssh.connecting", 1, 1024) or default.connecting,
        interval or default.probe_interval_ms,
    )


def _words(source: Source, node: Node | None, field: str) -> tuple[str, ...]:
    """One word, or a list of them; `~` at the start is the home directory."""
    if node is None:
        return ()
    nodes = source.sequence(node, field) if isinstance(node.value, list) else [node]
    found = [source.text(n, field) for n in nodes]
    return tuple(str(Path(w).expanduser()) if w.startswith("~") else w for w in found if w is not None)


@dataclass
class _InventoryReader:
    source: Source
    ssh: SshSettings

    def clusters(self, top: dict[str, Node]) -> tuple[Cluster, ...]:
        if "clusters" in top:
            return self._several(top)
        cluster = self._cluster(top, "", self.source.text(top.get("name"), "name") or "main")
        self._no_host_twice([cluster])
        return (cluster,)

    def _several(self, top: dict[str, Node]) -> tuple[Cluster, ...]:
        source = self.source
        for name in ("hosts", "budgets"):
            if name in top and name == "budgets":
                source.fail(top[name], name, "stands beside clusters", "move it into the cluster that it belongs to")
        clusters = []
        for i, node in enumerate(source.sequence(top.get("clusters"), "clusters")):
            place = f"clusters[{i}]"
            entries = source.mapping(node, place, CLUSTER_FIELDS)
            cluster_name = read_name(source, entries.get("name"), f"{place}.name", node)
            if cluster_name is not None:
                clusters.append(self._cluster(entries, f"{place}.", cluster_name, shared_policy=top.get("policy")))
        clusters = self._add_shared_hosts(top.get("hosts"), clusters)
        if len({c.name for c in clusters}) != len(clusters):
            source.fail(top["clusters"], "clusters", "two clusters share a name", "rename one")
        self._no_host_twice(clusters)
        return tuple(clusters)

    def _cluster(self, entries: dict[str, Node], prefix: str, name: str, shared_policy: Node | None = None) -> Cluster:
        source = self.source
        if "budgets" not in entries:
            source.fail(None, f"{prefix}budgets", "is missing", "name at least one budget")
        if "hosts" not in entries and not prefix:
            source.fail(None, "hosts", "is missing", "name at least one host")
        policy = read_policy(source, entries.get("policy", shared_policy), f"{prefix}policy")
        tree = read_budgets(source, entries.get("budgets"), f"{prefix}budgets")
        self._defaults_in_bounds(entries.get("budgets"), f"{prefix}budgets", tree, policy)
        return Cluster(name, tuple(self._hosts(entries.get("hosts"), f"{prefix}hosts", name)), tree, policy)

    def _defaults_in_bounds(self, node: Node | None, field: str, tree: BudgetTree, policy: Policy) -> None:
        for b in tree.budgets:
            default = b.min_runtime_default_ms
            if default and not policy.min_runtime_min_ms <= default <= policy.min_runtime_max_ms:
                what = f"min_runtime_default of {tree.paths[b.id]} is outside min_runtime_bounds"
                self.source.fail(node, field, what, "change one of the two")

    def _add_shared_hosts(self, node: Node | None, clusters: list[Cluster]) -> list[Cluster]:
        """Hosts listed at the top name their cluster."""
        hosts = self._hosts(node, "hosts", "")
        names = {c.name for c in clusters}
        for host in hosts:
            if host.cluster not in names:
                what = f"{host.name} names no cluster" if not host.cluster else f"no cluster {host.cluster!r}"
                self.source.fail(node, "hosts", what, suggestion(host.cluster, names))
        return [replace(c, hosts=(*c.hosts, *(h for h in hosts if h.cluster == c.name))) for c in clusters]

    def _hosts(self, node: Node | None, field: str, cluster: str) -> list[InventoryHost]:
        found: list[InventoryHost] = []
        for i, child in enumerate(self.source.sequence(node, field)):
            found += self._host(child, f"{field}[{i}]", cluster)
        if node is not None and not found:
            self.source.fail(node, field, "holds no host", "name at least one")
        return found

    def _host(self, node: Node, place: str, cluster: str) -> list[InventoryHost]:
        source = self.source
        entries = source.mapping(node, place, HOST_FIELDS)
        if "name" not in entries:
            source.fail(node, f"{place}.name", "is missing", "give the host a name, or a range such as gpu[01-08]")
            return []
        if read_name(source, entries["name"], f"{place}.name", node) is None:
            return []
        names = source.parsed(entries["name"], f"{place}.name", expand) or []
        addresses = source.parsed(entries.get("address"), f"{place}.address", expand) or names
        if len(addresses) == 1:
            addresses = addresses * len(names)
        if len(addresses) != len(names):
            what = f"{len(names)} names, but {len(addresses)} addresses"
            source.fail(entries.get("address", node), f"{place}.address", what, "let the two ranges be of one length")
            return []
        gpus = source.integer(entries.get("gpus"), f"{place}.gpus", 0, 64)
        if "gpus" not in entries:
            source.fail(node, f"{place}.gpus", "is missing", "say how many GPUs to expect")
        common = self._reach(entries, place, cluster)
        return [replace(common, name=n, address=a, gpus=gpus or 0) for n, a in zip(names, addresses, strict=True)]

    def _reach(self, entries: dict[str, Node], place: str, cluster: str) -> InventoryHost:
        source, ssh = self.source, self.ssh
        labels = source.mapping(entries.get("labels"), f"{place}.labels")
        texts = {key: source.text(value, f"{place}.labels.{key}") for key, value in labels.items()}
        return InventoryHost(
            "",
            "",
            0,
            source.text(entries.get("cluster"), f"{place}.cluster") or cluster,
            source.integer(entries.get("port"), f"{place}.port", 1, 65535) or ssh.port,
            source.text(entries.get("user"), f"{place}.user") or ssh.user,
            _words(source, entries.get("identity"), f"{place}.identity") or ssh.identity,
            _words(source, entries.get("jump"), f"{place}.jump") or ssh.jump,
            tuple(sorted((key, text) for key, text in texts.items() if text is not None)),
            source.text(entries.get("python"), f"{place}.python"),
            source.text(entries.get("state_dir"), f"{place}.state_dir"),
        )

    def _no_host_twice(self, clusters: list[Cluster]) -> None:
        names: dict[str, str] = {}
        places: dict[tuple[str, int | None, str | None], str] = {}
        for cluster in clusters:
            for host in cluster.hosts:
                if host.name in names:
                    self.source.fail(None, "hosts", f"the host {host.name!r} stands twice", "remove one")
                names[host.name] = cluster.name
                place = (host.address, host.port, host.state_dir)
                if place in places and host.address != "local":
                    what = f"{places[place]} and {host.name} have the same address {host.address}"
                    self.source.fail(None, "hosts", what, "every host is listed once")
                places[place] = host.name


def current_user() -> str:
    """Who asks, for the records."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"
