"""`make bench`: every benchmark after another, each in a process of its own, its figures on standard output."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
SKIPPED = ("__init__", "__main__", "worlds")


def modules() -> list[str]:
    """Modules that can be run, by name."""
    found = [path.relative_to(HERE.parent).with_suffix("") for path in HERE.rglob("*.py") if path.stem not in SKIPPED]
    return sorted(".".join(path.parts) for path in found)


def main() -> int:
    failed = 0
    for module in modules():
        print(f"$ python -m {module}", flush=True)
        failed += subprocess.run([sys.executable, "-m", module]).returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
