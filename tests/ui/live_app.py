"""A console on a fixed world, for tests in a real terminal: `python -m tests.ui.live_app`."""

from __future__ import annotations

import sys

from opsconsole.ui.app import OpsConsoleApp
from tests.ui.worlds import busy_world

if __name__ == "__main__":
    sys.exit(OpsConsoleApp(busy_world()).run() or 0)
