"""A console on a fixed world, for tests in a real terminal: `python -m tests.ui.live_app`.

With the word `defect` its Ctrl-C falls over; with `slow` it draws for a slow link, with `keys` it has no mouse; with
`stuck` something of it would go on for a minute.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import threading
import time
from unittest.mock import patch

from opsconsole.cli import main
from opsconsole.cli.console import present
from opsconsole.settings import Settings
from opsconsole.ui.app import OpsConsoleApp
from opsconsole.ui.desk import Desk
from tests.ui.worlds import busy_world


def show(_: argparse.Namespace) -> int:
    desk = Desk(Settings(slow_link="slow" in sys.argv, mouse="keys" not in sys.argv))
    return asyncio.run(present(OpsConsoleApp(busy_world(), desk=desk), last=True))


if __name__ == "__main__":
    if "stuck" in sys.argv:
        threading.Thread(target=lambda: time.sleep(60)).start()
    if "defect" in sys.argv:
        OpsConsoleApp.action_help_quit = lambda self: 1 // 0  # type: ignore[assignment,method-assign]
    with patch("opsconsole.cli.parser.runner", lambda _: show):
        sys.exit(main([]))
