"""Three real sshd with simulated GPUs, a leader that is a process of its own, and what can happen to them.

Every host has its own address on loopback, host key, home, state directory, boot id and machine id, and lets in as
little as a host may: MaxStartups 2, MaxSessions 1.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from opsconsole.runtime import Runtime
from opsconsole.store.store import Store
from scheduler_core.fleet import Reach
from scheduler_core.ids import HostName, RunId, WorkloadId
from scheduler_core.observations import HostUnreachable
from scheduler_core.state import ClusterState, Run, WorkloadRecord
from tests.live import testimony
from tests.live.commands import PATIENCE_S, CommandLine
from tests.live.testimony import Life, lives
from tests.sshd import Sshd, SshdFactory, program, public_key, signal_all

GPUS_PER_HOST = 2
INVENTORY = """\
hosts:
{hosts}
ssh: {{known_hosts: {known_hosts}, probe_interval: {interval}, user: {user}, identity: {key}}}
state_dir: {root}/console
policy:
  lookback: 10m
  min_runtime_bounds: [0, 2m]
  pass_interval: 200ms
  stop_grace: 5s
  lost_after: 60s
  claim_horizon: 30s
  retry_delay: 1s
budgets:
  - {{name: a, weight: 1}}
  - {{name: b, weight: 1}}
"""


@dataclass
class Trio(CommandLine):
    """`serve` first. Instants and states are read from the journal, as any follower reads it."""

    hosts: list[Sshd]
    stamps: Path
    leaders: list[subprocess.Popen[str]] = field(default_factory=list)
    min_s: dict[str, float] = field(default_factory=dict)  # of what nobody but the scheduler may stop

    # -- looking -----------------------------------------------------------------------------------------------------

    @cached_property
    def store(self) -> Store:
        return self.place.open_store(read_only=True)

    @cached_property
    def follower(self) -> Runtime:
        return self.place.follower()

    @property
    def state(self) -> ClusterState:
        """As the journal has it now."""
        self.follower.follow()
        return self.follower.state

    def record(self, wid: str) -> WorkloadRecord:
        return self.state.workloads[WorkloadId(wid)]

    def started(self, wid: str, attempt: int = 1) -> Run | None:
        """That attempt's run, once all of it has started."""
        state = self.state
        record = state.workloads[WorkloadId(wid)]
        run = state.runs[record.run] if record.run is not None and record.attempt == attempt else None
        return run if run is not None and run.started_at is not None else None

    def running(self, wid: str, attempt: int = 1) -> Run | None:
        """The same, once all of it testifies."""
        run = self.started(wid, attempt)
        testifying = sum(life.attempt == attempt for life in self.lives_of(wid))
        return run if run is not None and testifying == len(run.members) else None

    def ended(self, wid: str) -> bool:
        return self.record(wid).outcome is not None

    def reach(self, host: Sshd) -> Reach:
        return self.state.hosts[HostName(host.name)].reach

    def lives_of(self, wid: str) -> list[Life]:
        return [life for life in lives(self.stamps) if life.workload == wid]

    def wait(self, true: Callable[[], Any], what: str) -> Any:
        """Until it is so; fails with what the leaders said."""
        end = time.monotonic() + PATIENCE_S
        while not (found := true()):
            if time.monotonic() > end:
                said = self.inventory.with_name("serve.log").read_text()
                hosts = {name: (r.reach.value, r.unreachable_why) for name, r in self.state.hosts.items()}
                raise AssertionError(f"waited {PATIENCE_S} s for {what}\n{hosts}\n{self.state.runs}\n{said}")
            time.sleep(0.05)
        return found

    def placed_at(self, token: str) -> int:
        if (run := self.state.runs.get(RunId(token))) is not None:
            return run.placed_at
        attempts = self.record(token.rpartition("~")[0]).attempts
        return next(attempt.placed_at for attempt in attempts if attempt.run == token)

    def clocks_apart_ms(self) -> int:
        """The cluster's time less this machine's boot-time clock."""
        _, at, cluster = json.loads(self.store.get("clock") or "")
        return int(cluster) - int(at)

    # -- doing -------------------------------------------------------------------------------------------------------

    def lead(self) -> None:
        """A leader, or one that stands by for the one that leads; returns when it leads or waits."""
        self.leaders.append(self.serve("--standby"))
        if len(self.leaders) == 1:
            self.until(lambda: self.run("hosts"), "somebody to lead")
            self.wait(self.all_fresh, "all hosts to answer")

    def all_fresh(self) -> bool:
        return len(self.state.hosts) == len(self.hosts) and all(self.reach(h) is Reach.FRESH for h in self.hosts)

    def submit(self, name: str, *words: str, budget: str = "a", gpus: int = 2, min_s: float = 2.0) -> str:
        """A workload that testifies; returns its id."""
        options = ("--budget", budget, "--gpus", str(gpus), "--min-runtime", f"{min_s:g}s", "--resumable", *words)
        command = (sys.executable, "-I", "-S", testimony.__file__, str(self.stamps))
        wid = self.run("submit", "--yes", "--name", name, *options, "--", *command).strip()
        self.min_s[wid] = min_s
        return wid

    def cancel(self, wid: str) -> None:
        del self.min_s[wid]  # its owner may
        self.run("cancel", wid, "--yes")

    def let_finish(self, wid: str) -> None:
        (self.stamps / f"{wid}.finish").touch()

    def close(self) -> None:
        for leader in self.leaders:
            leader.send_signal(signal.SIGCONT)
            leader.terminate()
        for leader in self.leaders:
            leader.wait(20)
        self.store.close()
        self.follower.store.close()


# -- what happens meanwhile -----------------------------------------------------------------------------------------
# Each is entered, the step is done, and on leaving it happens or is over.


@contextmanager
def cut(trio: Trio) -> Iterator[None]:
    """Every SSH connection is cut the moment after the step."""
    since = all_well(trio)
    yield
    for host in trio.hosts:
        signal_all(host.sessions(), signal.SIGKILL)
    wait_for_losses(trio, since)


@contextmanager
def half_open(trio: Trio) -> Iterator[None]:
    """The connections pass nothing on any more; new ones work."""
    with asleep(trio, [pid for host in trio.hosts for pid in host.sessions()]):
        yield


@contextmanager
def stalled(trio: Trio) -> Iterator[None]:
    """The agents stop, as on a host that swaps. sshd goes on taking in what is sent to them: they find it later."""
    agents = [pid for host in trio.hosts for pid in host.pids() if program(pid).startswith("python")]
    with asleep(trio, agents):
        yield


@contextmanager
def asleep(trio: Trio, pids: list[int]) -> Iterator[None]:
    """They wake when every host was lost and has been reached anew."""
    since = all_well(trio)
    signal_all(pids, signal.SIGSTOP)
    try:
        yield
        wait_for_losses(trio, since)
        trio.wait(trio.all_fresh, "all hosts to answer by new connections")
    finally:
        signal_all(pids, signal.SIGCONT)


@contextmanager
def leader_killed(trio: Trio) -> Iterator[None]:
    """The leader dies the moment after the step; one that stands by goes on."""
    trio.lead()
    all_well(trio)
    yield
    kill_leader(trio)


def kill_leader(trio: Trio) -> None:
    """Returns when the one that stands by leads."""
    epoch = trio.store.lease().epoch
    leader = trio.leaders.pop(0)
    leader.kill()
    leader.wait()
    trio.wait(lambda: trio.store.lease().epoch > epoch, "the next leader")


FAULTS = (cut, half_open, stalled, leader_killed)
Fault = Callable[[Trio], Any]


def all_well(trio: Trio) -> int:
    """Once every host answers; returns where the journal is."""
    trio.wait(trio.all_fresh, "all hosts to answer")
    return trio.store.last_seq()


def wait_for_losses(trio: Trio, since: int) -> None:
    """Until the leader has lost every host."""
    names = {host.name for host in trio.hosts}

    def lost() -> bool:
        return names == {e.value.host for e in trio.store.tail(since) if isinstance(e.value, HostUnreachable)}

    trio.wait(lost, "every link to be lost")


class Door(Protocol):
    """Where SSH is answered."""

    @property
    def address(self) -> str: ...
    @property
    def port(self) -> int: ...


# -- making it ------------------------------------------------------------------------------------------------------


def make_trio(
    sshd_factory: SshdFactory, root: Path, through: Callable[[Sshd], Door] = lambda host: host, interval: str = "1s"
) -> Trio:
    """Hosts that answer, and nobody who leads. `through`: where each is reached, if not at itself."""
    hosts = [_host(sshd_factory, root, number) for number in (1, 2, 3)]
    doors = {host: through(host) for host in hosts}
    known_hosts = root / "known_hosts"
    known = [f"[{door.address}]:{door.port} {public_key(host.host_key)}\n" for host, door in doors.items()]
    known_hosts.write_text("".join(known))
    lines = "\n".join(
        f"  - {{name: {host.name}, address: {door.address}, port: {door.port}, gpus: {GPUS_PER_HOST}}}"
        for host, door in doors.items()
    )
    inventory = root / "inventory.yaml"
    facts = {"known_hosts": known_hosts, "user": hosts[0].user, "key": hosts[0].key, "root": root, "interval": interval}
    text = INVENTORY.format(hosts=lines, **facts)
    inventory.write_text(text)
    stamps = root / "stamps"
    stamps.mkdir()
    return Trio(inventory, hosts, stamps)


def _host(sshd_factory: SshdFactory, root: Path, number: int) -> Sshd:
    name = f"gpu{number}"
    home = root / name
    home.mkdir()
    uuids = [f"GPU-{number}{slot}" for slot in range(GPUS_PER_HOST)]
    gpus = [{"pci": f"0000:{slot + 1}0:00.0", "uuid": uuid, "name": "H100"} for slot, uuid in enumerate(uuids)]
    (home / "gpus.json").write_text(json.dumps({"driver": "580.1 (fake)", "gpus": gpus}))
    (home / "machine-id").write_text(f"{number:032x}\n")
    (home / "boot-id").write_text("first\n")
    env = {
        "OPSCONSOLE_FAKE_NVML": str(home / "gpus.json"),
        "OPSCONSOLE_BOOT_ID_FILE": str(home / "boot-id"),
        "OPSCONSOLE_MACHINE_ID_FILE": str(home / "machine-id"),
        testimony.HOST: name,
    }
    return sshd_factory(name, env=env, max_startups="2", max_sessions=1)
