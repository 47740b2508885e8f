"""A stand-in for the agent: the protocol's manners, with extra operations that misbehave on purpose."""

from __future__ import annotations

import hashlib
import io
import zipfile

from opsconsole.transport.bootstrap import Kit

AGENT = r"""
import json, os, sys, threading, time

def say(fields):
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()

def probes(interval_s):
    seq = 0
    while True:
        say({"event": "probe", "probe": {"seq": seq}})
        seq += 1
        time.sleep(interval_s)

def answer(request):
    op = request.get("op")
    if op == "hello":
        if request.get("store") == "other":
            return {"ok": False, "error": "fenced", "message": "store s1 leads this host"}
        threading.Thread(target=probes, args=(request["interval_s"],), daemon=True).start()
        return {"ok": True, "boot_id": "b", "pid": os.getpid(), "argv": sys.argv[1:], "env": dict(os.environ)}
    if op == "overlong":
        sys.stdout.write("x" * request["size"] + "\n")
    if op == "garbage":
        sys.stdout.flush()
        os.write(1, b"\xff\xfe not json\n[1, 2]\n")
    if op == "umask":
        return {"ok": True, "umask": os.umask(0)}
    if op == "never":
        return None
    if op == "exit":
        sys.stderr.write("the agent gives up\n")
        os._exit(7)
    return {"ok": True, "echo": request.get("text")}

for line in sys.stdin:
    request = json.loads(line)
    fields = answer(request)
    if fields is not None:
        say({"re": request["id"], **fields})
"""


def standin_kit() -> Kit:
    """The zipapp of the stand-in."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo("__main__.py", (2026, 1, 1, 0, 0, 0)), AGENT)
    data = buffer.getvalue()
    return Kit(data, hashlib.sha256(data).hexdigest())
