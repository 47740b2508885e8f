"""Rule 13 on real process trees, the host's own guard of the contract, and the fence."""

from __future__ import annotations

import base64
import json
import os
import signal
import sys
import time

import pytest

from tests.hostkit.hosts import Host, wait_until

# A tree that resists: it ignores SIGTERM, double-forks, changes group and session, and clears its environment.
STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
def spread(how):
    if os.fork() == 0:
        how()
        if os.fork() == 0:
            sys.stdout.flush()
            env = {} if how is os.setsid else os.environ
            os.execve(sys.executable, [sys.executable, "-c", LOOP, "stubborn-child"], env)
        os._exit(0)
LOOP = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)"
for how in (os.setsid, os.setpgrp, lambda: None):
    spread(how)
print("ready", flush=True)
time.sleep(1000)
"""


def stubborn(host: Host, token: str = "a~1") -> None:
    client = host.clients[-1]
    client.start(token, [sys.executable, "-c", STUBBORN, "stubborn-main"], gpus=["GPU-a"])
    wait_until(lambda: b"ready" in base64.b64decode(client.log(token)["data"]))
    # Those that cleared their environment do not carry the test's mark: count through /proc.
    wait_until(lambda: len(stubborn_pids(host)) >= 4)


def stubborn_pids(host: Host) -> list[int]:
    """Members by their command line and by being below this host's supervisor (they may hide their environment)."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    line = file.read()
                with open(f"/proc/{entry}/stat") as file:
                    state = file.read().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if b"stubborn-" in line and state not in "ZX":
                found.append(int(entry))
    return found


def test_a_stubborn_tree_is_gone_and_only_then_released(host: Host) -> None:
    """G2-23, G4-15."""
    client = host.connect()
    stubborn(host)
    asked_at = time.monotonic()
    run = client.stop("a~1", stop_grace_s=1)["run"]
    assert run["phase"] in ("running", "stopping")
    run = client.wait_phase("a~1", "released")
    assert stubborn_pids(host) == []
    assert run["exit"] == {"signal": "SIGKILL"} and run["signalled"] and run["stop_reason"] == "test"
    assert 1.0 <= time.monotonic() - asked_at < 8


def test_nothing_is_killed_before_its_grace_ends(host: Host) -> None:
    """G2-23: the shell dies of SIGTERM at once; its child traps it and needs its time."""
    client = host.connect()
    child = "trap 'sleep 1.5; echo saved > saved; exit 0' TERM; while :; do sleep 0.1; done"
    client.start("a~1", ["sh", "-c", f"sh -c '{child.replace(chr(39), chr(39) + chr(92) + chr(39) * 2)}' & wait"])
    wait_until(lambda: len(host.processes_like("trap")) >= 2)
    client.stop("a~1", stop_grace_s=20)
    run = client.wait_phase("a~1", "released")
    assert (host.root / "saved").read_text() == "saved\n" and run["signalled"]


def test_a_polite_run_ends_at_once_with_its_own_code(host: Host) -> None:
    client = host.connect()
    client.start("a~1", ["sh", "-c", "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done"])
    wait_until(lambda: client.log("a~1")["size"] > 0)
    asked_at = time.monotonic()
    client.stop("a~1", stop_grace_s=60)
    run = client.wait_phase("a~1", "released")
    assert time.monotonic() - asked_at < 10
    assert run["exit"] == {"code": 0} and run["signalled"]  # code 0, yet the stop was ours


def test_the_checkpoint_signal_comes_first(host: Host) -> None:
    script = "trap 'echo saved; exit 3' USR1; trap 'echo term; exit 9' TERM; echo ready; while :; do sleep 0.05; done"
    client = host.connect()
    client.start("a~1", ["sh", "-c", script], checkpoint={"signal": "SIGUSR1"})
    wait_until(lambda: client.log("a~1")["size"] > 0)
    client.stop("a~1")
    assert client.wait_phase("a~1", "released")["exit"] == {"code": 3}
    assert base64.b64decode(client.log("a~1")["data"]) == b"ready\nsaved\n"


def test_a_touched_checkpoint_file_ends_the_wait(host: Host) -> None:
    script = (
        "trap 'touch $OPSCONSOLE_CHECKPOINT_FILE' USR1; trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done"
    )
    client = host.connect()
    client.start("a~1", ["sh", "-c", script], checkpoint={"signal": "USR1"})
    wait_until(lambda: client.log("a~1")["size"] > 0)
    client.stop("a~1", checkpoint_grace_s=600)
    run = client.wait_phase("a~1", "released")
    assert run["exit"] == {"code": 9} and abs(run["checkpointed_unix_s"] - time.time()) < 60


def test_the_checkpoint_command_runs_in_the_runs_own_surroundings(host: Host) -> None:
    client = host.connect()
    checkpoint = {"argv": ["sh", "-c", "echo checkpoint of $OPSCONSOLE_RUN with $X"]}
    client.start("a~1", ["sleep", "1000"], env={"X": "y z"}, checkpoint=checkpoint)
    client.stop("a~1", checkpoint_grace_s=60)
    assert client.wait_phase("a~1", "released")["exit"] == {"signal": "SIGTERM"}
    assert base64.b64decode(client.log("a~1")["data"]) == b"checkpoint of a~1 with y z\n"


def test_a_checkpoint_that_never_ends_has_its_grace_only(host: Host) -> None:
    client = host.connect()
    client.start("a~1", ["sleep", "1000"], checkpoint={"argv": ["sleep", "3000"]})
    client.stop("a~1", checkpoint_grace_s=0.5, stop_grace_s=1)
    client.wait_phase("a~1", "released")
    assert not host.processes_like("sleep 3000")


def test_a_missing_checkpoint_command_does_not_keep_it_alive(host: Host) -> None:
    client = host.connect()
    client.start("a~1", ["sleep", "1000"], checkpoint={"argv": ["/no/such/command"]})
    client.stop("a~1", checkpoint_grace_s=600)
    client.wait_phase("a~1", "released")
    assert b"checkpoint command failed" in base64.b64decode(client.log("a~1")["data"])


def test_a_second_stop_can_shorten_the_graces(host: Host) -> None:
    client = host.connect()
    stubborn(host)
    client.stop("a~1", stop_grace_s=600)
    client.wait_phase("a~1", "stopping")
    client.stop("a~1", stop_grace_s=0.2)
    client.wait_phase("a~1", "released")


def test_the_stop_goes_on_without_the_agent(host: Host) -> None:
    """G4-15."""
    client = host.connect()
    stubborn(host)
    client.stop("a~1", stop_grace_s=1)
    client.kill()
    wait_until(lambda: not stubborn_pids(host))
    assert host.connect().wait_phase("a~1", "released")["signalled"]


def test_a_stopped_process_hears_the_stop(host: Host) -> None:
    client = host.connect()
    client.start("a~1", ["sleep", "1000"])
    os.kill(host.run_state("a~1")["main"]["pid"], signal.SIGSTOP)
    client.stop("a~1", stop_grace_s=30)
    assert client.wait_phase("a~1", "released", timeout_s=10)["exit"] == {"signal": "SIGTERM"}


def test_what_the_main_process_leaves_behind_is_stopped_too(host: Host) -> None:
    client = host.connect()
    client.start("a~1", ["sh", "-c", "setsid sleep 1000 & sleep 0.3; exit 6"], stop_grace_s=1)
    run = client.wait_phase("a~1", "released")
    assert run["exit"] == {"code": 6} and not run["signalled"]
    assert not host.processes_like("sleep 1000")


def test_exited_is_shown_while_something_is_left(host: Host) -> None:
    client = host.connect()
    client.start("a~1", ["sh", "-c", "(trap '' TERM; exec sleep 1000) & sleep 0.2; exit 6"], stop_grace_s=2)
    run = client.wait_phase("a~1", "exited")
    assert run["exit"] == {"code": 6} and run["pids"] == 1
    client.wait_phase("a~1", "released")


def test_the_time_limit_is_the_supervisors_own(host: Host) -> None:
    client = host.connect()
    client.start("a~1", ["sleep", "1000"], time_limit_s=0.5)
    client.kill()
    run = host.connect().wait_phase("a~1", "released")
    assert run["stop_reason"] == "time_limit" and run["signalled"] and 0.5 <= run["ran_s"] < 10


def test_released_waits_for_the_gpu(host: Host) -> None:
    """G3-18: the driver still lists a process that this host no longer knows."""
    gone = {"pid": 2**22 - 3, "user": None, "name": None, "gpu_memory_bytes": 10 << 30}
    host.gpus([{"pci": "00000000:10:00.0", "uuid": "GPU-a", "foreign": [gone]}])
    client = host.connect()
    client.start("a~1", ["true"], gpus=["GPU-a"])
    client.wait_phase("a~1", "exited")
    time.sleep(1)
    assert client.run("a~1")["phase"] == "exited"
    host.gpus([{"pci": "00000000:10:00.0", "uuid": "GPU-a"}])
    client.wait_phase("a~1", "released")


@pytest.mark.parametrize("reading", [{"failed": "GPU is lost"}, {"denied": "no permission"}, 30 << 30])
def test_memory_that_is_held_or_unknown_is_not_released(host: Host, reading: object) -> None:
    """G3-18."""
    host.gpus([{"pci": "00000000:10:00.0", "uuid": "GPU-a", "readings": {"memory_used_bytes": reading}}])
    client = host.connect()
    client.start("a~1", ["true"], gpus=["GPU-a"])
    client.wait_phase("a~1", "exited")
    time.sleep(1)
    assert client.run("a~1")["phase"] == "exited"


def test_protected_for_as_long_as_promised(host: Host) -> None:
    client = host.connect()
    client.start("a~1", ["sleep", "1000"])
    answer = client.stop("a~1", min_ran_s=3600)
    assert (answer["ok"], answer["error"]) == (False, "protected")
    assert 3500 < answer["remaining_s"] <= 3600
    assert client.run("a~1")["phase"] == "running" and not (host.run_dir("a~1") / "stop.json").exists()
    assert client.stop("a~1", min_ran_s=0)["ok"]  # an override
    client.wait_phase("a~1", "released")


def test_past_its_minimum_it_may_be_stopped(host: Host) -> None:
    client = host.connect()
    client.start("a~1", ["sleep", "1000"])
    time.sleep(0.6)
    assert client.stop("a~1", min_ran_s=0.5)["ok"]


def test_an_unreadable_clock_protects(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    client = host.connect()
    client.start("a~1", ["sleep", "1000"])
    path = host.run_dir("a~1") / "state.json"
    state = json.loads(path.read_text())
    path.write_text(json.dumps({**state, "started_boot_s": None}))
    answer = client.stop("a~1", min_ran_s=0.001)
    assert (answer["error"], answer["remaining_s"]) == ("protected", 0.001)


def test_an_ended_run_needs_no_guard(host: Host) -> None:
    client = host.connect()
    client.start("a~1", ["true"])
    client.wait_phase("a~1", "released")
    assert client.stop("a~1", min_ran_s=3600)["run"]["phase"] == "released"


def test_a_full_disk_does_not_keep_a_run_alive(host: Host) -> None:
    """G4-19: no room for stop.json (a directory in its place stands in): it stops with the spec's graces."""
    client = host.connect()
    client.start("a~1", ["sleep", "1000"], stop_grace_s=1)
    (host.run_dir("a~1") / "stop.json.block").mkdir()
    os.rename(host.run_dir("a~1") / "stop.json.block", host.run_dir("a~1") / "stop.json")
    assert client.stop("a~1")["ok"]
    client.wait_phase("a~1", "released")


def test_an_older_epoch_is_fenced(host: Host) -> None:
    old, new = host.connect(epoch=5), host.connect(epoch=7)
    spec = {"argv": ["true"]}
    for op, fields in (("start", {"spec": spec}), ("stop", {}), ("forget", {}), ("adopt", {})):
        answer = old.ask(op, store="s1", epoch=5, token="a~1", **fields)
        assert (answer["ok"], answer["error"]) == (False, "fenced"), op
    assert old.ask("list")["ok"]
    assert new.ask("start", store="s1", epoch=7, token="a~1", spec=spec)["ok"]
    assert new.ask("start", store="s1", epoch=8, token="b~1", spec=spec)["ok"]  # a higher one raises it
    assert new.ask("start", store="s1", epoch=7, token="c~1", spec=spec)["error"] == "fenced"


def test_another_store_has_to_adopt(host: Host) -> None:
    first = host.connect(store="s1", epoch=9)
    first.ask("start", store="s1", epoch=9, token="a~1", spec={"argv": ["sleep", "1000"]})
    other = host.connect(store="s2", epoch=1)
    assert other.ask("stop", store="s2", epoch=1, token="a~1", min_ran_s=0)["error"] == "fenced"
    answer = other.ask("adopt", store="s2", epoch=1)
    assert answer["ok"] and answer["live_runs_of_older_stores"] == 1 and answer["tokens"] == ["a~1"]
    assert first.ask("stop", store="s1", epoch=10, token="a~1", min_ran_s=0)["error"] == "fenced"
    assert other.ask("stop", store="s2", epoch=1, token="a~1", min_ran_s=0, stop_grace_s=5)["ok"]


def test_the_fence_outlives_agents(host: Host) -> None:
    host.connect(epoch=9).kill()
    client = host.connect(epoch=3)
    assert client.hello(epoch=3)["fence"] == {"store": "s1", "epoch": 9}
    assert client.ask("stop", store="s1", epoch=3, token="x")["error"] == "fenced"
    assert json.loads((host.base / "fence.json").read_text()) == {"store": "s1", "epoch": 9}
