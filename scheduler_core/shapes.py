"""Shapes (rule 16): on how many hosts, with how many GPUs on each, a workload may run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from scheduler_core.fleet import Host
from scheduler_core.workload import Workload


class Shape(NamedTuple):
    """`whole`: only hosts with exactly so many GPUs, all of them."""

    hosts: int
    gpus: int
    whole: bool = False


def matches(host: Host, needs: Iterable[tuple[str, str]]) -> bool:
    """Does the host carry every label that the workload needs?"""
    return all(need in host.labels for need in needs)


def shapes(workload: Workload, sizes: Sequence[int]) -> tuple[Shape, ...]:
    """The shapes that rule 16 allows on hosts of these sizes (largest first); none where it must be refused."""
    gpus = workload.gpus
    if workload.hosts and workload.gpus_per_host:
        return (Shape(workload.hosts, workload.gpus_per_host),)
    if not sizes:
        return ()
    if gpus <= sizes[0]:
        return (Shape(1, gpus),)
    return tuple(Shape(gpus // size, size, whole=True) for size in sizes if gpus % size == 0)


def sizes_of(hosts: Iterable[Host], needs: Iterable[tuple[str, str]] = ()) -> tuple[int, ...]:
    """The different sizes of the hosts that match, largest first."""
    wanted = tuple(needs)
    return tuple(sorted({h.gpus for h in hosts if h.gpus and matches(h, wanted)}, reverse=True))


class Misfit(StrEnum):
    """Why no host shape holds a workload. The first is its own fault (rule 16), the others may pass with new hosts."""

    NOT_WHOLE_HOSTS = "not_whole_hosts"
    NO_SUCH_HOST = "no_such_host"
    TOO_FEW_HOSTS = "too_few_hosts"


class ShapeProblem(NamedTuple):
    """`text` is for people; what could be done about it comes after a semicolon."""

    kind: Misfit
    text: str


def shape_problem(workload: Workload, hosts: Sequence[Host]) -> ShapeProblem | None:
    """Why no host shape of this cluster can ever hold it, with the nearest shapes that could; None where one can."""
    matching = [h for h in hosts if h.gpus and matches(h, workload.needs)]
    if not matching:
        needs = ", ".join(f"{key}={value}" for key, value in workload.needs)
        text = f"no host with GPUs is labelled {needs}" if needs else "the cluster has no GPUs"
        return ShapeProblem(Misfit.NO_SUCH_HOST, text)
    sizes = sizes_of(matching)
    possible = shapes(workload, sizes)
    if not possible:
        size = sizes[0]
        below, above = workload.gpus // size * size, -(-workload.gpus // size) * size
        there = sum(h.gpus for h in matching)
        few = f", and there are only {there}" if workload.gpus > there else ""
        what = f"{workload.gpus} GPUs are not a multiple of whole hosts of {size}{few}"
        return ShapeProblem(Misfit.NOT_WHOLE_HOSTS, f"{what}; nearest: {below} or {above} GPUs")
    if any(_holds(matching, shape) for shape in possible):
        return None
    shape = possible[0]
    if shape.gpus > sizes[0]:
        return ShapeProblem(Misfit.NO_SUCH_HOST, f"no host has {shape.gpus} GPUs; the largest has {sizes[0]}")
    able = sum(1 for h in matching if h.gpus >= shape.gpus)
    text = f"cluster too small: {shape.hosts} hosts with {shape.gpus} GPUs each are needed, {able} exist"
    return ShapeProblem(Misfit.TOO_FEW_HOSTS, text)


def _holds(hosts: Iterable[Host], shape: Shape) -> bool:
    able = sum(1 for h in hosts if (h.gpus == shape.gpus if shape.whole else h.gpus >= shape.gpus))
    return able >= shape.hosts
