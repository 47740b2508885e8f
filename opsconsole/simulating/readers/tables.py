"""Which columns of which published table hold what. A format is data: how rows become jobs is told once, in `rows`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Columns = Mapping[str, tuple[str, ...]]

# What a row may say, by our names: the columns of our own table, and what --map maps.
FIELDS = (
    "id",
    "submitted_at",
    "started_at",
    "ended_at",
    "wait_s",
    "run_s",
    "gpus",
    "hosts",
    "user",
    "project",
    "state",
    "time_limit_s",
    "min_runtime_s",
    "resumable",
    "budget",
    "priority",
)


@dataclass(frozen=True, slots=True)
class Table:
    """`columns`: by field, those that may hold it, the first that is there; of `gpus` the first with something in it.

    A header has the format when it has all of `sign`, in any case. Numbers are made GPUs and seconds by the rest:
    `gpus / gpu_parts x instances`, instants in `per_second` parts, `since_previous` in place of an instant.
    """

    name: str
    sign: frozenset[str]
    columns: Columns
    per_second: int = 1
    limit_unit_s: int = 1
    gpu_parts: int = 1
    instances: str = ""
    gpu_share: str = ""  # thousandths of the one GPU that is asked for
    since_previous: str = ""
    requeues: bool = False  # an id may stand for several attempts: the last one counts
    parts: tuple[str, ...] = ()  # states of rows that are parts of a job with a row of its own
    header: tuple[str, ...] = ()  # of files that have none


def table(name: str, sign: str, columns: Mapping[str, str], **more: object) -> Table:
    split = {key: tuple(names.split()) for key, names in columns.items()}
    return Table(name, frozenset(sign.split()), split, **more)  # type: ignore[arg-type]


OWN = table("opsconsole CSV", "submitted_at gpus", {name: name for name in FIELDS})

SACCT_GPUS = "alloctres reqtres allocgres reqgres"
SACCT = table(
    "Slurm sacct",
    "state",
    {
        "id": "jobid jobidraw",
        "submitted_at": "submit start",
        "started_at": "start",
        "ended_at": "end",
        "run_s": "elapsedraw elapsed",
        "gpus": SACCT_GPUS,
        "hosts": "allocnodes nnodes reqnodes",
        "user": "user",
        "project": "account",
        "state": "state",
        "time_limit_s": "timelimitraw timelimit",
    },
    limit_unit_s=60,
    requeues=True,
)

SWF_HEADER = (
    "job submit wait run allocated cpu_used memory_used requested requested_time requested_memory "
    "status user group application queue partition preceding think"
)
SWF = table(
    "Standard Workload Format",
    SWF_HEADER,
    {
        "id": "job",
        "submitted_at": "submit",
        "wait_s": "wait",
        "run_s": "run",
        "gpus": "allocated requested",
        "user": "user",
        "project": "group",
        "state": "status",
        "time_limit_s": "requested_time",
    },
    parts=("2", "3", "4"),
    header=tuple(SWF_HEADER.split()),
)

PAI_HEADER = "job_name task_name inst_num status start_time end_time plan_cpu plan_mem plan_gpu gpu_type"
PAI_TASKS = table(
    "Alibaba PAI task table",
    "job_name task_name inst_num start_time end_time plan_gpu",
    {
        "id": "job_name",
        "submitted_at": "start_time",
        "started_at": "start_time",
        "ended_at": "end_time",
        "gpus": "plan_gpu",
        "user": "user",
        "state": "status",
    },
    gpu_parts=100,
    instances="inst_num",
    header=tuple(PAI_HEADER.split()),
)

PHILLY_JOBS = table(
    "Philly job log",
    "jobid attempt submitted_time start_time end_time gpus",
    {
        "id": "jobid",
        "submitted_at": "submitted_time",
        "started_at": "start_time",
        "ended_at": "end_time",
        "gpus": "gpus",
        "hosts": "hosts",
        "user": "user",
        "project": "vc",
    },
)

# The one with the longest sign is meant where a header has several.
TABLES: Sequence[Table] = (
    OWN,
    table(
        "Philly attempts",
        "run_time wait_time submit_time gpu_num",
        {
            "id": "job_id id index",
            "submitted_at": "submit_time",
            "wait_s": "wait_time",
            "run_s": "run_time",
            "gpus": "gpu_num",
            "hosts": "node_num",
            "user": "user",
            "project": "vc",
        },
    ),
    table(
        "Helios cluster log",
        "job_id user vc gpu_num submit_time duration",
        {
            "id": "job_id",
            "submitted_at": "submit_time",
            "started_at": "start_time",
            "ended_at": "end_time",
            "run_s": "duration",
            "gpus": "gpu_num",
            "hosts": "node_num",
            "user": "user",
            "project": "vc",
            "state": "state",
        },
    ),
    table(
        "Helios or Philly by intervals",
        "user gpu_num interval run_time new_status",
        {
            "id": "u_id",
            "run_s": "run_time",
            "gpus": "gpu_num",
            "hosts": "node_num",
            "user": "user",
            "state": "new_status",
        },
        since_previous="interval",
    ),
    table(
        "Helios slice",
        "job_id tenant submit_time num_chips duration_s",
        {
            "id": "job_id",
            "submitted_at": "submit_time",
            "run_s": "duration_s",
            "gpus": "num_chips",
            "hosts": "num_nodes",
            "user": "user",
            "project": "tenant",
            "state": "final_status",
            "time_limit_s": "walltime_limit_s",
        },
        per_second=1_000_000,
    ),
    PAI_TASKS,
    table(
        "Alibaba PAI jobs",
        "job_id num_gpu submit_time duration",
        {
            "id": "job_id",
            "submitted_at": "submit_time",
            "run_s": "duration",
            "gpus": "num_gpu",
            "user": "user",
            "project": "group",
        },
        instances="num_inst",
    ),
    table(
        "Alibaba openb pods",
        "name num_gpu gpu_milli creation_time deletion_time",
        {
            "id": "name",
            "submitted_at": "creation_time",
            "started_at": "scheduled_time",
            "ended_at": "deletion_time",
            "gpus": "num_gpu",
            "project": "qos",
            "state": "pod_phase",
        },
        gpu_share="gpu_milli",
    ),
)
