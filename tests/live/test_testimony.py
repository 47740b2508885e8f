"""What the other tests believe would tell if something were wrong."""

from __future__ import annotations

from dataclasses import replace

from tests.live.testimony import Life, early, twice

FIRST = Life("w~1", "gpu1", ("GPU-1",), 10.0, 20.0, 19.9, finished=False, alive=False, beats=100)
SECOND = replace(FIRST, token="w~2", started=20.5, last=30.0, told=29.9)
OTHER = replace(FIRST, token="x~1", gpus=("GPU-2",))


def test_lives_in_order_are_sound() -> None:
    assert not [*twice([FIRST, SECOND, OTHER]), *early([FIRST, SECOND], {"w": 9.0})]


def test_what_lives_twice_is_told() -> None:
    again, too_soon = replace(FIRST, started=25.0, last=26.0), replace(SECOND, host="gpu2", started=19.5)
    stranger = replace(OTHER, gpus=("GPU-1", "GPU-2"))
    assert list(twice([FIRST, again])) == ["w~1 started twice on gpu1"]
    assert list(twice([FIRST, too_soon])) == ["w~2 started while w~1 lived"]
    assert list(twice([FIRST, stranger])) == ["x~1 had GPUs of w~1 on gpu1"]


def test_what_ends_early_is_told() -> None:
    killed = replace(FIRST, told=None)
    assert "stopped after 9.90 s of 10 s" in next(early([FIRST], {"w": 10.0}))
    assert "stopped after 10.00 s of 10.2 s" in next(early([killed], {"w": 10.2}))
    gang = [FIRST, replace(FIRST, host="gpu2", started=12.0)]
    assert len(list(early(gang, {"w": 9.0}))) == 2, "protection counts from the last member's start"
    assert not [*early([replace(killed, finished=True), replace(killed, alive=True)], {"w": 60.0})]
