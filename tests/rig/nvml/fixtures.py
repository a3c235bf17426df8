"""Pytest fixtures: a simulated NVIDIA driver for the programs a test starts and for its own process."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pynvml
import pytest

from tests.rig.nvml.build import NoCompiler, build
from tests.rig.nvml.presets import box
from tests.rig.nvml.simulated import STATE_VARIABLE, NvmlBox, open_box


@pytest.fixture
def nvml_box(tmp_path: Path) -> NvmlBox:
    """A box with two H200, for programs that get `nvml_box.env()`; this process does not see it."""
    try:
        return open_box(tmp_path, box(2))
    except NoCompiler as error:
        pytest.skip(str(error))


@pytest.fixture
def nvml(nvml_box: NvmlBox, monkeypatch: pytest.MonkeyPatch) -> Iterator[NvmlBox]:
    """The same box for this process too: nvidia-ml-py uses the simulator, children inherit the way to it."""
    for name, value in nvml_box.env().items():
        if name in ("LD_LIBRARY_PATH", STATE_VARIABLE):
            monkeypatch.setenv(name, value)
    library = load(monkeypatch)
    yield nvml_box
    library.gpuconsole_sim_reset()


def load(monkeypatch: pytest.MonkeyPatch, *, omit: Iterable[str] = ()) -> ctypes.CDLL:
    """Make nvidia-ml-py use the simulator until the end of the test, without the functions in `omit`."""
    library = ctypes.CDLL(str(build(omit=omit)), mode=ctypes.RTLD_GLOBAL)
    library.gpuconsole_sim_reset()
    monkeypatch.setattr(pynvml, "nvmlLib", library)
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    monkeypatch.setattr(pynvml, "_nvmlLib_refcount", 0)
    return library


def initialised(index: int = 0) -> Any:
    """NVML in this process, and the handle of one GPU."""
    pynvml.nvmlInit()
    return pynvml.nvmlDeviceGetHandleByIndex(index)


def code_of(call: Any, *arguments: Any) -> int:
    """The NVML code with which nvidia-ml-py refuses, 0 if it does not."""
    try:
        call(*arguments)
    except pynvml.NVMLError as error:
        return int(error.value)
    return 0
