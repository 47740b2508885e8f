"""The state directory: where it is, whether it can be trusted, and what lies where in it.

STATE_DIR/kit/                       zipapps by hash (the client places them)
STATE_DIR/hosts/MACHINE-ID/          this host's part, so that a shared directory does no harm
    fence.json settings.json slots.json kernel.json lock
    burnt/TOKEN-HASH.json            a token that was started or stopped once; kept after `forget`
    runs/TOKEN-HASH/                 spec.json state.json stop.json lock log log.OFFSET
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat

from . import proc
from .files import remove

TOKEN_BYTES_MAX = 1024


class HostError(Exception):
    """Something this host refuses or cannot do. `code` is for programs, the message for people."""

    def __init__(self, code: str, message: str, **fields: object) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.fields = fields


def default_root() -> str:
    return os.environ.get("OPSCONSOLE_STATE_DIR") or f"/var/tmp/opsconsole-{os.getuid()}"


def safe_name(token: str) -> str:
    """A file name for any token: some of its letters for people, and a hash that tells it from all others."""
    readable = re.sub(r"[^A-Za-z0-9._~-]+", "_", token)[:48].lstrip(".-") or "run"
    return f"{readable}-{hashlib.sha256(token.encode('utf-8')).hexdigest()[:20]}"


def check_token(token: object) -> str:
    """Any text a process's environment can carry. Raises HostError."""
    if not isinstance(token, str) or not token:
        raise HostError("bad_request", "a token is a text that is not empty")
    try:
        size = len(token.encode("utf-8"))
    except UnicodeEncodeError:
        raise HostError("bad_request", "the token is no valid Unicode text") from None
    if size > TOKEN_BYTES_MAX or "\0" in token:
        raise HostError("bad_request", f"a token has at most {TOKEN_BYTES_MAX} bytes and no NUL")
    return token


class StateDir:
    """Paths of this host's part of the state directory."""

    def __init__(self, root: str) -> None:
        self.root = os.path.abspath(root)
        self.base = os.path.join(self.root, "hosts", re.sub(r"[^A-Za-z0-9_.-]", "_", proc.machine_id()))
        self.runs = os.path.join(self.base, "runs")
        self.burnt = os.path.join(self.base, "burnt")
        self.fence = os.path.join(self.base, "fence.json")
        self.settings = os.path.join(self.base, "settings.json")
        self.slots = os.path.join(self.base, "slots.json")
        self.kernel = os.path.join(self.base, "kernel.json")
        self.lock = os.path.join(self.base, "lock")

    def run_dir(self, token: str) -> str:
        return os.path.join(self.runs, safe_name(token))

    def burnt_file(self, token: str) -> str:
        return os.path.join(self.burnt, safe_name(token) + ".json")

    def writable(self) -> HostError | None:
        """None when a file can be written and flushed here; otherwise why not, with the way out."""
        path = os.path.join(self.base, f".try.{os.getpid()}")
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                os.write(fd, b"x" * 512)
                os.fsync(fd)
            finally:
                os.close(fd)
        except OSError as error:
            return disk_error(self.base, error)
        finally:
            remove(path)
        return None


def disk_error(path: str, error: OSError) -> HostError:
    """An errno in words, with what to do."""
    advice = {
        errno.ENOSPC: "free some space or inodes there",
        errno.EDQUOT: "the quota is used up: free some space there",
        errno.EROFS: "the file system is mounted read-only: look at its health and remount it",
        errno.EACCES: "this user may not write there",
        errno.EPERM: "this user may not write there",
    }.get(error.errno or 0, "look at that file system")
    where = error.filename if isinstance(error.filename, str) else path
    return HostError(
        "state_dir",
        f"cannot write to {where}: {error.strerror or error}; {advice}, or name another state_dir for this host",
    )


def open_state(root: str | None = None) -> StateDir:
    """The state directory, made if missing. Raises HostError when it is not ours alone or cannot be made."""
    state = StateDir(root or default_root())
    try:
        make_private(state.root)
        for path in (os.path.dirname(state.base), state.base, state.runs, state.burnt):
            os.makedirs(path, mode=0o700, exist_ok=True)
    except OSError as error:
        raise disk_error(state.root, error) from error
    return state


def make_private(path: str) -> None:
    """`path` is a directory of this user that nobody else can write to. Raises HostError, OSError."""
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    info = os.lstat(path)
    if not stat.S_ISDIR(info.st_mode):
        raise HostError("state_dir", f"{path} is not a directory; name another state_dir for this host")
    if info.st_uid != os.geteuid():
        raise HostError(
            "state_dir",
            f"{path} belongs to user {info.st_uid}, not to {os.geteuid()}; name another state_dir for this host",
        )
    if info.st_mode & 0o022:
        raise HostError("state_dir", f"others can write to {path}; run: chmod 700 {path}")
