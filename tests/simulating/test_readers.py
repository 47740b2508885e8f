"""Logs of every format, well-formed and not: what is read, and what is said about the rest."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsconsole.config.errors import ConfigError
from opsconsole.errors import UsageError
from opsconsole.simulating.job import Job, Log
from opsconsole.simulating.readers import read_log
from opsconsole.simulating.readers.finding import parse_map
from opsconsole.simulating.readers.values import gpus_of, limit_ms, span_ms
from scheduler_core.policy import Policy
from scheduler_core.units import HOUR, MINUTE
from tests.cli.told import told
from tests.core.clusters import Remembered

TRACES = Path("/work/shared/traces")
SACCT = "JobID|User|Account|Submit|Start|End|Elapsed|Timelimit|State|AllocTRES|ReqTRES|NNodes"
TRES = "billing=96,cpu=96,gres/gpu:h100=8,gres/gpu=8,mem=1000G,node=1"


def log_of(text: str | bytes, folder: Path, **columns: str) -> Log:
    file = folder / "log"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_log(str(file), columns)


def found(log: Log) -> dict[str, int]:
    return log.oddities.counts


def sacct(*rows: str, header: str = SACCT) -> str:
    return "\n".join([header, *rows]) + "\n"


# -- published logs -----------------------------------------------------------------------------------------------


@pytest.mark.skipif(not TRACES.exists(), reason="the logs are kept beside the project")
@pytest.mark.parametrize(
    ("name", "format", "rows", "jobs", "oddities"),
    [
        ("KTH-SP2.swf.gz", "Standard Workload Format", 28489, 28489, {"took_no_time": 8}),
        ("helios_venus_2vc.csv", "Helios slice", 1867, 1867, {}),
        ("helios_15k.csv.gz", "Helios or Philly by intervals", 15000, 10796, {"no_gpus": 4204}),
    ],
)
def test_published_logs_are_read_whole(name: str, format: str, rows: int, jobs: int, oddities: dict[str, int]) -> None:
    log = read_log(str(TRACES / name))
    assert (log.format, log.rows, len(log.jobs), found(log)) == (format, rows, jobs, oddities)


def test_philly_attempts(tmp_path: Path) -> None:
    log = log_of(",run_time,wait_time,submit_time,gpu_num\n0,60,5,1502114581,8\n1,1,0,1502114582,1\n", tmp_path)
    assert log.jobs[0] == Job("0", 1502114581_000, 8, 60_000, 2)
    assert log.format == "Philly attempts" and not found(log)


def test_philly_jobs_are_read_by_attempt(tmp_path: Path) -> None:
    detail = [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu0", "gpu1"]}]
    first = {"start_time": "2017-10-07 01:12:00", "end_time": "2017-10-07 01:13:00", "detail": detail}
    second = {"start_time": "2017-10-07 01:14:00", "end_time": None, "detail": detail}
    job = {"jobid": "app_1", "user": "u", "vc": "vc1", "submitted_time": "2017-10-07 01:11:00"}
    text = json.dumps([{**job, "attempts": [first, second]}, {**job, "jobid": "app_2", "attempts": []}])
    log = log_of(text, tmp_path)
    (only,) = log.jobs
    assert (only.id, only.gpus, only.hosts, only.run_ms, only.project) == ("app_1", 4, 2, 60_000, "vc1")
    assert (log.rows, found(log)) == (3, {"missing_time": 2})


def test_the_whole_helios_log(tmp_path: Path) -> None:
    header = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue"
    row = "1,u,vcA,16,64,2,COMPLETED,2020-04-08 12:00:00,2020-04-08 12:00:10,2020-04-08 13:00:10,3600,10"
    (job,) = log_of(f"{header}\n{row}\n", tmp_path).jobs
    assert (job.gpus, job.hosts, job.run_ms, job.project) == (16, 2, 3_600_000, "vcA")


def test_alibaba_tasks_have_no_header_and_percent_of_gpus(tmp_path: Path) -> None:
    rows = "a,tensorflow,2,Terminated,494319.0,494400.0,600,29,200,T4\nb,worker,1,Failed,5,6,600,29,25,P100\n"
    log = log_of(rows + "c,worker,1,Waiting,,,600,29,100,V100\nd,ps,1,Terminated,5,6,600,29,,\n", tmp_path)
    assert [(job.id, job.gpus, job.run_ms) for job in log.jobs] == [("b/worker", 1, 1000), ("a/tensorflow", 4, 81_000)]
    assert found(log) == {"part_of_gpu": 1, "missing_time": 1, "no_gpus": 1, "out_of_order": 1}


def test_openb_pods_share_gpus(tmp_path: Path) -> None:
    header = (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
    )
    rows = "p0,12000,16384,2,1000,,LS,Running,0,12537496,0\np1,6000,12288,1,460,,LS,Succeeded,5,20,10\n"
    log = log_of(f"{header}\n{rows}p2,1,1,1,320,,BE,Pending,7,9,\np3,1,1,0,0,,BE,Failed,7,9,8\n", tmp_path)
    assert [(job.id, job.gpus, job.run_ms) for job in log.jobs] == [("p0", 2, 12_537_496_000), ("p1", 1, 10_000)]
    assert found(log) == {"part_of_gpu": 1, "never_ran": 1, "no_gpus": 1}


def test_swf_counts_processors_as_gpus(tmp_path: Path) -> None:
    text = """; UnixStartTime: 1000
1 10 5 60 4 -1 -1 8 3600 -1 1 7 3 -1 2 -1 -1 -1
2 20 -1 30 -1 -1 -1 8 -1 -1 1 7 3 -1 2 -1 -1 -1
3 30 0 -1 4 -1 -1 4 -1 -1 5 7 3 -1 2 -1 -1 -1
4 40 0 10 4 -1 -1 4 -1 -1 2 7 3 -1 2 -1 -1 -1
5 30 0 10 0 -1 -1 -1 -1 -1 1 7 3 -1 2 -1 -1
"""
    log = log_of(text, tmp_path)
    assert [(job.id, job.submitted_at, job.gpus, job.limit_ms) for job in log.jobs] == [
        ("1", 1_010_000, 4, 3_600_000),
        ("2", 1_020_000, 8, None),
    ]
    assert found(log) == {"missing_time": 1, "job_step": 1, "half_line": 1}


# -- Slurm --------------------------------------------------------------------------------------------------------


def test_sacct_as_it_is_printed(tmp_path: Path) -> None:
    log = log_of(
        sacct(
            f"1|ann|nlp|2026-01-01T00:00:00|2026-01-01T00:01:00|2026-01-02T02:04:05|1-02:03:05|UNLIMITED|COMPLETED|{TRES}|{TRES}|2",
            f"1.batch|||2026-01-01T00:01:00|2026-01-01T00:01:00|2026-01-02T02:04:05|1-02:03:05||COMPLETED|{TRES}||2",
            f"2|bob|nlp|2026-01-01T00:00:01|2026-01-01T00:01:00|Unknown|00:10:00|1-12|RUNNING|{TRES}|{TRES}|1",
            f"3|bob|nlp|2026-01-01T00:00:02|None|2026-01-01T00:05:00|00:00:00|01:00:00|CANCELLED by 7||{TRES}|1",
            f"4_[1-9]|bob|nlp|2026-01-01T00:00:03|Unknown|Unknown|00:00:00|01:00:00|PENDING||{TRES}|1",
            "5|bob|nlp|2026-01-01T00:00:04|2026-01-01T00:01:00|2026-01-01T00:02:00|00:01:00|01:00:00|FAILED|cpu=4,mem=4G|cpu=4|1",
            f"6|eve|cv|Unknown|2026-01-01T00:01:00|2026-01-01T00:02:00|00:01:00|01:00:00|COMPLETED|{TRES}|{TRES}|1",
        ),
        tmp_path,
    )
    assert log.format == "Slurm sacct"
    assert [(job.id, job.gpus, job.run_ms, job.hosts, job.limit_ms, job.project) for job in log.jobs] == [
        ("1", 8, 93_785_000, 2, None, "nlp"),
        ("2", 8, 600_000, 1, 129_600_000, "nlp"),
    ]
    assert found(log) == {"job_step": 1, "still_running": 1, "never_ran": 2, "no_gpus": 1, "missing_time": 1}
    assert log.rows == len(log.jobs) + log.oddities.left_out


def test_a_requeued_job_counts_by_its_last_attempt(tmp_path: Path) -> None:
    tail = f"01:00:00|COMPLETED|{TRES}|{TRES}|1"
    first = f"7|a|x|2026-01-01T00:00:00|2026-01-01T01:00:00|2026-01-01T02:00:00|01:00:00|{tail}"
    last = f"7|a|x|2026-01-01T02:00:00|2026-01-01T03:00:00|2026-01-01T05:00:00|02:00:00|{tail}"
    log = log_of(sacct(first, last, last), tmp_path)
    assert [job.run_ms for job in log.jobs] == [7_200_000]
    assert found(log) == {"earlier_attempt": 1, "duplicate_id": 1} and log.oddities.faults == 1


def test_parsable_lines_end_in_a_delimiter_and_names_may_hold_quotes(tmp_path: Path) -> None:
    row = f'1|o"neil|x|1767225600|1767225600|1767225660|60|60|COMPLETED|{TRES}||1|'
    (job,) = log_of(sacct(row, header=SACCT + "|"), tmp_path).jobs
    assert (job.user, job.run_ms, job.submitted_at) == ('o"neil', 60_000, 1767225600_000)


@pytest.mark.parametrize("newer", [False, True], ids=["22.05", "24.11"])
def test_sacct_json_old_and_new(newer: bool, tmp_path: Path) -> None:
    time: dict[str, object] = {"submission": 1767225600, "start": 1767225660, "end": 1767229260, "elapsed": 3600}
    time |= {"limit": {"set": True, "infinite": False, "number": 120} if newer else 120}
    job = {
        "job_id": 9,
        "array": {"job_id": 5, "task_id": {"set": True, "number": 3} if newer else 3},
        "account": "nlp",
        "user": "ann",
        "time": time,
        "state": {"current": ["COMPLETED"] if newer else "COMPLETED"},
        "allocation_nodes": 2,
        "tres": {
            "allocated": [{"type": "cpu", "name": "", "count": 9}, {"type": "gres", "name": "gpu:h100", "count": 16}]
        },
    }
    pending = {**job, "job_id": 10, "array": {"job_id": 0}, "state": {"current": "PENDING"}}
    log = log_of(json.dumps({"jobs": [job, pending, {"job_id": 11}], "meta": {}}), tmp_path)
    (only,) = log.jobs
    assert (only.id, only.gpus, only.hosts, only.limit_ms, only.user) == ("5_3", 16, 2, 7_200_000, "ann")
    assert found(log) == {"never_ran": 1, "half_line": 1}


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("gres/gpu:h100=8", 8),
        ("cpu=4,gres/gpu:a100=2,gres/gpu:h100=4,mem=4G", 6),
        ("gres/gpu=6,gres/gpu:h100=6", 6),
        ("cpu=4,mem=4G", 0),
        ("gpu:4", 8),
        ("gpu:1080ti:2", 4),
        ("gpu:v100:3(IDX:0-1,3),lustre:1", 6),
        ("8.0", 8),
    ],
)
def test_gpus_as_slurm_writes_them(text: str, gpus: int) -> None:
    assert gpus_of(text, 2) == gpus


@pytest.mark.parametrize(
    ("text", "ms"),
    [("90", 90_000), ("10:00", 600_000), ("01:00:00", 3_600_000), ("1-12", 129_600_000), ("1-12:30", 131_400_000)],
)
def test_spans_as_they_are_written(text: str, ms: int) -> None:
    assert span_ms(text) == ms


def test_limits_alone_are_minutes() -> None:
    assert (limit_ms("90"), limit_ms("UNLIMITED"), limit_ms("1-00:00:00")) == (5_400_000, None, 86_400_000)


@given(st.integers(0, 20 * 366 * 86_400))
def test_spans_read_back(seconds: int) -> None:
    days, rest = divmod(seconds, 86_400)
    assert span_ms(f"{days}-{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}") == seconds * 1000


# -- our own journal ----------------------------------------------------------------------------------------------


def test_the_own_journal_is_a_log_with_budgets_and_policy(tmp_path: Path) -> None:
    cluster = Remembered(weights={"a": 3, "a/x": 1, "b": 1}, hosts={"h1": 8, "h2": 8})
    cluster.running("pair", "a/x", gpus=16, hosts=2, gpus_per_host=8, owner="ann")
    cluster.later(30 * MINUTE)
    cluster.finish("pair", ago_ms=5 * MINUTE)
    cluster.running("single", "b", gpus=1, resumable=True)
    cluster.submit("waits", "b", gpus=16)
    cluster.later(HOUR)
    told(tmp_path, cluster)
    log = read_log(str(tmp_path / "state/main.db"))
    pair, single = log.jobs
    assert (pair.id, pair.budget, pair.gpus, pair.hosts, pair.run_ms) == ("pair", "a/x", 16, 2, 25 * MINUTE)
    assert (pair.user, pair.resumable, pair.min_runtime_ms) == ("ann", False, HOUR)
    assert (single.run_ms, single.resumable) == (HOUR + 5000, True)
    assert (log.rows, found(log)) == (3, {"still_running": 1, "never_ran": 1})
    assert log.tree is not None and log.tree.leaves == ("a/x", "b") and log.policy == Policy()


# -- our own table, and what is wrong ------------------------------------------------------------------------------

OWN = "id,submitted_at,run_s,gpus\n"


def test_the_own_table_takes_all_that_a_workload_has(tmp_path: Path) -> None:
    header = "id,submitted_at,run_s,gpus,hosts,user,project,min_runtime_s,resumable,budget,priority,time_limit_s\n"
    log = log_of(header + "a,2026-01-01T00:00:00Z,1h30m,16,2,ann,nlp,15m,yes,nlp/eval,3,7200\n", tmp_path)
    job = Job("a", 1767225600_000, 16, 5_400_000, 2, "ann", "nlp", 2, 7_200_000, 900_000, True, "nlp/eval", 3)
    assert log.jobs == [job] and not found(log)


def test_lines_before_the_header_are_counted(tmp_path: Path) -> None:
    log = log_of(f"sacct: error: slow database\n\n{OWN}a,1,5,1\n", tmp_path)
    assert (len(log.jobs), log.rows, found(log)) == (1, 2, {"before_header": 1})
    half = log_of("1 10 5\n1 10 5 60 4 -1 -1 8 3600 -1 1 7 3 -1 2 -1 -1 -1\n", tmp_path)
    assert (len(half.jobs), found(half)) == (1, {"half_line": 1})


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ("a,0,-5,1", "negative_time"),
        ("a,-5,5,1", "negative_time"),
        ("a,,5,1", "missing_time"),
        ("a,5,,1", "missing_time"),
        ("a,5,Unknown,1", "missing_time"),
        ("a,yesterday,5,1", "bad_time"),
        ("a,5,soon,1", "bad_time"),
        ("a,5,nan,1", "missing_time"),
        ("a,5,inf,1", "bad_time"),
        ("a,5,9e9,1", "bad_time"),
        ("a,9999-01-01,5,1", "bad_time"),
        ("a,99999999999999999999,5,1", "bad_time"),
        ("a,5,5,0", "no_gpus"),
        ("a,5,5,-2", "no_gpus"),
        ("a,5,5,many", "bad_number"),
        ("a,5,5,1e999", "bad_number"),
        ("a,5,5,", "missing_field"),
        ("a,5,5", "half_line"),
        ("a,5,5,1,9,9", "extra_fields"),
        ('a,5,"5,1', "half_line"),
        ("ok,5,5,1", "duplicate_id"),
    ],
)
def test_a_row_that_cannot_be_used_is_left_out_and_counted(row: str, kind: str, tmp_path: Path) -> None:
    log = log_of(f"{OWN}ok,1,5,1\n{row}\nlast,9,5,1\n", tmp_path)
    assert [job.id for job in log.jobs] == ["ok", "last"] and (log.rows, log.skipped) == (3, 1)
    assert found(log) == {kind: 1} and log.oddities.examples[kind][0].line == 3 and log.oddities.faults == 1


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ("a,0,5,1", "out_of_order"),
        ("a,5,5,0.5", "part_of_gpu"),
        ("a,5,0,1", "took_no_time"),
        ("a,1970-01-01T01:00:05+01:00,5,1", "other_zone"),
    ],
)
def test_a_row_that_can_be_used_is_kept_and_counted(row: str, kind: str, tmp_path: Path) -> None:
    log = log_of(f"{OWN}ok,1,5,1\n{row}\n", tmp_path)
    assert len(log.jobs) == 2 and found(log) == {kind: 1}


def test_bytes_that_are_no_text_are_shown_escaped(tmp_path: Path) -> None:
    log = log_of(b"id,submitted_at,run_s,gpus,user\na,1,5,1,m\xfcller\n", tmp_path)
    assert (log.jobs[0].user, found(log)) == ("m\\xfcller", {"bad_bytes": 1})


def test_packed_data_that_ends_early_gives_what_was_there(tmp_path: Path) -> None:
    text = OWN + "".join(f"{n},{n},5,1\n" for n in range(20_000))
    packed = gzip.compress(text.encode())
    log = log_of(packed[: len(packed) // 2], tmp_path)
    assert 1000 < len(log.jobs) < 20_000 and found(log)["cut_off"] == 1
    assert len(log_of(packed, tmp_path).jobs) == 20_000


def test_the_standard_input_is_read_too(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = io.BufferedReader(io.BytesIO(gzip.compress(f"\ufeff{OWN}a,1,5,1\r\n".encode())))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(packed))
    log = read_log("-")
    assert (log.file, [job.gpus for job in log.jobs], found(log)) == ("<stdin>", [1], {})


def test_columns_of_other_names_are_mapped(tmp_path: Path) -> None:
    columns = parse_map(["submitted_at=When,run_s=Took", "gpus=Cards"])
    log = log_of("Name;When;Took;Cards\nx;2026-01-01 00:00;10:00;8\n", tmp_path, **columns)
    assert [(job.id, job.gpus, job.run_ms) for job in log.jobs] == [("line2", 8, 600_000)]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("gpu=Cards", "there is no field 'gpu'\n  did you mean 'gpus'?"),
        ("gpus=cards2", "the log has no column 'cards2'\n  did you mean 'cards'?"),
        ("gpus", "'gpus' is no FIELD=COLUMN"),
        ("gpus=Cards,gpus=Took", "gpus is given twice"),
    ],
)
def test_a_wrong_map_is_refused(given: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        log_of("Name;When;Took;Cards\n", tmp_path, **parse_map([given]))
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no rows"),
        ("date,vcA,vcB,total\n2020-04-01,72,64,136\n", "give it with --budgets"),
        ("name,age\nx,3\n", "is of no known format; it has the columns name, age"),
        ("JobID|State|Submit\n", "print it with AllocTRES"),
        ("job_name,inst_id,user,status,start_time,end_time\n", "the task table"),
        ('{"jobs": [', "is no whole JSON document"),
        ('{"nodes": []}', "is JSON of no known format"),
        (b"\x1f\x8b\x08nonsense", "is no whole gzip file"),
    ],
)
def test_a_file_that_is_no_log_says_what_it_is(text: str | bytes, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=said):
        log_of(text, tmp_path)


@given(st.binary(max_size=300))
def test_no_bytes_of_a_row_stop_a_log(row: bytes) -> None:
    """Whatever stands in one line, the others are read, and each line is a job or is counted."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        line = row.replace(b"\n", b" ").replace(b"\r", b" ")
        log = log_of(OWN.encode() + b"ok,1,5,1\n" + line + b"\nlast,2,5,1\n", Path(folder))
    assert {"ok", "last"} <= {job.id for job in log.jobs}
    assert log.rows == len(log.jobs) + log.oddities.left_out
