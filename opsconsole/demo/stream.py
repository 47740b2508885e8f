"""The demo's workloads: who submits what and when, from one seed. Spans are in seconds."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

STREAM_S = 3600  # how long teams go on submitting


@dataclass(frozen=True, slots=True)
class Submission:
    """One workload of the story: `runtime_s` is how long its processes work when nobody stops them."""

    at_s: float
    name: str
    budget: str
    owner: str
    gpus: int
    min_runtime_s: int
    runtime_s: int
    resumable: bool = True


# The opening is told, not drawn: vision fills the cluster, olmo comes with a gang that needs two whole hosts, nlp
# squats with unallocated work. A newcomer sees a queue, reasons and a preemption within the first minute.
OPENING = (
    *(Submission(0, f"resnet-{n}", "vision", "maria", 8, 20, 240) for n in range(1, 5)),
    Submission(0.5, "sweep-1", "vision", "tom", 4, 30, 200),
    Submission(0.5, "sweep-2", "vision", "tom", 4, 30, 200),
    *(Submission(1, f"notebook-{n}", "nlp", "ines", 2, 0, 300) for n in range(1, 5)),
    Submission(2, "olmo-7b", "olmo/pretrain", "ada", 16, 60, 180),
    Submission(6, "eval-mmlu", "olmo/eval", "ben", 2, 10, 25),
    Submission(8, "olmo-32b", "olmo/pretrain", "ada", 32, 90, 240),
    Submission(10, "parser", "nlp", "ines", 4, 30, 90),
    Submission(12, "eval-gsm8k", "olmo/eval", "ben", 1, 10, 20, resumable=False),
)

TEAMS = (
    ("olmo/pretrain", ("ada", "wei"), (8, 8, 16)),
    ("olmo/eval", ("ben",), (1, 1, 2)),
    ("vision", ("maria", "tom"), (2, 4, 8)),
    ("nlp", ("ines", "raj"), (1, 2, 4)),
)


def submissions(seed: int) -> Iterator[Submission]:
    """The opening, then a stream drawn from the seed: about twice what eight hosts can run."""
    yield from OPENING
    draw = random.Random(seed)
    at, number = 15.0, 0
    while at < STREAM_S:
        at += draw.expovariate(1 / 7)
        number += 1
        budget, owners, sizes = draw.choice(TEAMS)
        gpus = draw.choice(sizes)
        unallocated = draw.random() < 0.15
        yield Submission(
            at_s=round(at, 1),
            name=f"{budget.split('/')[-1]}-{number}",
            budget=budget,
            owner=draw.choice(owners),
            gpus=gpus,
            min_runtime_s=0 if unallocated else draw.choice((10, 20, 45, 90)),
            runtime_s=draw.choice((20, 40, 80, 160)),
            resumable=draw.random() < 0.8,
        )
