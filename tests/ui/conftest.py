"""The reader's zone is UTC, so that what is seen does not depend on the machine."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from opsconsole.ui.screens import plan


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests read a plan at once; the delay itself has a test of its own."""
    monkeypatch.setattr(plan, "READ_S", 0.0)
