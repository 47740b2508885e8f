"""Real disks that are small, for tests. Import `small_disk` into a conftest to have it as a fixture."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 2 MiB. Mounting one needs root."""
    path = tmp_path / "disk"
    path.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=2m,mode=0700", "tmpfs", str(path)]
    if subprocess.run(words, capture_output=True).returncode:
        pytest.skip("mounting a tmpfs needs root")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


def fill_up(disk: Path) -> Path:
    """Leaves no room at all. Returns the file to remove for some."""
    ballast = disk / "ballast"
    with ballast.open("ab", buffering=0) as out, contextlib.suppress(OSError):
        while True:
            out.write(b"x" * 1024)
    return ballast
