"""Three real hosts as a fixture."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.trio import Trio, make_trio
from tests.sshd import SshdFactory, sshd_factory

__all__ = ["sshd_factory"]


@pytest.fixture
def trio(sshd_factory: SshdFactory, tmp_path: Path) -> Iterator[Trio]:
    """Led by a process of its own."""
    made = make_trio(sshd_factory, tmp_path)
    try:
        made.lead()
        yield made
    finally:
        made.close()
