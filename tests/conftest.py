"""Shared by all tests: where their files lie, and that on the checking machine none hides behind a missing tool."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Generator

import pytest

Report = pytest.TestReport
# A suite in the background of a shell ignores Ctrl-C, and so would all that it starts: some tests press it.
signal.signal(signal.SIGINT, signal.default_int_handler)
MEMORY, ROOM_BYTES = "/dev/shm", 1 << 30
# Stores wait for the disk at every commit, which shows nothing here: no test cuts the power, and all wait for it.
if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM_BYTES:
    os.environ["TMPDIR"] = MEMORY
    tempfile.tempdir = None  # asked for before this was read
REQUIRED = frozenset(filter(None, os.environ.get("OPSCONSOLE_REQUIRE", "").split(",")))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Report, Report]:
    """Where OPSCONSOLE_REQUIRE names a tool (sshd, tmux, browser), its tests fail instead of being skipped."""
    report = yield
    needed = REQUIRED.intersection(mark.name for mark in item.iter_markers())
    if report.skipped and needed and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped although {', '.join(sorted(needed))} is required here: {report.longrepr}"
    return report
