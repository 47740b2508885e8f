"""What is read of a probe without decoding all of it is what decoding all of it says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from opsconsole.probes import Probe, is_calm, utilisation


def gpu(slot: int, **readings: Any) -> dict[str, Any]:
    return {"slot": slot, "uuid": {"v": f"GPU-{slot}"}, "readings": readings}


def sent(probe: dict[str, Any]) -> Probe:
    return Probe(json.dumps(probe, separators=(",", ":")).encode())


WELL = {"driver": {"v": "570"}, "gpus": [gpu(0, utilization_percent={"v": 7}), gpu(1)]}
TROUBLED = [
    {**WELL, "driver": {"absent": True}},
    {**WELL, "driver": {"failed": "hang"}},
    {"driver": {"v": "570"}, "gpus": [gpu(0, utilization_percent={"failed": "GPU is lost"})]},
    {"driver": {"v": "570"}, "gpus": [gpu(0, power_w={"denied": "no permission"})]},
    {"driver": {"v": "570"}, "gpus": [{"slot": 0, "uuid": {"failed": "GPU is lost"}}]},
]


def test_a_probe_is_what_was_sent() -> None:
    assert sent(WELL) == WELL and sent(WELL) and sent({}) is not None and bool(sent({}))


@pytest.mark.parametrize("probe", TROUBLED)
def test_trouble_is_seen_without_a_look_into_it(probe: dict[str, Any]) -> None:
    assert is_calm(sent(WELL)) and not is_calm(sent(probe))


def test_what_is_no_text_is_not_known_to_be_calm() -> None:
    assert not is_calm(WELL) and not is_calm(None)


@pytest.mark.parametrize("probe", [WELL, *TROUBLED, {}])
def test_utilisation_is_the_same_of_the_text_and_of_its_fields(probe: dict[str, Any]) -> None:
    assert utilisation(sent(probe)) == utilisation(probe)
    assert utilisation(None) == []
