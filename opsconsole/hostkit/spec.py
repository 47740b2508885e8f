"""What a run is told to be: checked once, before its token is used, so that a bad request burns nothing."""

from __future__ import annotations

import os
import signal
from typing import Any, Mapping

from .files import Record
from .state import HostError

LOG_BYTES_DEFAULT = 64 << 20
LOG_BYTES_MIN = 4096
CHECKPOINT_GRACE_S = 300.0  # rule 13
STOP_GRACE_S = 30.0  # rule 13
STOP_TARGETS = ("tree", "group", "main")
# Of the login that carried the agent, not of the run: stale as soon as the connection ends.
SESSION_VARIABLES = (
    "SSH_CLIENT",
    "SSH_CONNECTION",
    "SSH_TTY",
    "SSH_AUTH_SOCK",
    "SSH_ORIGINAL_COMMAND",
    "XDG_SESSION_ID",
)


def refuse(text: str) -> HostError:
    return HostError("bad_spec", text)


def text_ok(value: object) -> bool:
    """A text that argv and the environment can carry."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        return False
    return True


def check_spec(spec: object) -> Record:
    """The spec as it came. Raises HostError `bad_spec` that names the field."""
    if not isinstance(spec, dict):
        raise refuse("`spec` is an object")
    check_argv(spec.get("argv"), "argv")
    if spec.get("cwd") is not None and not text_ok(spec["cwd"]):
        raise refuse("`cwd` is a path or null")
    check_environment(spec.get("env") or {})
    gpus = spec.get("gpus") or []
    if not isinstance(gpus, list) or not all(text_ok(gpu) and gpu and "," not in gpu for gpu in gpus):
        raise refuse("`gpus` is a list of UUIDs")
    check_checkpoint(spec.get("checkpoint"))
    for name in ("time_limit_s", "log_bytes_max", "checkpoint_grace_s", "stop_grace_s"):
        check_number(spec.get(name), name)
    if spec.get("stop_target", "tree") not in STOP_TARGETS:
        raise refuse(f"`stop_target` is one of {', '.join(STOP_TARGETS)}")
    return spec


def check_argv(argv: object, name: str) -> None:
    if not isinstance(argv, list) or not argv or not all(text_ok(word) for word in argv) or not argv[0]:
        raise refuse(f"`{name}` is a list of texts without NUL, the program first")


def check_environment(env: object) -> None:
    if not isinstance(env, dict) or not all(text_ok(v) for pair in env.items() for v in pair):
        raise refuse("`env` maps names to texts without NUL")
    bad = [name for name in env if not name or "=" in name]
    if bad:
        raise refuse(f"`env` has an impossible name: {bad[0]!r}")


def check_number(value: object, name: str) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e15:
        raise refuse(f"`{name}` is a number of at least 0, or null")


def check_checkpoint(checkpoint: object) -> None:
    if checkpoint is None:
        return
    if not isinstance(checkpoint, dict) or len({"signal", "argv"} & set(checkpoint)) != 1:
        raise refuse('`checkpoint` is {"signal": name} or {"argv": [...]}')
    if "argv" in checkpoint:
        check_argv(checkpoint["argv"], "checkpoint.argv")
    elif signal_number(checkpoint["signal"]) is None:
        raise refuse(f"`checkpoint.signal`: there is no signal {checkpoint['signal']!r}")


def signal_number(name: object) -> int | None:
    """`SIGUSR1`, `USR1` or 10."""
    if isinstance(name, int) and not isinstance(name, bool):
        return name if 0 < name < signal.NSIG else None
    if not isinstance(name, str):
        return None
    word = name.upper() if name.upper().startswith("SIG") else "SIG" + name.upper()
    found = getattr(signal, word, None)
    return int(found) if isinstance(found, signal.Signals) else None


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


def number_or(value: Any, default: float) -> float:
    return float(default if value is None else value)


def workload_of(token: str, spec: Record) -> str:
    """WORKLOAD of the token WORKLOAD~ATTEMPT or WORKLOAD~ATTEMPT.DAY, unless the spec names it."""
    return str(spec.get("workload") or token.rpartition("~")[0] or token)


def attempt_of(token: str, spec: Record) -> int | None:
    if isinstance(spec.get("attempt"), int):
        return int(spec["attempt"])
    last = token.rpartition("~")[2].partition(".")[0]
    return int(last) if last.isascii() and last.isdigit() and last != token else None


def run_environment(base: Mapping[str, str], spec: Record, token: str, run_dir: str) -> dict[str, str]:
    """The login's environment, then the spec's, then what the runner promises; the last word wins."""
    env = {name: value for name, value in base.items() if name not in SESSION_VARIABLES}
    env.update(spec.get("env") or {})
    gpus: list[str] = spec.get("gpus") or []
    env.update(
        CUDA_VISIBLE_DEVICES=",".join(gpus),  # empty: none, never all
        CUDA_DEVICE_ORDER="PCI_BUS_ID",
        OPSCONSOLE_RUN=token,
        OPSCONSOLE_RUN_DIR=run_dir,  # marks every process of the run, also where hosts share a kernel
        OPSCONSOLE_WORKLOAD=workload_of(token, spec),
        OPSCONSOLE_ATTEMPT=str(attempt_of(token, spec) or 1),
        OPSCONSOLE_CHECKPOINT_FILE=os.path.join(run_dir, "checkpointed"),
    )
    gang = {"MASTER_ADDR": "master_addr", "MASTER_PORT": "master_port", "NODE_RANK": "rank", "NNODES": "nodes"}
    env.update({name: str(spec[field]) for name, field in gang.items() if spec.get(field) is not None})
    return env
