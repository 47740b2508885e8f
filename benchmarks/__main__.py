"""`make bench`: every benchmark after another, each in a process of its own, its figures on standard output.

A missed goal is said and is no failure: what else the machine does decides it as well. A benchmark that breaks is one.
"""

from __future__ import annotations

import subprocess
import sys

BENCHMARKS = (
    "core.cold_pass",
    "core.engine_step",
    "core.stream 2000",
    "simulating.replays 0.02",
    "forecasting.coverage 1 3",
    "ssh.replayed",
    "ssh.real_agents",
    "store.restart",
    "store.commits",
    "console.live",
    "ui.first_frame",
    "ui.tables",
    "ui.bytes",
)


def main() -> int:
    broken = []
    for command in BENCHMARKS:
        print(f"$ python -m benchmarks.{command}", flush=True)
        if subprocess.run([sys.executable, "-m", *f"benchmarks.{command}".split()]).returncode:
            broken.append(command)
    if broken:
        print(f"broken: {', '.join(broken)}", file=sys.stderr)
    return len(broken)


if __name__ == "__main__":
    sys.exit(main())
