"""Starting, reporting and remembering runs, through a real agent and real processes."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from tests.hostkit.hosts import Client, Host, alive, wait_until

SLEEP = ["sleep", "1000"]


def test_a_run_starts_and_tells_its_exit_code(host: Host) -> None:
    client = host.connect()
    answer = client.start("a~1", ["sh", "-c", "exit 7"])
    assert answer["ok"] and answer["run"]["token"] == "a~1"
    run = client.wait_phase("a~1", "released")
    assert run["exit"] == {"code": 7} and not run["signalled"] and run["error"] is None
    assert (run["attempt"], run["workload"], run["pids"]) == (1, "a", 0)


def test_how_long_its_gpus_have_been_free_is_told_to_whoever_asks_later(host: Host) -> None:
    client = host.connect()
    assert client.start("a~1", ["sh", "-c", "read x </dev/null; sleep 0.2"])["run"]["released_ago_s"] is None
    first = client.wait_phase("a~1", "released")["released_ago_s"]
    client.kill()
    again = host.connect().run("a~1")["released_ago_s"]
    assert 0 <= first < again
    host.boot_file.write_text("boot-2\n")
    assert host.connect().run("a~1")["released_ago_s"] is None


def test_a_signal_is_no_exit_code(host: Host) -> None:
    client = host.connect()
    client.start("a~1", ["sh", "-c", "kill -SEGV $$"])
    assert client.wait_phase("a~1", "released")["exit"] == {"signal": "SIGSEGV"}


def test_phases_come_as_events(host: Host) -> None:
    client = host.connect()
    client.start("a~1", ["sh", "-c", "sleep 0.7"])
    client.wait_event(lambda e: e["event"] == "run" and e["run"]["phase"] == "running")
    client.wait_event(lambda e: e["event"] == "run" and e["run"]["phase"] == "released")


def test_the_start_is_acknowledged_when_the_pid_is_on_disk(host: Host) -> None:
    client = host.connect()
    run = client.start("a~1", SLEEP)["run"]
    state = host.run_state("a~1")
    assert run["phase"] == "running" and run["pids"] == 1
    assert alive(state["main"]["pid"]) and alive(state["supervisor"]["pid"])


def test_the_environment_is_what_the_protocol_promises(host: Host) -> None:
    """G3-24."""
    client = host.connect()
    spec = {"gpus": ["GPU-a", "GPU-b"], "rank": 1, "nodes": 2, "master_addr": "gpu01", "master_port": 29500}
    client.start("w~3", ["env", "-0"], env={"X": "a b\n'\"$(id)"}, **spec)
    client.wait_phase("w~3", "released")
    text = base64.b64decode(client.log("w~3")["data"]).decode()
    env = dict(line.split("=", 1) for line in text.split("\0") if line)
    assert env["CUDA_VISIBLE_DEVICES"] == "GPU-a,GPU-b" and env["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert [env[n] for n in ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK", "NNODES")] == ["gpu01", "29500", "1", "2"]
    assert [env[n] for n in ("OPSCONSOLE_RUN", "OPSCONSOLE_WORKLOAD", "OPSCONSOLE_ATTEMPT")] == ["w~3", "w", "3"]
    assert env["X"] == "a b\n'\"$(id)" and "SSH_CLIENT" not in env


def test_without_gpus_it_sees_none(host: Host) -> None:
    client = host.connect()
    client.start("w~1", ["sh", "-c", 'echo "[$CUDA_VISIBLE_DEVICES]"'])
    client.wait_phase("w~1", "released")
    assert base64.b64decode(client.log("w~1")["data"]) == b"[]\n"


def test_a_token_starts_once_under_concurrent_duplicates(host: Host) -> None:
    counter = host.root / "count"
    clients = [host.connect() for _ in range(4)]
    argv = ["sh", "-c", f"echo x >> {counter}; sleep 1000"]
    answers = []

    def hammer(client: Client) -> None:
        for _ in range(5):
            answers.append(client.start("a~1", argv))

    threads = [threading.Thread(target=hammer, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(answer["ok"] for answer in answers), answers
    assert sum(not answer["started_before"] for answer in answers) == 1
    wait_until(counter.exists)
    assert counter.read_text() == "x\n"


def test_a_known_token_is_never_started_again(host: Host) -> None:
    client = host.connect()
    client.start("a~1", ["true"])
    client.wait_phase("a~1", "released")
    again = client.start("a~1", SLEEP)
    assert again["ok"] and again["started_before"] and again["run"]["phase"] == "released"
    assert client.ask("forget", store="s1", epoch=1, token="a~1")["forgotten"]
    assert client.ask("list")["runs"] == []
    after = client.start("a~1", SLEEP)
    assert after["ok"] and after["run"]["phase"] == "released" and after["run"]["exit"] == {"code": 0}
    assert not host.processes_like("sleep 1000")


def test_stopping_an_unknown_token_burns_it(host: Host) -> None:
    client = host.connect()
    assert client.stop("late~1")["run"]["phase"] == "never_started"
    late = client.start("late~1", SLEEP)
    assert late["run"]["phase"] == "never_started" and late["run"]["error"] == "test"
    assert "stopped before" in client.stop("nameless~1", reason=None)["run"]["error"]
    assert not host.processes_like("sleep 1000")


def test_a_live_run_cannot_be_forgotten(host: Host) -> None:
    client = host.connect()
    client.start("a~1", SLEEP)
    answer = client.ask("forget", store="s1", epoch=1, token="a~1")
    assert (answer["ok"], answer["error"]) == (False, "not_ended")


@pytest.mark.parametrize("argv", [["/no/such/program"], ["nosuchprogram-x"], ["/etc/passwd"]])
def test_a_missing_program_is_said_in_words(host: Host, argv: list[str]) -> None:
    client = host.connect()
    assert client.start("a~1", argv)["ok"]
    run = client.wait_phase("a~1", "released")
    assert run["exit"]["code"] in (126, 127) and argv[0] in run["error"]
    text = base64.b64decode(client.log("a~1")["data"]).decode()
    assert argv[0] in text and "Traceback" not in text
    assert not (host.run_dir("a~1") / "supervisor.err").exists()


def test_a_missing_directory_is_named(host: Host) -> None:
    client = host.connect()
    client.start("a~1", ["true"], cwd="/no/such/dir")
    run = client.wait_phase("a~1", "released")
    assert run["exit"] == {"code": 127} and "/no/such/dir" in run["error"]


STRANGE = [
    "two words",
    "it's",
    'a"b',
    "new\nline",
    "$(touch /tmp/hostkit-pwned)",
    "`id`",
    "-rf",
    "../../x",
    "[red]",
    "ü→✓",
    "x" * 300,
]


@pytest.mark.parametrize("text", STRANGE)
def test_names_reach_no_shell(host: Host, text: str) -> None:
    """G4-12."""
    client = host.connect()
    assert client.start(text, ["printf", "%s", text], env={"NAME": text})["run"]["token"] == text
    run = client.wait_phase(text, "released")
    assert run["exit"] == {"code": 0}
    assert base64.b64decode(client.log(text)["data"]).decode() == text
    assert not Path("/tmp/hostkit-pwned").exists()
    assert all(path.parent == host.base / "runs" for path in (host.base / "runs").iterdir())


@pytest.mark.parametrize("token", ["", None, 3, "a\0b", "\ud800", "x" * 2000])
def test_impossible_tokens_are_refused(host: Host, token: object) -> None:
    client = host.connect()
    answer = client.start(token, ["true"])  # type: ignore[arg-type]
    assert (answer["ok"], answer["error"]) == (False, "bad_request")


@pytest.mark.parametrize(
    ("field", "found"),
    [
        ("argv", []),
        ("argv", "ls"),
        ("argv", ["a\0b"]),
        ("argv", [""]),
        ("env", {"A=B": "x"}),
        ("env", {"A": 1}),
        ("gpus", "GPU-a"),
        ("gpus", ["a,b"]),
        ("checkpoint", {"signal": "SIGNOPE"}),
        ("checkpoint", {"signal": "USR1", "argv": ["x"]}),
        ("time_limit_s", -1),
        ("log_bytes_max", "1"),
        ("stop_target", "all"),
    ],
)
def test_a_bad_spec_burns_nothing(host: Host, field: str, found: object) -> None:
    client = host.connect()
    spec = {"argv": ["true"], field: found}
    answer = client.ask("start", store="s1", epoch=1, token="a~1", spec=spec)
    assert (answer["ok"], answer["error"]) == (False, "bad_spec") and field in answer["message"]
    assert client.start("a~1", ["true"])["ok"]
    assert client.wait_phase("a~1", "released")["exit"] == {"code": 0}


def test_runs_survive_the_agent(host: Host) -> None:
    client = host.connect()
    go = host.root / "go"
    client.start("a~1", ["sh", "-c", f"until [ -e {go} ]; do sleep 0.05; done; echo late; exit 5"])
    client.kill()
    other = host.connect()
    assert other.run("a~1")["phase"] == "running"
    go.touch()
    assert other.wait_phase("a~1", "released")["exit"] == {"code": 5}
    assert base64.b64decode(other.log("a~1")["data"]) == b"late\n"


def test_attempts_share_nothing(host: Host) -> None:
    """G2-22."""
    client = host.connect()
    for attempt in (1, 2, 3):
        client.start(f"w~{attempt}", ["sh", "-c", f"echo attempt {attempt}"])
        client.wait_phase(f"w~{attempt}", "released")
    logs = [base64.b64decode(client.log(f"w~{n}")["data"]) for n in (1, 2, 3)]
    assert logs == [b"attempt 1\n", b"attempt 2\n", b"attempt 3\n"]
    assert [client.run(f"w~{n}")["attempt"] for n in (1, 2, 3)] == [1, 2, 3]


def test_after_a_reboot_a_run_is_unknown_and_its_processes_known_gone(host: Host) -> None:
    """G3-17."""
    client = host.connect()
    client.start("a~1", SLEEP)
    client.start("done~1", ["sh", "-c", "exit 4"])
    client.wait_phase("done~1", "released")
    host.power_off()
    host.boot_file.write_text("boot-2\n")
    other = host.connect()
    run = other.run("a~1")
    assert run["phase"] == "unknown" and run["processes_gone"] and run["exit"] is None and run["pids"] == 0
    assert "rebooted" in run["error"] and run["boot_id"] == "boot-1"
    assert other.run("done~1")["exit"] == {"code": 4}
    assert other.start("a~1", SLEEP)["started_before"]
    assert other.stop("a~1")["run"]["phase"] == "unknown"
    assert other.ask("forget", store="s1", epoch=1, token="a~1")["forgotten"]


def test_a_killed_supervisor_leaves_an_unknown_run_that_can_be_stopped(host: Host) -> None:
    client = host.connect()
    client.start("a~1", ["sh", "-c", "setsid sleep 1000 & sleep 1000"], gpus=["GPU-a"])
    wait_until(lambda: len(host.processes_like("sleep 1000")) >= 2)
    os.kill(host.run_state("a~1")["supervisor"]["pid"], signal.SIGKILL)
    run = client.wait_phase("a~1", "unknown")
    assert run["pids"] >= 1 and not run["processes_gone"] and "supervisor was killed" in run["error"]
    client.wait_event(lambda e: e["event"] == "run" and e["run"]["phase"] == "unknown")
    client.stop("a~1", stop_grace_s=0.5)
    run = client.wait_phase("a~1", "released")
    assert run["exit"] is None and run["signalled"] and "never be known" in run["error"]
    assert not host.processes_like("sleep 1000")


def test_a_release_that_cannot_be_checked_says_why_until_it_can(host: Host) -> None:
    host.gpus([{"pci": "00000000:10:00.0", "uuid": "GPU-a"}])
    client = host.connect()
    client.start("a~1", SLEEP, gpus=["GPU-a"])
    settings = host.base / "settings.json"
    settings.write_text('{"free_memory_mib": "a little"}')
    client.stop("a~1", stop_grace_s=0.1)
    told = client.wait_event(lambda e: e["event"] == "run" and e["run"]["error"] is not None)["run"]
    assert told["phase"] == "exited" and not told["processes_gone"]
    assert "cannot tell whether its GPUs are released: ValueError" in told["error"] and "'a little'" in told["error"]
    settings.unlink()
    assert client.wait_phase("a~1", "released")["error"] is None


def test_a_dead_supervisor_of_a_dead_workload_is_cleared_up(host: Host) -> None:
    client = host.connect()
    client.start("a~1", SLEEP)
    pids = host.run_state("a~1")
    for who in ("supervisor", "main"):
        os.kill(pids[who]["pid"], signal.SIGKILL)
    run = client.wait_phase("a~1", "released")
    assert run["exit"] is None and "never be known" in run["error"]


def test_a_recycled_pid_is_left_alone(host: Host) -> None:
    """G3-17."""
    stranger = subprocess.Popen(["sleep", "1000"])
    try:
        client = host.connect()
        client.start("a~1", ["sleep", "2000"])
        path = host.run_dir("a~1") / "state.json"
        state = json.loads(path.read_text())
        for who in ("supervisor", "main"):
            os.kill(state[who]["pid"], signal.SIGKILL)
        state["main"]["pid"] = state["supervisor"]["pid"] = stranger.pid
        path.write_text(json.dumps(state))
        client.stop("a~1", stop_grace_s=0.1)
        client.wait_phase("a~1", "released")
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_damaged_record_is_unknown_not_missing(host: Host) -> None:
    client = host.connect()
    client.start("a~1", SLEEP)
    (host.run_dir("a~1") / "state.json").write_text('{"phase": "relea')
    run = client.run("a~1")
    assert run["phase"] == "unknown" and "damaged" in run["error"]
    assert client.start("a~1", SLEEP)["started_before"]


def test_by_hand(host: Host) -> None:
    assert host.call("run", "--token", "h~1", "--", "sh", "-c", "sleep 1000").returncode == 0
    assert "h~1" in host.call("list").stdout and "running" in host.call("list").stdout
    assert json.loads(host.call("list", "--json").stdout)["runs"][0]["phase"] == "running"
    assert host.call("stop", "h~1", "--stop-grace", "1").returncode == 0
    wait_until(lambda: "released" in host.call("list").stdout)
    assert not (host.base / "fence.json").exists()
    assert host.call("version").stdout.strip() == "0.1.0"
