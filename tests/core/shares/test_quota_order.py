"""Which of two sibling queues comes first where quota decides."""

from __future__ import annotations

import pytest

from scheduler_core.shares.quota_order import Contender, order_key
from scheduler_core.shares.reclaim import Holding

TOTAL = 40


def queue(name: str, allocated: int, deserved: int | None = 4, fair_share: int = 8, **more: int) -> Contender:
    return Contender(Holding(name, deserved, fair_share, allocated), **more)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(queue("z", 8, fair_share=8), queue("a", 9, priority=9), id="who is not over its share"),
        pytest.param(queue("z", 2, claim=2), queue("a", 0, claim=5, priority=9), id="within what it deserves with it"),
        pytest.param(queue("z", 7, priority=1), queue("a", 5), id="the higher priority"),
        pytest.param(
            queue("z", 9, losses=3),
            queue("a", 3, deserved=0, fair_share=0, losses=3),
            id="who may have anything at all",
        ),
        pytest.param(queue("z", 5, claim=1), queue("a", 5, claim=2), id="the smaller part with the claim"),
        pytest.param(queue("z", 7, losses=3), queue("a", 6, losses=1), id="and without what it loses"),
        pytest.param(queue("z", 5, claim=2), queue("a", 6, claim=1), id="the smaller part as it is"),
        pytest.param(queue("z", 3, deserved=2, fair_share=4), queue("a", 6), id="the smaller queue"),
        pytest.param(queue("z", 5, created=1), queue("a", 5, created=2), id="the older"),
        pytest.param(queue("a", 5), queue("z", 5), id="the lower id"),
        pytest.param(queue("z", 9, deserved=None, fair_share=40), queue("a", 3), id="no end: a part of the cluster"),
    ],
)
def test_first(first: Contender, second: Contender) -> None:
    assert order_key(first, TOTAL) < order_key(second, TOTAL)
