"""Starts and stops the demo's hosts, writes their inventory, and breaks their GPUs on request."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from opsconsole.demo.hosts import kill_all
from opsconsole.errors import OpsConsoleError

GPUS_PER_HOST = 8
MEMORY_BYTES = 80 * 1024**3
START_TIMEOUT_S = 20

INVENTORY = """\
# The demo's own inventory: a real one looks the same.
hosts:
{hosts}
ssh:
  known_hosts: {root}/known_hosts
  probe_interval: 1s
state_dir: {root}/console
policy:
  lookback: 5m
  min_runtime_bounds: [0, 2m]
  pass_interval: 1s
  checkpoint_grace: 3s
  stop_grace: 2s
  stop_deadline: 30s
  start_timeout: 30s
  lost_after: 20s
  claim_horizon: 30s
  retry_delay: 5s
  breaker_gpus: 4096
health: {health}
budgets:
  - name: olmo
    weight: 3
    children:
      - {{name: pretrain, weight: 3}}
      - {{name: eval, weight: 1}}
  - {{name: vision, weight: 2}}
  - {{name: nlp, weight: 1}}
"""


def host_names(count: int) -> list[str]:
    return [f"gpu{n:02}" for n in range(1, count + 1)]


def gpu_table(host: str) -> dict[str, Any]:
    """What the simulated driver of a fresh host says; the format is the hostkit's (OPSCONSOLE_FAKE_NVML)."""
    number = int(host.removeprefix("gpu"))
    return {
        "driver": "580.95.05 (simulated)",
        "gpus": [
            {
                "pci": f"00000000:{0x10 + slot:02X}:00.0",
                "uuid": f"GPU-{number:08x}-0000-4000-8000-{slot:012x}",
                "name": "NVIDIA H100 80GB HBM3",
                "memory_total_bytes": MEMORY_BYTES,
                "readings": {},
            }
            for slot in range(GPUS_PER_HOST)
        ],
        "kernel": [],
    }


def _write(path: Path, text: str) -> None:
    """At once: agents read it at any moment."""
    scratch = path.with_suffix(".new")
    scratch.write_text(text)
    scratch.replace(path)


@dataclass
class DemoCluster:
    """The hosts of one demo, in a directory of its own that goes when they stop."""

    hosts: int = 8
    health: str = "{auto: propose}"  # of its inventory
    root: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="opsconsole-demo-")))
    _child: asyncio.subprocess.Process | None = None

    @property
    def inventory(self) -> Path:
        return self.root / "inventory.yaml"

    async def start(self) -> None:
        """Returns when every host accepts connections. Raises OpsConsoleError when one does not."""
        names = host_names(self.hosts)
        self._write_keys(names)
        self._child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-Wignore::RuntimeWarning",  # asyncssh drops a queue at the end; not on our screen
            "-m",
            "opsconsole.demo.hosts",
            str(self.root),
            *names,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the console; the hosts leave by the end of stdin
        )
        assert self._child.stdout is not None
        try:
            line = await asyncio.wait_for(self._child.stdout.readline(), START_TIMEOUT_S)
            ports = json.loads(line)["ports"]
        except (TimeoutError, ValueError) as error:
            raise OpsConsoleError(
                "the demo's SSH servers did not start", advice="run it again; is loopback there?"
            ) from error
        self._write_inventory(ports)

    def _write_keys(self, names: list[str]) -> None:
        import asyncssh

        client = asyncssh.generate_private_key("ssh-ed25519")
        client.write_private_key(self.root / "client_key")
        client.write_public_key(self.root / "client_key.pub")
        os.chmod(self.root / "client_key", 0o600)
        for name in names:
            home = self.root / "hosts" / name
            (home / "state").mkdir(parents=True)
            (home / "state").chmod(0o700)
            key = asyncssh.generate_private_key("ssh-ed25519")
            key.write_private_key(home / "host_key")
            key.write_public_key(home / "host_key.pub")
            self._boot(name)

    def _write_inventory(self, ports: dict[str, int]) -> None:
        rows, known = [], []
        for name, port in ports.items():
            rows.append(
                f"  - {{name: {name}, address: 127.0.0.1, port: {port}, user: demo, "
                f"identity: {self.root}/client_key, gpus: {GPUS_PER_HOST}}}"
            )
            public = (self.root / "hosts" / name / "host_key.pub").read_text().strip()
            known.append(f"[127.0.0.1]:{port} {public}")
        (self.root / "known_hosts").write_text("\n".join(known) + "\n")
        self.inventory.write_text(INVENTORY.format(hosts="\n".join(rows), root=self.root, health=self.health))

    def _boot(self, host: str) -> None:
        """Sound GPUs, a kernel that has said nothing, and a boot id of its own."""
        home = self.root / "hosts" / host
        _write(home / "gpus.json", json.dumps(gpu_table(host)))
        _write(home / "boot_id", str(uuid4()))

    def power_cycle(self, host: str) -> None:
        """Whatever runs there dies at once, and the host comes back with another boot id and all its GPUs."""
        kill_all(f"OPSCONSOLE_STATE_DIR={self.root / 'hosts' / host / 'state'}")
        self._boot(host)

    def break_gpu(self, host: str, slot: int) -> None:
        """The GPU falls off the bus: XID 79 in the kernel log, every reading fails from now on."""
        path = self.root / "hosts" / host / "gpus.json"
        table = json.loads(path.read_text())
        gpu = table["gpus"][slot]
        gpu["lost"] = True
        with open("/proc/uptime") as uptime:
            at = float(uptime.read().split()[0])
        text = f"NVRM: Xid (PCI:{gpu['pci'][4:-2]}): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
        table["kernel"].append({"monotonic_s": at, "text": text})
        _write(path, json.dumps(table))

    async def stop(self) -> None:
        """Ends the hosts and waits until their processes and files are gone."""
        if self._child is None:
            return
        assert self._child.stdin is not None
        with contextlib.suppress(ConnectionError):
            self._child.stdin.close()
        await self._child.wait()
        self._child = None
