"""The import contracts at run time: what a module really brings in, lazily imported or not (`.importlinter` reads)."""

from __future__ import annotations

import subprocess
import sys

import pytest

ADAPTERS = ("opsconsole.store", "opsconsole.transport", "opsconsole.hostkit", "sqlite3", "asyncssh", "yaml")
SHELL = ("opsconsole", "asyncio", "concurrent", "logging", "msgspec", "socket", "sqlite3", "subprocess", "threading")
BROUGHT = """
import importlib, pkgutil, sys
before = set(sys.modules)
root = importlib.import_module(sys.argv[1])
for found in pkgutil.walk_packages(getattr(root, "__path__", ()), root.__name__ + "."):
    importlib.import_module(found.name)
print(*sorted(set(sys.modules) - before))
"""


@pytest.mark.parametrize(
    ("module", "never"),
    [
        ("scheduler_core", (*SHELL, "textual", "rich", "asyncssh", "yaml")),
        ("opsconsole.presenting", (*ADAPTERS, "asyncio", "textual")),
        ("opsconsole.runtime", (*ADAPTERS, "textual", "rich")),
        ("opsconsole.ui", ADAPTERS),
        ("opsconsole.store", ("opsconsole.transport", "opsconsole.config", "asyncssh", "yaml", "textual")),
        ("opsconsole.transport", ("opsconsole.store", "opsconsole.config", "scheduler_core", "sqlite3", "textual")),
        ("opsconsole.hostkit", ("scheduler_core", "opsconsole.errors", "msgspec", "asyncssh", "yaml", "textual")),
    ],
)
def test_a_part_brings_in_what_its_contract_allows(module: str, never: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, "-c", BROUGHT, module], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    brought = done.stdout.split()
    assert module in brought
    assert not [name for name in brought if any(name == bad or name.startswith(f"{bad}.") for bad in never)]
