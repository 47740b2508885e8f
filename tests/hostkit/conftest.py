"""Every test has a host of its own; whatever ran on it is gone afterwards."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from opsconsole.hostkit.zipapp_build import build_zipapp
from tests.hostkit.hosts import Host


@pytest.fixture(scope="session")
def zipapp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive as a host gets it."""
    data, sha256 = build_zipapp()
    path = tmp_path_factory.mktemp("kit") / f"hostkit-{sha256}.pyz"
    path.write_bytes(data)
    return path


@pytest.fixture
def host(tmp_path: Path, zipapp: Path) -> Iterator[Host]:
    made = Host(tmp_path / "host", [sys.executable, "-I", str(zipapp)])
    yield made
    made.power_off()
