"""Records what the real hostkit says of a busy host with 8 GPUs, for `replayed`. Its driver is simulated.

python -m benchmarks.ssh.record    writes benchmarks/ssh/probe_lines.jsonl.gz
"""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from opsconsole.demo.cluster import gpu_table
from opsconsole.hostkit.zipapp_build import build_zipapp

LINES = Path(__file__).with_name("probe_lines.jsonl.gz")
COUNT = 32
HELLO = {"id": 1, "op": "hello", "store": "bench", "epoch": 1, "interval_s": 0.2, "free_memory_mib": 1024}


def busy(table: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """Half of the GPUs at work for somebody, with figures that move as they do in life."""
    for slot, gpu in enumerate(table["gpus"]):
        work = slot % 2 == 0
        gpu["readings"] = {
            "temperature_c": draw.randint(58, 70) if work else draw.randint(29, 33),
            "power_w": round(draw.uniform(480, 690) if work else draw.uniform(68, 74), 3),
            "utilization_percent": draw.randint(80, 100) if work else 0,
            "memory_utilization_percent": draw.randint(40, 65) if work else 0,
            "sm_clock_mhz": draw.choice((1755, 1830, 1980)) if work else 345,
        }
        process = {"pid": 4000 + slot, "user": "maria", "name": "python", "gpu_memory_bytes": 61 << 30}
        gpu["foreign"] = [process] if work else []
    return table


def record(count: int) -> list[bytes]:
    """So many probe lines, as they were sent."""
    with tempfile.TemporaryDirectory() as made:
        kit, gpus, state = Path(made, "kit.pyz"), Path(made, "gpus.json"), Path(made, "state")
        kit.write_bytes(build_zipapp()[0])
        draw, table = random.Random(1), gpu_table("gpu01")
        gpus.write_text(json.dumps(busy(table, draw)))
        agent = subprocess.Popen(
            [sys.executable, "-I", str(kit), "agent", "--state-dir", str(state)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "OPSCONSOLE_FAKE_NVML": str(gpus)},
        )
        assert agent.stdin is not None and agent.stdout is not None
        agent.stdin.write(json.dumps(HELLO).encode() + b"\n")
        agent.stdin.flush()
        lines: list[bytes] = []
        while len(lines) < count:
            line = agent.stdout.readline()
            if json.loads(line).get("event") == "probe":
                lines.append(line)
                gpus.write_text(json.dumps(busy(table, draw)))
        agent.communicate()
    return lines


def recorded() -> list[bytes]:
    """The lines of the file, each with its newline."""
    return gzip.decompress(LINES.read_bytes()).splitlines(keepends=True)


def main() -> None:
    lines = record(COUNT)
    LINES.write_bytes(gzip.compress(b"".join(lines), mtime=0))
    print(f"{len(lines)} lines, {sum(map(len, lines)) // len(lines)} bytes each, to {LINES}")


if __name__ == "__main__":
    main()
