"""The first words on a host: a POSIX sh script that says what is there, takes the zipapp and becomes the agent.

The script is sent whole before anything else, because a shell may read its input in blocks (dash does): whatever
followed it at once could be swallowed. The zipapp's bytes go only after the BOOT line asks for them, and Python reads
exactly as many as there are. Other shells (bash) read byte by byte: what stood behind the line that starts all would
be taken for data, so that line is the last. Names never reach the shell; the two paths that do are quoted. The first
lines are empty commands, for an rc file that reads a line.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

BOOT_MARK = b"OPSCONSOLE-BOOT "
EXEC_COMMAND = "exec /bin/sh"  # every login shell understands this alike

_PLACE = """
import hashlib, json, os, sys
kit, name, size, want = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
partial = os.path.join(kit, ".%s.%d" % (name, os.getpid()))
digest = hashlib.sha256()
def fail(text):
    print(json.dumps({"placed": False, "error": text}), flush=True)
    try:
        os.unlink(partial)
    except OSError:
        pass
    sys.exit(4)
try:
    target = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    while size:
        data = os.read(0, min(size, 65536))
        if not data:
            fail("the connection ended")
        digest.update(data)
        size -= len(data)
        while data:
            data = data[os.write(target, data):]
    os.fsync(target)
    if digest.hexdigest() != want:
        fail("the bytes that came have another SHA-256")
    os.rename(partial, os.path.join(kit, name))
except OSError as error:
    fail("%s: %s" % (error.filename or partial, error.strerror))
print(json.dumps({"placed": True}), flush=True)
"""

_SCRIPT = r"""
:
:
:
boot() {
  nonce=@NONCE@ name=@NAME@ size=@SIZE@ hash=@HASH@ dir=@STATE_DIR@ given=@PYTHON@
  mask=$(umask)
  umask 077
  json() { printf '%s' "$1" | LC_ALL=C tr '\000-\037' ' ' | LC_ALL=C sed 's/[\\"]/\\&/g'; }
  [ -n "$dir" ] || dir=${OPSCONSOLE_STATE_DIR:-/var/tmp/opsconsole-$(id -u)}
  kit=$dir/kit
  prepare() {
    LC_ALL=C mkdir -p "$kit" || return
    { [ -O "$dir" ] && [ -O "$kit" ]; } || { echo "$dir belongs to another user"; return; }
    ( echo x > "$kit/.try.$$" ) && rm -f "$kit/.try.$$"
  }
  trouble=$(prepare 2>&1)
  have=false
  if [ -f "$kit/$name" ] && [ -O "$kit/$name" ] && [ "$(($(wc -c < "$kit/$name")))" -eq "$size" ]; then
    have=true
  fi
  if [ -n "$given" ]; then set -- "$given"; else
    set -- python3 python3.14 python3.13 python3.12 python3.11 python3.10 python3.9 python3.8; fi
  pythons= python=
  for word; do
    path=$(command -v "$word") || continue
    version=$("$path" -I -S -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' \
      </dev/null 2>/dev/null | tail -n 1)
    pythons="$pythons${pythons:+, }{\"path\": \"$(json "$path")\", \"version\": \"$(json "$version")\"}"
    case $version in 3.[89].*|3.[1-9][0-9].*) python=$path; break ;; esac
  done
  if [ -n "$python" ]; then chosen="\"$(json "$python")\""; else chosen=null; fi
  if [ -n "$trouble" ]; then error="\"$(json "$trouble")\""; else error=null; fi
  printf '\nOPSCONSOLE-BOOT {"nonce": "%s", "home": "%s", "uname": "%s", "pythons": [%s], "python": %s, ' \
    "$nonce" "$(json "$HOME")" "$(json "$(uname -srm)")" "$pythons" "$chosen"
  printf '"state_dir": "%s", "state_dir_error": %s, "have": %s}\n' "$(json "$dir")" "$error" "$have"
  if [ -z "$python" ] || [ -n "$trouble" ]; then exit 3; fi
  umask "$mask"
  [ "$have" = true ] || "$python" -I -S -c "$place" "$kit" "$name" "$size" "$hash" || exit 4
  exec "$python" -I "$kit/$name" agent --state-dir "$dir"
}
place=@PLACE@
boot; exit
"""


@dataclass(frozen=True, slots=True)
class Kit:
    """The zipapp for the hosts: its bytes and their SHA-256 in hexadecimal."""

    data: bytes
    sha256: str

    @property
    def name(self) -> str:
        return f"hostkit-{self.sha256}.pyz"


@dataclass(frozen=True, slots=True)
class Boot:
    """What the host said about itself."""

    home: str
    uname: str
    pythons: tuple[tuple[str, str], ...]  # path, version
    python: str | None
    state_dir: str
    state_dir_error: str | None
    have: bool


def boot_script(kit: Kit, nonce: str, state_dir: str | None, python: str | None) -> bytes:
    """The text for the far side's stdin."""
    text = _SCRIPT.lstrip()
    for mark, value in {
        "@NONCE@": nonce,
        "@NAME@": kit.name,
        "@SIZE@": str(len(kit.data)),
        "@HASH@": kit.sha256,
        "@STATE_DIR@": state_dir or "",
        "@PYTHON@": python or "",
        "@PLACE@": _PLACE.strip(),
    }.items():
        text = text.replace(mark, shlex.quote(value))
    return text.encode()


def parse_boot(fields: dict[str, Any], nonce: str) -> Boot | None:
    """The report, or None when it is not the answer to our script."""
    if fields.get("nonce") != nonce:
        return None
    pythons = fields.get("pythons") or []
    return Boot(
        home=str(fields.get("home")),
        uname=str(fields.get("uname")),
        pythons=tuple((str(p.get("path")), str(p.get("version"))) for p in pythons if isinstance(p, dict)),
        python=fields.get("python"),
        state_dir=str(fields.get("state_dir")),
        state_dir_error=fields.get("state_dir_error"),
        have=bool(fields.get("have")),
    )
