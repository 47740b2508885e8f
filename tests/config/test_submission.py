"""What may be submitted: all errors at once, with the bound, the nearest path or the nearest shape (G1-18, G7-08)."""

from __future__ import annotations

import pytest

from opsconsole.config.workloads import Site, Strictness, build_workload, parse_need
from scheduler_core.budget import Budget, BudgetTree
from scheduler_core.fleet import Host
from scheduler_core.ids import BudgetId, HostName, WorkloadId
from scheduler_core.policy import Policy
from scheduler_core.units import HOUR, MINUTE
from scheduler_core.workload import Workload

TREE = BudgetTree.of(
    [
        Budget(BudgetId("olmo"), "olmo", min_runtime_default_ms=30 * MINUTE),
        Budget(BudgetId("olmo/pretrain"), "pretrain", BudgetId("olmo")),
        Budget(BudgetId("olmo/eval"), "eval", BudgetId("olmo")),
        Budget(BudgetId("vision"), "vision"),
    ]
)
HOSTS = [Host(HostName(f"gpu{n}"), 8, (("model", "h100"),)) for n in range(4)]
SITE = Site(TREE, Policy(), HOSTS)
GOOD = {"budget": "vision", "gpus": "8", "min_runtime": "2h"}


def build(
    needs: tuple[tuple[str, str], ...] = (), strictness: Strictness = Strictness.SUBMISSION, /, **fields: str
) -> tuple[Workload | None, dict[str, str]]:
    """The workload, and what was complained of by field."""
    heard: dict[str, str] = {}
    given = {name: value for name, value in (GOOD | fields).items() if value != "-"}
    workload = build_workload(
        given,
        SITE,
        WorkloadId("w"),
        0,
        lambda field, what, fix: heard.update({field: f"{what}; {fix}"}),
        needs,
        strictness=strictness,
    )
    assert (workload is None) == bool(heard)
    return workload, heard


def test_a_good_one_is_taken_as_it_is() -> None:
    workload, _ = build(owner="kim", priority="-3", resumable="true", max_retries="0", time_limit="3d")
    assert workload is not None
    assert (workload.budget, workload.gpus, workload.min_runtime_ms) == ("vision", 8, 2 * HOUR)
    assert (workload.priority, workload.resumable, workload.max_retries) == (-3, True, 0)


@pytest.mark.parametrize(
    ("gpus", "said"),
    [
        (str(2**62), "is outside 1 to 1000000"),
        (str(2**63), "is outside 1 to 1000000"),
        (str(2**64), "is outside 1 to 1000000"),
        ("-1", "is outside 1 to 1000000"),
        ("0", "is outside 1 to 1000000"),
        ("0.5", "expected a whole number"),
        ("NaN", "expected a whole number"),
        ("8 ", "expected a whole number"),
        ("", "expected a whole number"),
        ("-", "is missing"),
    ],
)
def test_absurd_gpu_counts_are_refused_with_the_limit(gpus: str, said: str) -> None:
    assert said in build(gpus=gpus)[1]["gpus"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("9h", "9h is outside min_runtime_bounds, 0 to 8h"),
        ("2", "has no unit"),
        ("2:00", "2h00m or 2m00s"),
        ("-1h", "no span"),
        ("-", "no budget above sets a default"),
    ],
)
def test_a_min_runtime_is_never_changed_silently(text: str, said: str) -> None:
    assert said in build(min_runtime=text)[1]["min_runtime"]


def test_it_is_inherited_down_the_tree_and_zero_is_unallocated() -> None:
    inherited, _ = build(budget="olmo/eval", min_runtime="-")
    assert inherited is not None
    assert inherited.min_runtime_ms == 30 * MINUTE
    free, _ = build(min_runtime="0")
    assert free is not None
    assert not free.allocated


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ("vison", "no budget 'vison'; did you mean 'vision'?"),
        ("olmo", "'olmo' is not a leaf; choose one of olmo/eval, olmo/pretrain"),
        ("pretrain", "did you mean 'olmo/pretrain'?"),
        ("x\x1b[31m" * 50, "no budget 'x\\x1b[31m"),
        ("-", "is missing"),
    ],
)
def test_a_wrong_budget_names_the_right_ones(budget: str, said: str) -> None:
    assert said in build(budget=budget)[1]["budget"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"gpus": "12"}, "nearest: 8 or 16 GPUs"),
        ({"gpus": "8", "hosts": "3"}, "3 hosts do not make 8 GPUs"),
        ({"gpus": "8", "hosts": "2", "gpus_per_host": "3"}, "do not make 8"),
        ({"gpus": "16", "gpus_per_host": "16"}, "no host has 16 GPUs; the largest has 8"),
        ({"gpus": "8", "hosts": "0"}, ""),
    ],
)
def test_a_shape_that_fits_nowhere_is_refused(fields: dict[str, str], said: str) -> None:
    assert any(said in words for words in build(**fields)[1].values())


def test_a_shape_may_be_given_by_one_side() -> None:
    workload, _ = build(gpus="16", hosts="4")
    assert workload is not None
    assert (workload.hosts, workload.gpus_per_host) == (4, 4)


def test_more_than_there_is_now_may_wait() -> None:
    """Rule 22: too small a cluster is a reason to hold, for it may grow."""
    assert build(gpus="64")[0] is not None


def test_needs_that_no_host_has_are_refused_at_submission_and_held_in_a_snapshot() -> None:
    needs = (("model", "a100"),)
    assert "no host with GPUs is labelled model=a100" in build(needs)[1]["gpus"]
    assert build(needs, Strictness.SNAPSHOT)[0] is not None
    assert build((), Strictness.SNAPSHOT, gpus="12")[0] is None
    assert build((), Strictness.RUNNING, gpus="12")[0] is not None


def test_all_errors_come_at_once() -> None:
    fields = {"budget": "x", "gpus": "y", "priority": "z", "time_limit": "0", "on_preempt": "again", "owner": "a\nb"}
    assert set(build(**fields)[1]) >= set(fields)


def test_needs_are_labels() -> None:
    assert parse_need("nvidia.com/model=h100=80") == ("nvidia.com/model", "h100=80")
    for text in ("h100", "=x", "a b=c", "a=", "a=\x1b"):
        with pytest.raises(ValueError):
            parse_need(text)


@pytest.mark.parametrize(
    "text",
    [
        "it's",
        "$(touch /tmp/x)",
        "`id`",
        "-rf",
        "../../x",
        "[red]",
        "ü→✓",
        "שלום",
        "x" * 300,
        "two\nlines",
        "\0",
        "\x1b[2J",
    ],
)
def test_a_name_is_kept_as_typed_or_refused(text: str) -> None:
    """G4-12: never changed, never half taken."""
    for field in ("name", "owner"):
        workload, heard = build(**{field: text})
        assert (workload is None) == bool(heard)
        assert getattr(workload, field) == text if workload else field in heard
    assert (build(name=text)[0] is None) == any(c in text for c in "\n\0\x1b")
