"""One look at the GPUs of this host: driver, else nvidia-smi, else the PCI bus alone; then slots and process owners.

`read_gpus` may hang with the driver, so it runs in a child process (see worker, release), never in agent or supervisor.
"""

from __future__ import annotations

import os
import pwd
import time
from typing import Any, Callable, Dict, List

from . import fake_nvml, library, proc, smi, tree
from .files import Damaged, Record, read_json
from .nvml import Nvml, as_reading
from .pci import pci_gpus, with_slots
from .readings import Reading, absent, failed, plain, unreadable_gpu
from .runs import LIVE, Run, all_runs
from .state import StateDir

Gpus = List[Dict[str, Any]]


class Reader:
    """Reads the GPUs again and again; keeps an open driver and slow-moving readings in between."""

    def __init__(self, state: StateDir, mark: Callable[[str], None] = lambda name: None) -> None:
        self.state = state
        self.mark = mark
        self._nvml: Nvml | None = None

    def read(self) -> Record:
        """{source, driver, gpus, pci_gpus, errors}; `gpus` in order of their slots."""
        errors: list[str] = []
        listed = None if fake_nvml.path() else pci_gpus()
        source, driver, gpus = self._from_best_source(listed, errors)
        shown = {gpu["pci"] for gpu in gpus}
        if "failed" in driver:  # the driver as a whole: its GPUs fail with its own words
            gpus += [unreadable_gpu(pci, driver) for pci in listed or [] if pci not in shown]
        gpus = with_slots(self.state, gpus, listed)
        describe_processes(self.state, gpus)
        return {"source": source, "driver": driver, "gpus": gpus, "pci_gpus": listed, "errors": errors}

    def _from_best_source(self, listed: list[str] | None, errors: list[str]) -> tuple[str, Reading, Gpus]:
        if fake_nvml.path():
            return self._from_fake(errors)
        found = self._from_nvml(listed)
        if isinstance(found, tuple):
            return found
        errors.append(f"NVML: {found.get('failed', found)}")
        self.mark("nvidia-smi")
        fallback = smi.read_all(errors)
        if fallback is not None:
            return ("nvidia-smi", *fallback)
        if not listed and listed is not None and "library" in str(found.get("failed", "")).lower():
            return "none", absent(), []  # no device and no driver: no GPU host
        return "none", found, []

    def _from_fake(self, errors: list[str]) -> tuple[str, Reading, Gpus]:
        try:
            driver, gpus = fake_nvml.read_all(self.state)
            return "nvml", driver, gpus
        except (OSError, ValueError, KeyError, TypeError) as error:
            errors.append(f"{fake_nvml.path()}: {error}")
            return "none", failed(str(error)), []

    def _from_nvml(self, listed: list[str] | None) -> tuple[str, Reading, Gpus] | Reading:
        """A driver that answers, or the reading that says why it does not."""
        library.prepare(self.state)
        try:
            import pynvml
        except ImportError as error:
            return failed(f"pynvml cannot be loaded: {error}")
        try:
            if self._nvml is None:
                self._nvml = Nvml(pynvml, self.mark)
            return "nvml", self._nvml.driver(), self._nvml.read_all(listed, time.monotonic())
        except (pynvml.NVMLError, pynvml.NVMLLibraryMismatchError, OSError) as error:
            self._nvml = None
            return as_reading(pynvml, error)


def read_gpus(state: StateDir) -> Record:
    return Reader(state).read()


def describe_processes(state: StateDir, gpus: Gpus) -> None:
    """Add user, name, run and `system` to each process on a GPU. What cannot be told stays null."""
    names = system_processes(state)
    owners: Owners | None = None
    for gpu in gpus:
        for entry in gpu["processes"].get("v") or []:
            owners = owners or Owners(state)
            pid = int(entry["pid"])
            entry.setdefault("user", user_of(pid))
            entry.setdefault("name", name_of(pid))
            entry.setdefault("gpu_memory_bytes", None)
            entry["run"] = owners.run_of(pid)
            name = str(entry["name"] or "")
            entry["name"] = plain(name, 200) or None
            entry["system"] = bool(name) and not entry["run"] and os.path.basename(name.split(" ")[0]) in names


def system_processes(state: StateDir) -> list[str]:
    try:
        return [str(name) for name in (read_json(state.settings) or {}).get("system_processes") or []]
    except (Damaged, OSError):
        return []


class Owners:
    """Which run a pid belongs to: its supervisor is above it, or its environment says so."""

    def __init__(self, state: StateDir) -> None:
        self.processes = proc.scan()
        live = [run for run in all_runs(state) if run.phase() in LIVE]
        self.by_dir: dict[str, Run] = {run.dir: run for run in live}
        self.by_pid: dict[int, str] = {}
        for run in live:
            for pid in tree.members(run, self.processes):
                self.by_pid[pid] = run.token

    def run_of(self, pid: int) -> str | None:
        if pid in self.by_pid:
            return self.by_pid[pid]
        marked = self.by_dir.get(proc.environment_value(pid, tree.MARK) or "")
        return None if marked is None else marked.token


def user_of(pid: int) -> str | None:
    try:
        uid = os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return None
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def name_of(pid: int) -> str | None:
    """The program and its arguments, bounded; the short name where the command line is not ours to read."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read(400).replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return None
    if words:
        return words
    stat = proc.read_stat(pid)
    return None if stat is None else stat.name
