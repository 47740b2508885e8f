"""Pack the hostkit and pynvml into one zipapp, the same bytes for the same sources. Runs on the console's side only."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import zipfile
from functools import cache
from pathlib import Path

OWN = Path(__file__).parent
LEFT_OUT = frozenset({"zipapp_build.py"})
EPOCH = (1980, 1, 1, 0, 0, 0)
ENTRY = b"""import sys
if sys.version_info < (3, 8):
    sys.exit("hostkit needs Python 3.8 or newer; this is %d.%d" % sys.version_info[:2])
from hostkit.__main__ import main
sys.exit(main())
"""


@cache
def build_zipapp() -> tuple[bytes, str]:
    """(bytes, SHA-256 in hexadecimal). Raises FileNotFoundError where nvidia-ml-py is not installed."""
    data = pack(sources())
    return data, hashlib.sha256(data).hexdigest()


def sources() -> dict[str, bytes]:
    """Name in the archive → content. pynvml is vendored whole, as it is installed, with its license in its head."""
    found = {"__main__.py": ENTRY}
    for path in OWN.glob("*.py"):
        if path.name not in LEFT_OUT:
            found[f"hostkit/{path.name}"] = path.read_bytes()
    found["pynvml.py"] = pynvml_source().read_bytes()
    return found


def pynvml_source() -> Path:
    """The file of nvidia-ml-py; the `pynvml` package of that name (a shim) is a directory and refused."""
    spec = importlib.util.find_spec("pynvml")
    if spec is None or spec.origin is None or spec.submodule_search_locations:
        raise FileNotFoundError("pynvml.py of the nvidia-ml-py package is not installed")
    return Path(spec.origin)


def pack(files: dict[str, bytes]) -> bytes:
    """Names in order, times fixed, so that the hash names the content."""
    buffer = io.BytesIO()
    buffer.write(b"#!/usr/bin/env python3\n")
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, EPOCH)
            info.external_attr = 0o644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, files[name])
    return buffer.getvalue()
