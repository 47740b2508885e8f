"""pynvml out of the zipapp, compiled once per host and Python: compiling it at every start costs time and 10 MB.

The copy lies under STATE_DIR/kit/, named by its hash, and is compiled by a child, so that the compiler's memory goes
with it. Whatever fails here only means that it is imported from the zipapp as it is.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys

from .files import write_whole
from .state import StateDir


def prepare(state: StateDir) -> None:
    """Have `import pynvml` find the compiled copy. In a checkout there is nothing to do."""
    if "pynvml" in sys.modules:
        return
    archive = getattr(globals().get("__loader__"), "archive", None)
    if archive is None:
        return
    try:
        folder = unpack(state, archive)
        compile_once(os.path.join(folder, "pynvml.py"))
    except (OSError, ImportError):
        return
    sys.path.insert(0, folder)


def unpack(state: StateDir, archive: str) -> str:
    """The folder with the module. Raises OSError."""
    import zipimport

    source = zipimport.zipimporter(archive).get_data("pynvml.py")
    folder = os.path.join(state.root, "kit", f"pynvml-{hashlib.sha256(source).hexdigest()[:20]}")
    path = os.path.join(folder, "pynvml.py")
    if not os.path.exists(path):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        write_whole(path, source, durable=False)
    return folder


def compile_once(path: str) -> None:
    """In a child, unless this Python has done it before. Raises OSError."""
    if os.path.exists(importlib.util.cache_from_source(path)):
        return
    child = os.fork()
    if child == 0:
        try:
            import py_compile

            py_compile.compile(path, doraise=False, quiet=2)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
