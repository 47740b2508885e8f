"""Rule 16: which workloads no host shape of a cluster can hold, and what people are told."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

from scheduler_core.fleet import Host
from scheduler_core.ids import BudgetId, HostName, WorkloadId
from scheduler_core.shapes import Misfit, shape_problem
from scheduler_core.workload import Workload

NEAR = (("zone", "nearest"),)


def hosts(*sizes: int, labels: tuple[tuple[str, str], ...] = ()) -> list[Host]:
    return [Host(HostName(f"h{n}"), gpus, labels) for n, gpus in enumerate(sizes)]


@pytest.mark.parametrize(
    ("fleet", "wanted", "kind", "said"),
    [
        ([], {"gpus": 1}, Misfit.NO_SUCH_HOST, "the cluster has no GPUs"),
        (hosts(0), {"gpus": 1}, Misfit.NO_SUCH_HOST, "the cluster has no GPUs"),
        (hosts(0), {"gpus": 8, "hosts": 2, "gpus_per_host": 4}, Misfit.NO_SUCH_HOST, "the cluster has no GPUs"),
        (
            [*hosts(0, labels=NEAR), *hosts(8)],
            {"gpus": 1, "needs": NEAR},
            Misfit.NO_SUCH_HOST,
            "no host with GPUs is labelled zone=nearest",
        ),
        (hosts(8, 4), {"gpus": 16, "hosts": 1, "gpus_per_host": 16}, Misfit.NO_SUCH_HOST, "the largest has 8"),
        (hosts(8, 8), {"gpus": 12}, Misfit.NOT_WHOLE_HOSTS, "whole hosts of 8; nearest: 8 or 16 GPUs"),
        (hosts(2, 2, 2), {"gpus": 99}, Misfit.NOT_WHOLE_HOSTS, "and there are only 6; nearest: 98 or 100 GPUs"),
        (hosts(8, 8), {"gpus": 24}, Misfit.TOO_FEW_HOSTS, "3 hosts with 8 GPUs each are needed, 2 exist"),
        (hosts(8, 4), {"gpus": 16, "hosts": 2, "gpus_per_host": 8}, Misfit.TOO_FEW_HOSTS, "2 hosts .*, 1 exist"),
        (hosts(8, 4), {"gpus": 12}, Misfit.TOO_FEW_HOSTS, "3 hosts with 4 GPUs each are needed"),
    ],
)
def test_a_shape_that_fits_nowhere_has_one_reason(
    fleet: Sequence[Host], wanted: dict[str, Any], kind: Misfit, said: str
) -> None:
    problem = shape_problem(Workload(WorkloadId("w"), BudgetId("a"), min_runtime_ms=0, submitted_at=0, **wanted), fleet)
    assert problem is not None and problem.kind is kind
    assert re.search(said, problem.text)


@pytest.mark.parametrize(
    ("fleet", "wanted"),
    [
        (hosts(0, 8), {"gpus": 8}),
        (hosts(8, 8), {"gpus": 16}),
        (hosts(8, 4, 4), {"gpus": 8, "hosts": 2, "gpus_per_host": 4}),
        (hosts(8, 4, 4, 4), {"gpus": 12}),
    ],
)
def test_a_shape_that_fits_an_empty_cluster_has_none(fleet: Sequence[Host], wanted: dict[str, Any]) -> None:
    workload = Workload(WorkloadId("w"), BudgetId("a"), min_runtime_ms=0, submitted_at=0, **wanted)
    assert shape_problem(workload, fleet) is None
