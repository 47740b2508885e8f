"""CPU seconds and memory of `opsconsole simulate`, the whole command. Goals are those of whole logs.

With an argument: only such a part of each period, such as 0.05.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from benchmarks.figures import say

TRACES = Path(os.environ.get("OPSCONSOLE_TRACES", Path(__file__).parents[2] / "../shared/traces"))
PHILLY_DAYS, STREAM_DAYS = 137, 30
COST = re.compile(r"cpu_s (\S+) peak_mb (\S+)")
SIZES = (1, 1, 1, 1, 1, 2, 2, 4, 8, 16)
MIN_RUNTIMES_S = (0, 900, 3600, 7200, 28_800)


def stream(file: Path, count: int, leaves: int, gpus: int, days: float, demand: float) -> None:
    """Workloads of random sizes over `days`, so many times what the GPUs can do, in our own CSV."""
    draw = Random(7)
    mean_s = demand * gpus * days * 86_400 / count / (sum(SIZES) / len(SIZES))
    at = sorted(draw.random() * days * 86_400 for _ in range(count))
    with file.open("w") as out:
        out.write("id,submitted_at,run_s,gpus,budget,min_runtime_s\n")
        for n, submitted in enumerate(at):
            leaf, run_s = draw.randrange(leaves), max(60, draw.expovariate(1 / mean_s))
            minimum = draw.choice(MIN_RUNTIMES_S)
            out.write(f"w{n},{submitted:.0f},{run_s:.0f},{draw.choice(SIZES)},t{leaf % 6}/l{leaf:03},{minimum}\n")


def replay(what: str, goal_s: float | None, goal_mb: float | None, *words: str) -> None:
    command = [sys.executable, "-m", "opsconsole", "simulate", *words, "--json"]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    found = COST.search(done.stderr)
    if done.returncode or found is None:
        sys.exit(f"{what}: {done.stderr}")
    say(what, float(found[1]), "CPU s", goal_s)
    say("  its memory", float(found[2]), "MB", goal_mb)


def main(part: float = 1.0) -> None:
    whole = part == 1
    goals = (lambda goal: goal) if whole else (lambda goal: None)
    log, days = TRACES / "philly_attempts.csv.gz", f"{round(PHILLY_DAYS * part * 24)}h"
    for hosts, goal in ((128, 10), (64, 30)) if log.exists() else ():
        name = f"Philly, {days} on {hosts * 8} GPUs"
        replay(name, goals(goal), None, str(log), "--cluster", f"{hosts}x8", "--to", days)
    with TemporaryDirectory() as folder:
        for leaves, goal in ((60, 10), (300, 20)):
            file, count = Path(folder) / f"{leaves}.csv", round(100_000 * part)
            stream(file, count, leaves, 1024, STREAM_DAYS * part, 2.5)
            name = f"{count} workloads, {leaves} leaves, demand 2.5 x on 1,024 GPUs"
            to = f"{round(STREAM_DAYS * part * 24)}h"
            replay(name, goals(goal), goals(300), str(file), "--cluster", "128x8", "--to", to)


if __name__ == "__main__":
    main(*(float(arg) for arg in sys.argv[1:2]))
