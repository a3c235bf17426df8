"""Bad days of a driver: lost GPUs, a library that does not start, one that hangs, one that is exchanged."""

from __future__ import annotations

import ctypes.util
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pynvml
import pytest

from gpuconsole.gpu.model import GpuSnapshot, GpuStatus
from gpuconsole.gpu.nvml.source import NvmlSource
from tests.rig.nvml import NvmlBox, NvmlState, box, h200
from tests.rig.nvml.fixtures import code_of, load


@pytest.fixture
def source(nvml: NvmlBox) -> Iterator[NvmlSource]:
    opened = NvmlSource(refresh_s=0)
    yield opened
    opened.close()


def states(snapshot: GpuSnapshot) -> list[GpuStatus]:
    return [gpu.status for gpu in snapshot.gpus]


OK, LOST, ERROR = GpuStatus.OK, GpuStatus.LOST, GpuStatus.ERROR


@pytest.mark.parametrize(("code", "status"), [(15, LOST), (16, LOST), (999, ERROR), (4, ERROR)])
def test_one_of_four_gpus_fails_in_mid_run_and_comes_back(
    nvml: NvmlBox, source: NvmlSource, code: int, status: GpuStatus
) -> None:
    """Every question to GPU 1 of 4 starts failing: its row says so, the others stay live, and it recovers."""
    nvml.write(box(4))
    before = source.snapshot()
    nvml.change_gpu(1, errors={"*": code})
    nvml.change_gpu(2, celsius=70)
    failing = source.snapshot()
    assert failing.problem is None
    assert states(failing) == [OK, status, OK, OK]
    assert failing.gpus[2].temperature_c == 70
    lost = failing.gpus[1]
    assert (lost.name, lost.uuid, lost.minor) == (before.gpus[1].name, before.gpus[1].uuid, 1)
    assert lost.problem is not None
    assert lost.problem.endswith(".")
    assert lost.temperature_c is None
    assert lost.memory_used_bytes is None
    assert lost.processes is None
    assert lost.unknown["temperature_c"]
    nvml.change_gpu(1, errors={})
    after = source.snapshot()
    assert states(after) == [OK] * 4
    assert after.gpus[1].temperature_c == 38
    assert after.gpus[1].power_limit_w == 700.0


def test_a_gpu_off_the_bus_from_the_start_has_no_name_but_a_row(nvml: NvmlBox, source: NvmlSource) -> None:
    nvml.change_gpu(0, lost=True)
    gpu, neighbour = source.snapshot().gpus
    assert (gpu.index, gpu.status, gpu.name, gpu.uuid) == (0, LOST, None, None)
    assert gpu.unknown["name"] == "the GPU is lost"
    assert neighbour.status is OK


def test_only_the_readings_that_fail_are_missing(nvml: NvmlBox, source: NvmlSource) -> None:
    nvml.change_gpu(0, errors={"nvmlDeviceGetPowerUsage": 999, "nvmlDeviceGetComputeRunningProcesses_v3": 4})
    gpu = source.snapshot().gpus[0]
    assert gpu.status is OK
    assert gpu.power_w is None
    assert gpu.unknown["power_w"] == "the driver failed without saying why"
    assert gpu.processes is None
    assert gpu.unknown["processes"] == "this user may not read it"
    assert gpu.temperature_c == 38


def test_a_gpu_that_no_longer_gives_its_uuid_keeps_its_name(nvml: NvmlBox, source: NvmlSource) -> None:
    source.snapshot()
    nvml.change_gpu(0, errors={"nvmlDeviceGetUUID": 999, "nvmlDeviceGetName": 999})
    gpu = source.snapshot().gpus[0]
    assert gpu.uuid is None
    assert gpu.name == "NVIDIA H200"


def test_gpus_come_and_go(nvml: NvmlBox, source: NvmlSource) -> None:
    counts = []
    for count in (2, 1, 4, 0, 3):
        nvml.write(box(count))
        snapshot = source.snapshot()
        counts.append(len(snapshot.gpus))
        assert (snapshot.reason == "no-gpu") == (count == 0)
    assert counts == [2, 1, 4, 0, 3]


def test_a_lost_gpu_does_not_take_the_name_of_who_stood_there(nvml: NvmlBox, source: NvmlSource) -> None:
    nvml.write(NvmlState(gpus=(h200(0), h200(1, name="NVIDIA First"), h200(2, name="NVIDIA Second"))))
    source.snapshot()
    nvml.write(NvmlState(gpus=(h200(0), h200(2, name="NVIDIA Second", lost=True))))
    assert source.snapshot().gpus[1].name is None


@pytest.mark.parametrize(
    ("code", "reason", "words"),
    [
        (9, "driver-not-loaded", "kernel module is not loaded"),
        (18, "version-mismatch", "different versions"),
        (4, "no-permission", "may not talk"),
        (17, "blocked", "keeps this program"),
        (999, "driver-failed", "does not say why"),
        (15, "gpu-lost", "lost"),
        (10, "driver-failed", "timed out"),
        (777, "driver-failed", "error 777"),
    ],
)
def test_a_driver_that_does_not_start_is_a_problem_and_is_tried_again(
    nvml: NvmlBox, source: NvmlSource, code: int, reason: str, words: str
) -> None:
    """Driver missing or at odds with its library: one sentence, one remedy, and it heals when the driver does."""
    nvml.write(nvml.state.with_(init=code))
    snapshot = source.snapshot()
    assert snapshot.gpus == ()
    assert snapshot.reason == reason
    assert snapshot.problem is not None
    assert words in snapshot.problem
    assert snapshot.hint
    nvml.write(nvml.state.with_(init=0))
    healed = source.snapshot()
    assert healed.problem is None
    assert len(healed.gpus) == 2


def test_no_driver_on_the_machine() -> None:
    if ctypes.util.find_library("nvidia-ml"):
        pytest.skip("this machine has an NVIDIA driver")
    code = "from gpuconsole.gpu.nvml.source import NvmlSource; s = NvmlSource().snapshot(); print(s.reason, s.problem)"
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.startswith("no-library There is no NVIDIA driver on this machine")


def test_a_library_without_the_call_that_starts_it(nvml: NvmlBox, monkeypatch: pytest.MonkeyPatch) -> None:
    load(monkeypatch, omit=("nvmlInitWithFlags",))
    assert NvmlSource().snapshot().reason == "library-too-old"


def test_the_driver_goes_away_and_comes_back_while_we_run(nvml: NvmlBox, source: NvmlSource) -> None:
    source.snapshot()
    nvml.write(nvml.state.with_(init=9, errors={"nvmlDeviceGetCount_v2": 1}))
    assert source.snapshot().reason == "driver-not-loaded"
    nvml.write(nvml.state.with_(init=0, errors={}))
    assert source.snapshot().problem is None


def test_another_driver_version_after_ours_worked_asks_for_a_new_start(nvml: NvmlBox, source: NvmlSource) -> None:
    """The binding never unloads its library, so an exchanged driver needs a new process; nothing crashes."""
    source.snapshot()
    nvml.write(nvml.state.with_(init=18, errors={"nvmlDeviceGetCount_v2": 1}))
    mismatch = source.snapshot()
    assert mismatch.reason == "driver-changed"
    assert mismatch.hint is not None
    assert "Start gpuconsole again" in mismatch.hint
    nvml.write(nvml.state.with_(init=0, errors={}, driver="590.44.01"))
    assert source.snapshot().reason == "driver-changed"
    nvml.write(nvml.state.with_(driver="580.159.04"))
    assert source.snapshot().problem is None


def test_a_slow_driver_is_waited_for(nvml: NvmlBox) -> None:
    source = NvmlSource(limit_s=30)
    nvml.change_gpu(0, delays_ms={"nvmlDeviceGetTemperature": 300})
    assert source.snapshot().problem is None
    source.close()


def test_a_driver_that_hangs_is_reported_and_the_last_figures_stay(nvml: NvmlBox) -> None:
    """A call that takes long: the snapshot comes back in time, with what was known and when; later all is well."""
    source = NvmlSource(limit_s=0.05)
    first = source.snapshot()
    nvml.change_gpu(0, delays_ms={"nvmlDeviceGetTemperature": 1500})
    stuck = source.snapshot()
    assert stuck.reason == "not-answering"
    assert stuck.taken_at == first.taken_at
    assert [gpu.index for gpu in stuck.gpus] == [0, 1]
    nvml.change_gpu(0, delays_ms={}, celsius=66)
    deadline = time.monotonic() + 30
    while (later := source.snapshot()).problem and time.monotonic() < deadline:
        time.sleep(0.05)
    assert later.problem is None
    assert later.gpus[0].temperature_c == 66
    source.close()


def test_a_driver_that_hangs_at_once(nvml: NvmlBox) -> None:
    source = NvmlSource(start_limit_s=0.05)
    nvml.write(nvml.state.with_(delays_ms={"nvmlDeviceGetCount_v2": 700}))
    stuck = source.snapshot()
    source.close()  # leaves the reader to its call, without waiting
    assert stuck.reason == "not-answering"
    assert stuck.gpus == ()
    assert stuck.hint
    nvml.write(nvml.state.with_(delays_ms={}))
    other = NvmlSource()
    assert len(other.snapshot().gpus) == 2
    other.close()
    time.sleep(0.8)  # the simulator must not be reset beneath the call that still waits


@pytest.mark.parametrize("options", ["", ", direct=True"])
def test_a_hanging_driver_does_not_keep_the_process_alive(nvml_box: NvmlBox, options: str) -> None:
    nvml_box.write(nvml_box.state.with_(delays_ms={"nvmlDeviceGetCount_v2": 600_000}))
    code = "from gpuconsole.gpu.nvml.source import NvmlSource;"
    code += f"print(NvmlSource(start_limit_s=0.1{options}).snapshot().reason)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=nvml_box.env(), capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "not-answering"


@pytest.mark.parametrize("call", ["nvmlInitWithFlags", "nvmlDeviceGetCount_v2", "nvmlDeviceGetTemperature"])
def test_closing_waits_for_no_call_that_hangs(nvml_box: NvmlBox, call: str) -> None:
    """Driver hangs in any call while somebody waits for it with patience: closing returns, and lets that one go too."""
    nvml_box.write(nvml_box.state.with_(delays_ms={call: 600_000}))
    program = """
import threading
from gpuconsole.gpu.nvml.source import NvmlSource
source = NvmlSource(start_limit_s=600)
waiting = threading.Thread(target=lambda: print(source.snapshot().reason))
waiting.start()
while not any(thread.name == "nvml" for thread in threading.enumerate()):
    pass
source.close()
waiting.join()
print(any(thread.name == "nvml" for thread in threading.enumerate()), "the driver still holds the question")
source.close()
"""
    assert nvml_box.python(program).splitlines() == ["not-answering", "True the driver still holds the question"]


def test_closing_waits_for_no_driver_that_hangs_when_it_is_let_go(nvml_box: NvmlBox) -> None:
    nvml_box.write(nvml_box.state.with_(delays_ms={"nvmlShutdown": 600_000}))
    program = """
from gpuconsole.gpu.nvml.source import NvmlSource
source = NvmlSource()
print(len(source.snapshot().gpus))
source.close()
print("closed")
"""
    assert nvml_box.python(program).splitlines() == ["2", "closed"]


def test_a_console_that_looks_at_a_hung_driver_ends_when_it_is_told_to(nvml_box: NvmlBox) -> None:
    nvml_box.write(nvml_box.state.with_(delays_ms={"nvmlDeviceGetCount_v2": 600_000}))
    program = """
import threading
from gpuconsole.gpu.nvml.source import NvmlSource
from gpuconsole.services.sampler import Sampler
from gpuconsole.services.session import Session
session = Session()
session._gpus = NvmlSource(start_limit_s=600)
sampler = Sampler("gpu-sampler", lambda: session.gpus.snapshot(), interval_s=1, on_result=print)
sampler.start()
while not any(thread.name == "nvml" for thread in threading.enumerate()):
    pass
sampler.stop(0.2)
session.close()
print("closed")
"""
    assert nvml_box.python(program) == "closed"


def test_a_question_given_up_is_let_go_when_the_driver_answers_it(nvml: NvmlBox) -> None:
    """The library is started as often as it is let go, also by who was not waited for."""
    source = NvmlSource(start_limit_s=0.05)
    nvml.write(nvml.state.with_(delays_ms={"nvmlDeviceGetCount_v2": 700}))
    assert source.snapshot().reason == "not-answering"
    source.close()
    deadline = time.monotonic() + 60
    while any(thread.name.startswith("nvml") for thread in threading.enumerate()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert code_of(pynvml.nvmlDeviceGetCount) == 1  # not started by anybody any more


def test_after_closing_it_is_still_known_which_driver_this_process_loaded(nvml: NvmlBox, source: NvmlSource) -> None:
    source.snapshot()
    source.close()
    nvml.write(nvml.state.with_(init=18))
    assert source.snapshot().reason == "driver-changed"


def test_the_source_may_be_asked_again_after_it_was_closed(nvml: NvmlBox, source: NvmlSource) -> None:
    source.snapshot()
    source.close()
    source.close()
    assert source.snapshot().problem is None


OLD_PACKAGE = """
class NVMLError(Exception):
    pass
def nvmlInit():
    raise AttributeError("this is not the module you are looking for")
"""


@pytest.mark.parametrize("content", [OLD_PACKAGE, "print 'python 2'", "raise ImportError('broken')"])
def test_another_package_in_the_place_of_nvidia_ml_py_is_named(nvml_box: NvmlBox, tmp_path: Path, content: str) -> None:
    """The old package pynvml shadows the module of nvidia-ml-py: a clear sentence, no AttributeError."""
    (tmp_path / "pynvml").mkdir()
    (tmp_path / "pynvml/__init__.py").write_text(content)
    code = (
        "from gpuconsole.gpu.nvml.source import NvmlSource; s = NvmlSource().snapshot(); print(s.reason, '|', s.hint)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=nvml_box.env() | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.startswith(("wrong-pynvml |", "no-pynvml |"))
    assert "pip install" in done.stdout
