"""inventory.yaml: hosts, clusters, budgets, policy, how to reach everything (docs/inventory.md)."""

from __future__ import annotations

import getpass
import os
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from opsconsole.config.clusters import Cluster, ClusterReader, InventoryHost
from opsconsole.config.console import Layer, read_cluster
from opsconsole.config.errors import ConfigError, Problem
from opsconsole.config.folders import user_config, user_state
from opsconsole.config.health import HealthSettings, read_health
from opsconsole.config.reach import Folder, SshSettings, read_ssh, words
from opsconsole.config.scalars import suggestion
from opsconsole.config.yamlio import Source

__all__ = ["Cluster", "Inventory", "InventoryHost", "SshSettings", "current_user", "find_inventory", "read_inventory"]

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
    "fence_timeout",
    "on_quit",
    "allow_write",
    "console",
)
MOST_BYTES = 8 << 20
FENCE_TIMEOUT_MS = 120_000


@dataclass(frozen=True, slots=True)
class Inventory:
    """A whole file. `warnings` are for people; nothing in them stops anything. `text` is what was read."""

    path: str
    clusters: tuple[Cluster, ...]
    ssh: SshSettings
    state_dir: Path
    system_processes: tuple[str, ...] = ()
    fence_timeout_ms: int = FENCE_TIMEOUT_MS
    on_quit: str = "serve"
    allow_write: bool = True
    console: Layer = field(default_factory=dict)
    health: HealthSettings = field(default_factory=HealthSettings)
    warnings: tuple[Problem, ...] = ()
    text: str = field(default="", repr=False, compare=False)

    @property
    def digest(self) -> str:
        """Names exactly this text."""
        return sha256(self.text.encode()).hexdigest()[:16]

    def cluster(self, name: str | None) -> Cluster:
        """The named one, or the only one. Raises ConfigError that names them all."""
        if name is None and len(self.clusters) == 1:
            return self.clusters[0]
        names = [c.name for c in self.clusters]
        for cluster in self.clusters:
            if cluster.name == name:
                return cluster
        what = "holds several clusters" if name is None else f"holds no cluster {name!r}"
        fix = f"choose with --cluster: {', '.join(names)}" if name is None else suggestion(name, names)
        raise ConfigError([Problem(self.path, 0, "", what, fix)])

    def store_path(self, cluster: Cluster) -> Path:
        return self.state_dir / f"{cluster.name}.db"


def find_inventory(given: str | None) -> str:
    """--inventory, $OPSCONSOLE_INVENTORY, ./inventory.yaml, then the user's. Raises ConfigError that names the
    places."""
    explicit = given or os.environ.get("OPSCONSOLE_INVENTORY")
    if explicit:
        return explicit
    user = user_config() / "inventory.yaml"
    for place in (Path("inventory.yaml"), user):
        if os.path.lexists(place):
            return str(place)
    fix = "write one (docs/inventory.md), or name it with --inventory or $OPSCONSOLE_INVENTORY"
    raise ConfigError([Problem("inventory.yaml", 0, "", f"is neither in {Path.cwd()} nor at {user}", fix)])


def read_inventory(path: str) -> Inventory:
    """Raises ConfigError with everything that is wrong in the file."""
    return parse_inventory(Source.open(path, MOST_BYTES), path)


def parse_inventory(source: Source, path: str) -> Inventory:
    """A text that has been read from `path`: relative paths in it begin there. Raises ConfigError."""
    top = source.mapping(source.root(), "", TOP)
    folder = Folder(source, Path(os.path.abspath(path)).parent)
    ssh = read_ssh(folder, top.get("ssh"))
    fence = folder.command(top.get("fence"), "fence")
    health = read_health(source, top.get("health"))
    inventory = Inventory(
        source.file,
        ClusterReader(folder, ssh, fence, health.auto).clusters(top),
        ssh,
        folder.path(top.get("state_dir"), "state_dir") or user_state(),
        words(source, top.get("system_processes"), "system_processes"),
        source.span_ms(top.get("fence_timeout"), "fence_timeout", 1000, 3_600_000) or FENCE_TIMEOUT_MS,
        source.choice(top.get("on_quit"), "on_quit", ("serve", "stop")) or "serve",
        source.boolean(top.get("allow_write"), "allow_write") is not False,
        read_cluster(source, top.get("console"), folder.base),
        health,
        tuple(source.warnings),
        source.content,
    )
    source.check()
    return inventory


def current_user() -> str:
    """Who asks, for the records."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"
