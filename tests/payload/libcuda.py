"""Builds the stand-in for libcuda.so.1."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("libcuda_stub.c")


def build(folder: Path) -> Path:
    """Build it into ``folder`` and return that; skips where there is no C compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler for the stand-in of libcuda")
    folder.mkdir(exist_ok=True)
    target = folder / "libcuda.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", target, SOURCE], check=True)
    return folder
