"""Building the simulator library with gcc: once for each source and each set of omitted functions."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

SOURCES = Path(__file__).parent / "sim"
LIBRARY = "libnvidia-ml.so.1"
FLAGS = ("-std=gnu11", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread")

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpuconsole-tests" / "nvml"
"""Where libraries are kept. Read at import: tests give each other folders of their own later."""


class NoCompiler(Exception):
    """There is no gcc on this machine, so no simulator either."""


def build(*, omit: Iterable[str] = ()) -> Path:
    """The path of the library, without the functions in `omit` (as an older driver lacks them).

    Any number of processes may build at the same time: each builds in a folder of its own and the first to
    finish gives its folder the final name.

    Raises:
        NoCompiler: There is no gcc.
        RuntimeError: gcc failed; its words are in the message.
    """
    return _built(tuple(sorted(set(omit))))


@lru_cache
def _built(omit: tuple[str, ...]) -> Path:
    CACHE.mkdir(parents=True, exist_ok=True)
    folder = CACHE / _fingerprint(omit)
    library = folder / LIBRARY
    if not library.exists():
        _compile_into(folder, omit)
    return library


def _fingerprint(omit: tuple[str, ...]) -> str:
    digest = hashlib.sha256(repr((FLAGS, omit, platform.machine(), platform.libc_ver())).encode())
    for source in sorted(SOURCES.iterdir()):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:20]


def _compile_into(folder: Path, omit: tuple[str, ...]) -> None:
    compiler = shutil.which("gcc")
    if compiler is None:
        raise NoCompiler("The NVML simulator needs gcc to be built.")
    own = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        exports = own / "exports"
        hidden = " ".join(f"{name};" for name in omit)
        exports.write_text(f"{{ global: nvml*; gpuconsole_sim_*; local: {hidden} *; }};\n", encoding="ascii")
        command = [compiler, *FLAGS, f"-Wl,-soname,{LIBRARY}", f"-Wl,--version-script={exports}"]
        sources = [str(path) for path in sorted(SOURCES.glob("*.c"))]
        made = subprocess.run(
            [*command, "-o", str(own / LIBRARY), *sources], capture_output=True, text=True, check=False
        )
        if made.returncode != 0:
            raise RuntimeError(f"gcc could not build the NVML simulator: {made.stderr}")
        _settle(own, folder)
    finally:
        shutil.rmtree(own, ignore_errors=True)


def _settle(own: Path, folder: Path) -> None:
    try:
        own.rename(folder)
    except OSError:
        if not (folder / LIBRARY).exists():  # another builder being first is fine, anything else is not
            raise
