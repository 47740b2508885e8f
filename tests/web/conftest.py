"""A cluster to serve."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.told import Told
from tests.web.served import small_cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Told:
    return small_cluster(tmp_path)
