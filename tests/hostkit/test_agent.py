"""The agent as a process: probes, manners on its pipes, logs, its state directory, and the Pythons it runs on."""

from __future__ import annotations

import ast
import base64
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from opsconsole import hostkit
from opsconsole.hostkit.logfile import LogWriter, read_log
from opsconsole.hostkit.state import open_state
from opsconsole.hostkit.worker import Worker
from opsconsole.hostkit.zipapp_build import LEFT_OUT, build_zipapp, pack, sources
from tests.hostkit.hosts import GIB, Client, Host, alive, wait_until

SOURCES = sorted(Path(hostkit.__file__).parent.glob("*.py"))
GPU = {"pci": "00000000:10:00.0", "uuid": "GPU-a"}


# -- probes --------------------------------------------------------------------------------------------------


def test_a_gpu_is_busy_until_its_run_is_gone(host: Host) -> None:
    client = host.connect()
    client.start("a~1", ["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"], gpus=["GPU-a"])
    held, free = client.next_probe()["gpus"]
    (process,) = held["processes"]["v"]
    assert process["run"] == "a~1" and process["gpu_memory_bytes"] == 40 * GIB and not process["system"]
    assert held["readings"]["utilization_percent"]["v"] > 80 and free["readings"]["utilization_percent"]["v"] == 0
    assert client.run("a~1")["gpu_memory_bytes"] == 40 * GIB
    client.stop("a~1", stop_grace_s=0.3)
    client.wait_phase("a~1", "released")
    assert client.next_probe()["gpus"][0]["processes"] == {"v": []}


def test_four_states_foreign_and_lost(host: Host) -> None:
    readings = {"temperature_c": 99, "power_w": {"denied": "no"}, "serial": {"absent": True}, "vbios": {"failed": "x"}}
    foreign = [{"pid": 1, "user": "root", "name": "/usr/lib/xorg/Xorg -x", "gpu_memory_bytes": 5}]
    host.gpus([{**GPU, "readings": readings, "foreign": foreign}, {"pci": "00000000:20:00.0", "uuid": "GPU-b"}])
    client = host.connect(system_processes=["Xorg"])
    client.next_probe()
    host.gpus(
        [{**GPU, "readings": readings, "foreign": foreign}, {"pci": "00000000:20:00.0", "uuid": "GPU-b", "lost": True}]
    )
    probe = client.next_probe()
    sound, lost = probe["gpus"]
    assert sound["readings"]["temperature_c"] == {"v": 99} and sound["readings"]["power_w"] == {"denied": "no"}
    assert sound["readings"]["serial"] == {"absent": True} and sound["readings"]["vbios"] == {"failed": "x"}
    assert sound["processes"]["v"][0]["system"] and sound["processes"]["v"][0]["run"] is None
    assert list(lost["readings"]["temperature_c"]) == ["failed"] and lost["uuid"]["v"] == "GPU-b"
    assert probe["boot_id"] == "boot-1" and probe["source"] == "nvml" and "v" in probe["host"]["load_1m"]


def test_sequence_numbers_rise(host: Host) -> None:
    client = host.connect()
    wait_until(lambda: not client.pump(0.05) or sum(e["event"] == "probe" for e in client.events) >= 3)
    numbers = [event["probe"]["seq"] for event in client.events if event["event"] == "probe"]
    assert numbers == sorted(set(numbers))


def test_a_hanging_driver_hangs_alone(host: Host) -> None:
    """One probe at a time; requests are answered meanwhile; runs are not touched."""
    host.gpus([{**GPU, "hang_s": 1000}])
    client = host.connect()
    client.pump(0.5)
    assert client.start("a~1", ["true"])["ok"]
    client.wait_phase("a~1", "released")
    time.sleep(1)
    workers = [pid for pid in host.processes_like(" agent") if pid != client.process.pid]
    assert len(workers) == 1
    client.close()
    wait_until(lambda: not alive(workers[0]))


def test_the_hanging_call_is_named_and_never_joined_by_a_second(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.gpus([{**GPU, "hang_s": 1000}])
    for name, found in host.environment().items():
        monkeypatch.setenv(name, found)
    worker = Worker(open_state(str(host.state)), deadline_s=0.3)
    try:
        assert worker.ask(time.monotonic()) and not worker.ask(time.monotonic())
        assert worker.trouble(time.monotonic()) is None
        time.sleep(0.4)
        text = worker.trouble(time.monotonic())
        assert text and text.startswith("driver hang: ") and str(host.root) not in text
        wait_until(lambda: worker.trouble(time.monotonic()) is None)
        assert worker.ask(time.monotonic())
    finally:
        worker.close()


def test_a_host_without_a_driver_keeps_its_worker(tmp_path: Path, zipapp: Path) -> None:
    """Loading pynvml again at every probe would cost more than all else."""
    host = Host(tmp_path / "host", [sys.executable, "-I", str(zipapp)], fake=False)
    try:
        client = host.connect()
        client.next_probe()
        before = host.processes_like(" agent")
        client.next_probe()
        assert host.processes_like(" agent") == before and len(before) == 2
        assert list((host.state / "kit").glob("pynvml-*/__pycache__/*.pyc"))
    finally:
        host.power_off()


def test_a_crash_of_the_library_is_said(host: Host) -> None:
    host.gpus([{**GPU, "hang_s": 1000}])
    client = host.connect()
    wait_until(lambda: len(host.processes_like(" agent")) == 2)
    (worker,) = [pid for pid in host.processes_like(" agent") if pid != client.process.pid]
    os.kill(worker, signal.SIGSEGV)
    event = client.wait_event(lambda e: e["event"] == "probe")
    assert "ended during" in event["probe"]["errors"][0] and list(event["probe"]["driver"]) == ["failed"]
    host.gpus([GPU])
    client.wait_event(lambda e: e["event"] == "probe" and bool(e["probe"]["gpus"]))


def test_one_probe_by_hand(host: Host) -> None:
    done = host.call("probe", "--once")
    assert [gpu["uuid"]["v"] for gpu in json.loads(done.stdout)["gpus"]] == ["GPU-a", "GPU-b"]


# -- manners -------------------------------------------------------------------------------------------------


def test_it_leaves_when_its_input_ends(host: Host) -> None:
    client = host.connect()
    client.next_probe()
    assert client.close() == 0
    wait_until(lambda: not host.processes_like(" agent"))


def test_it_leaves_when_nobody_takes_its_output(host: Host) -> None:
    client = host.connect()
    assert client.process.stdout is not None
    client.process.stdout.close()
    assert client.process.wait(10) in (0, 1)


def test_it_leaves_when_its_parent_goes(host: Host) -> None:
    """The input stays open in somebody else's hands."""
    reading, writing = os.pipe()
    os.write(writing, b'{"id": 1, "op": "list"}\n')
    script = "import subprocess, sys; subprocess.Popen(sys.argv[1:], stdin=0, stdout=-1).stdout.readline()"
    subprocess.run(
        [sys.executable, "-c", script, *host.command("agent")], stdin=reading, env=host.environment(), check=True
    )
    wait_until(lambda: not host.processes_like(" agent"))
    os.close(reading)
    os.close(writing)


def test_a_session_is_not_held_open_by_runs(host: Host) -> None:
    client = host.connect()
    client.start("a~1", ["sleep", "1000"])
    assert client.process.stdin is not None and client.process.stdout is not None
    client.process.stdin.close()
    began = time.monotonic()
    while client.process.stdout.read(65536):
        assert time.monotonic() - began < 10
    client.process.wait(10)
    assert host.processes_like("sleep 1000")


@pytest.mark.parametrize("line", [b"no json", b"[1]", b"{}", b'{"op": "reboot"}', b"\xff\xfe", b"[" * 100_000])
def test_nonsense_is_refused_and_forgotten(host: Host, line: bytes) -> None:
    client = host.connect()
    client.send_bytes(line + b"\n")
    assert client.answer_to(None)["error"] == "bad_request"
    assert client.ask("list")["ok"]


def test_an_endless_line_does_not_fill_the_memory(host: Host) -> None:
    client = host.connect()
    for _ in range(40):
        client.send_bytes(b"x" * 65536)
    client.send_bytes(b"\n")
    assert client.answer_to(None)["error"] == "bad_request"
    assert client.ask("list")["ok"]


@pytest.mark.parametrize("interval", [0, -1, "2", True, None, 1e9])
def test_an_impossible_interval_is_refused(host: Host, interval: object) -> None:
    client = host.connect(greet=False)
    assert client.hello(interval_s=interval)["error"] == "bad_request"


def test_hello_tells_the_host(host: Host) -> None:
    client = host.connect(greet=False)
    answer = client.hello()
    assert answer["boot_id"] == "boot-1" and answer["machine_id"] == "feedfacefeedface"
    assert answer["runs"] == [] and answer["uptime_s"] > 0 and abs(answer["time_unix_s"] - time.time()) < 60
    assert answer["fence"] == {"store": "s1", "epoch": 1}


def test_many_runs_fit_into_a_line(host: Host) -> None:
    client = host.connect()
    client.start("keep~1", ["true"])
    client.wait_phase("keep~1", "released")
    order = json.loads((host.run_dir("keep~1") / "spec.json").read_text())
    state = (host.run_dir("keep~1") / "state.json").read_text()
    for number in range(1500):
        copy = host.base / "runs" / f"copy-{number}"
        copy.mkdir()
        (copy / "spec.json").write_text(json.dumps({**order, "token": f"{'t' * 200}{number}~1"}))
        (copy / "state.json").write_text(state)
    answer = client.ask("list")
    assert answer["ok"] and len(answer["runs"]) + answer["left_out"] == 1501 and answer["left_out"] > 0


# -- logs ----------------------------------------------------------------------------------------------------


def read_everything(client: Client, token: str) -> tuple[bytes, bool]:
    data, offset, truncated = b"", 0, False
    while True:
        answer = client.log(token, offset, 5000)
        data += base64.b64decode(answer["data"])
        truncated = truncated or answer["truncated"]
        offset = answer["offset"]
        if answer["ended"]:
            return data, truncated
        wait_until(lambda: not client.pump(0.01) or True)


def test_a_log_is_read_while_it_grows(host: Host) -> None:
    client = host.connect()
    client.start("a~1", ["sh", "-c", "echo one; sleep 0.5; echo two >&2"])
    assert read_everything(client, "a~1") == (b"one\ntwo\n", False)


def test_a_log_is_capped_and_keeps_head_and_tail(host: Host) -> None:
    """G4-14."""
    client = host.connect()
    script = "i=0; while [ $i -lt 40000 ]; do echo line $i; i=$((i+1)); done"
    client.start("a~1", ["sh", "-c", script], log_bytes_max=20000)
    client.wait_phase("a~1", "released")
    data, truncated = read_everything(client, "a~1")
    whole = "".join(f"line {n}\n" for n in range(40000)).encode()
    assert truncated and data.startswith(whole[:10000]) and data.endswith(whole[-4000:]) and b"bytes dropped" in data
    on_disk = sum(path.stat().st_size for path in host.run_dir("a~1").glob("log*"))
    assert on_disk <= 20000 and client.log("a~1", len(whole))["size"] == len(whole)


def test_any_bytes_are_kept_as_they_are(host: Host) -> None:
    """G4-14."""
    client = host.connect()
    client.start("a~1", [sys.executable, "-c", "import os; os.write(1, bytes(range(256)) * 300)"])
    assert read_everything(client, "a~1") == (bytes(range(256)) * 300, False)


def test_an_unknown_log_is_no_empty_log(host: Host) -> None:
    assert host.connect().log("nobody~1")["error"] == "unknown_token"


@pytest.mark.parametrize("bite", [1, 7, 100, 5000])
def test_every_offset_leads_to_the_end(tmp_path: Path, bite: int) -> None:
    writer = LogWriter(str(tmp_path), 400)
    text = bytes(i % 251 for i in range(3000))
    for at in range(0, len(text), 77):
        writer.write(text[at : at + 77])
    for offset in range(0, 3200, 13):
        position, turns = offset, 0
        while True:
            data, following, size, truncated = read_log(str(tmp_path), position, bite)
            if not truncated:
                assert data == text[following - len(data) : following]
            assert size == 3000 and following >= min(position, size)
            if following >= size:
                break
            position, turns = following, turns + 1
            assert turns < 5000
    writer.close()


# -- state directory -----------------------------------------------------------------------------------------


def fatal(host: Host) -> str:
    client = host.connect(greet=False)
    event = client.wait_event(lambda e: e["event"] == "fatal")
    assert event["error"] == "state_dir" and client.process.wait(10) == 3
    return str(event["message"])


def test_others_may_not_write_to_it(host: Host) -> None:
    host.state.chmod(0o777)
    assert "chmod 700" in fatal(host)


def test_a_file_in_its_place(host: Host) -> None:
    host.state.rmdir()
    host.state.write_text("")
    assert "not a directory" in fatal(host)


def test_a_link_in_its_place(host: Host) -> None:
    host.state.rename(host.root / "elsewhere")
    host.state.symlink_to(host.root / "elsewhere")
    assert "not a directory" in fatal(host)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_it_belongs_to_somebody_else(host: Host) -> None:
    os.chown(host.state, 12345, 12345)
    assert "belongs to user 12345" in fatal(host)


def test_two_machines_may_share_it(host: Host) -> None:
    client = host.connect()
    client.start("a~1", ["sleep", "1000"])
    host.machine_file.write_text("0123456789abcdef\n")
    other = host.connect()
    assert other.ask("list")["runs"] == [] and other.start("a~1", ["true"])["started_before"] is False


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_full_disk_starts_nothing_and_says_so(host: Host) -> None:
    """G4-19."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", str(host.state)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("cannot mount a tmpfs here")
    try:
        client = host.connect()
        client.start("live~1", ["sleep", "1000"])
        with open(host.base / "filler", "wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
            while file.write(b"x" * 512):
                pass
        answer = client.start("a~1", ["sleep", "3000"])
        assert answer["error"] == "state_dir" and "No space left" in answer["message"]
        assert not host.processes_like("sleep 3000")
        assert client.run("live~1")["phase"] == "running"
        assert client.stop("live~1")["ok"]
        wait_until(lambda: not host.processes_like("sleep 1000"))
        (host.base / "filler").unlink()
        client.wait_phase("live~1", "released")
    finally:
        host.power_off()
        subprocess.run(["umount", "-l", str(host.state)], check=True)


# -- the archive ---------------------------------------------------------------------------------------------


def test_the_archive_is_the_same_every_time() -> None:
    data, sha256 = build_zipapp()
    assert pack(sources()) == data and len(sha256) == 64
    assert "pynvml.py" in sources() and "hostkit/zipapp_build.py" not in sources()


@pytest.mark.parametrize("path", [path for path in SOURCES if path.name not in LEFT_OUT], ids=lambda path: path.name)
def test_every_module_is_python_3_8(path: Path) -> None:
    ast.parse(path.read_text(), feature_version=(3, 8))
    assert "from __future__ import annotations" in path.read_text() or path.name == "__init__.py"


def other_pythons() -> list[str]:
    found = Path("~/.pyenv/versions").expanduser().glob("3.*/bin/python")
    return sorted(str(path) for path in found if path.parts[-3].split(".")[1] in ("8", "9", "10", "12", "13"))


@pytest.mark.parametrize("python", other_pythons() or ["none"])
def test_the_whole_life_of_a_run_on_other_pythons(tmp_path: Path, zipapp: Path, python: str) -> None:
    if python == "none":
        pytest.skip("no other Python on this machine")
    host = Host(tmp_path / "host", [python, "-I", str(zipapp)])
    try:
        client = host.connect()
        client.start("a~1", ["sh", "-c", "echo hi; sleep 1000"], gpus=["GPU-a"], checkpoint={"signal": "USR2"})
        assert client.next_probe()["gpus"][0]["processes"]["v"][0]["run"] == "a~1"
        client.stop("a~1", checkpoint_grace_s=0.2, stop_grace_s=2)
        assert client.wait_phase("a~1", "released")["signalled"]
        assert base64.b64decode(client.log("a~1")["data"]) == b"hi\n"
        assert client.close() == 0
    finally:
        host.power_off()
