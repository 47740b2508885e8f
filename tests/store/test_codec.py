"""Every event comes back as it went; what a newer version wrote is refused or tolerated, never guessed."""

from __future__ import annotations

import pytest

from opsconsole.errors import StoreError
from opsconsole.store.codec import KINDS, decode, encode
from tests.store.filling import scenario_of


def test_a_scenario_comes_back_as_it_went() -> None:
    seen: set[str] = set()
    for tick in scenario_of(400).ticks:
        for event in (*tick.observations, *tick.step.decisions, *tick.step.commands):
            kind, body = encode(event)
            seen.add(kind)
            assert decode(kind, body) == event
    assert len(seen) > 15, "the scenario has become too dull to show anything"
    assert seen <= KINDS.keys()


def test_fields_of_a_newer_version_are_passed_over() -> None:
    again = decode("HostStale", b'{"host": "h1", "since_when": 7}')
    assert again.host == "h1"


def test_an_unknown_kind_is_refused_with_what_to_do() -> None:
    with pytest.raises(StoreError, match="'Teleported', which this version does not know") as refused:
        decode("Teleported", b"{}")
    assert refused.value.advice == "use the newer opsconsole"


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b'{"host": 3}', b"\xff\xfe"])
def test_a_damaged_body_is_said_to_be(body: bytes) -> None:
    with pytest.raises(StoreError, match="damaged 'HostStale'"):
        decode("HostStale", body)
