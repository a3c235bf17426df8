"""The binding of our own is nvidia-ml-py's equal: every call, every error, the whole snapshot, on every kind of GPU."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pynvml
import pytest

from gpuconsole.gpu.model import GpuSnapshot
from gpuconsole.gpu.nvml.direct import FUNCTIONS, Direct, NvmlError
from gpuconsole.gpu.nvml.gateway import Failure, Gateway
from gpuconsole.gpu.nvml.source import NvmlSource
from tests.rig.nvml import GIB, GpuProcess, NvmlBox, NvmlState, a100_mig, busy, gb10, h200, rtx4090

SCRIPT = Path(__file__).parents[1] / "gpu/compare_nvml.py"
BOXES = {
    "h200": (busy(h200(0), GpuProcess(1, 40 * GIB), GpuProcess(7, None)), h200(1)),
    "mig": (a100_mig(0),),
    "desktop": (rtx4090(0, used_bytes=17 * GIB),),
    "shared memory": (gb10(),),
    "none": (),
    "nonsense": (h200(0, name="\udcff", errors={"nvmlDeviceGetPowerUsage": 999, "nvmlDeviceGetUUID": 3}),),
}
OLDER = {
    "no second memory": ("nvmlDeviceGetMemoryInfo_v2",),
    "second lists": tuple(f"nvmlDeviceGet{kind}RunningProcesses_v3" for kind in ("Compute", "Graphics", "MPSCompute")),
    "no lists": tuple(
        f"nvmlDeviceGet{kind}RunningProcesses{version}"
        for kind in ("Compute", "Graphics", "MPSCompute")
        for version in ("", "_v2", "_v3")
    ),
    "older names": ("nvmlSystemGetCudaDriverVersion_v2", "nvmlDeviceGetCurrentClocksEventReasons"),
    "no fields": ("nvmlDeviceGetFieldValues", "nvmlDeviceGetRemappedRows", "nvmlDeviceGetMigMode"),
}


def compared(box: NvmlBox, *, omit: tuple[str, ...] = (), before: str = "") -> subprocess.CompletedProcess[str]:
    """What the script says that is run on real GPUs too."""
    code = f"{before}\nimport runpy; runpy.run_path({str(SCRIPT)!r}, run_name='__main__')"
    return subprocess.run([sys.executable, "-c", code], env=box.env(omit=omit), capture_output=True, text=True)


@pytest.mark.parametrize("kind", BOXES)
def test_every_call_and_the_snapshot_are_those_of_nvidia_ml_py(nvml_box: NvmlBox, kind: str) -> None:
    nvml_box.write(NvmlState(gpus=BOXES[kind]))
    done = compared(nvml_box)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert all(f"\n{name} " in done.stdout for name in FUNCTIONS if name.startswith("nvmlDevice"))


@pytest.mark.parametrize("kind", OLDER)
def test_so_they_are_with_an_older_library(nvml_box: NvmlBox, kind: str) -> None:
    done = compared(nvml_box, omit=OLDER[kind])
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


BROKEN = {
    "a structure": "from gpuconsole.gpu.nvml import direct; import ctypes\n"
    "class Memory(ctypes.Structure): _fields_ = (('total', ctypes.c_uint), ('free', ctypes.c_uint))\n"
    "direct.Memory = Memory",
    "an answer": "from gpuconsole.gpu.nvml import direct; forms = direct._FORMS\n"
    "forms['nvmlDeviceGetPowerUsage'] = ('nvmlDeviceGetFanSpeed', forms['nvmlDeviceGetFanSpeed'][1])",
    "a call that is not bound": "from gpuconsole.gpu.nvml import direct; del direct._FORMS['nvmlDeviceGetName'];"
    "direct.FUNCTIONS = tuple(name for name in direct.FUNCTIONS if name != 'nvmlDeviceGetName')",
}  # fmt: skip


@pytest.mark.parametrize("kind", BROKEN)
def test_what_differs_is_found(nvml_box: NvmlBox, kind: str) -> None:
    done = compared(nvml_box, before=BROKEN[kind])
    assert done.returncode == 1, done.stdout + done.stderr
    assert "DIFFER" in done.stdout


def test_without_a_driver_nothing_is_compared(nvml_box: NvmlBox) -> None:
    nvml_box.write(nvml_box.state.with_(init=9))
    done = compared(nvml_box)
    assert done.returncode == 3
    assert "code 9" in done.stderr
    assert "DIFFER" not in done.stdout


@pytest.fixture
def both(nvml: NvmlBox) -> Iterator[Callable[[], list[GpuSnapshot]]]:
    """Looks through both bindings, one after the other, less the moments they were taken at."""
    sources = [NvmlSource(refresh_s=0, direct=True), NvmlSource(refresh_s=0)]

    def look() -> list[GpuSnapshot]:
        taken = [source.snapshot() for source in sources]
        return [replace(one, taken_at=0, gpus=tuple(replace(gpu, age_s=0) for gpu in one.gpus)) for one in taken]

    yield look
    for source in sources:
        source.close()


def test_bad_days_are_the_same_through_both(nvml: NvmlBox, both: Callable[[], list[GpuSnapshot]]) -> None:
    """The same words for the same trouble, from one look to the next; and the way back from it."""
    days: list[dict[str, object]] = [
        {}, {"errors": {"*": 15}}, {}, {"lost": True}, {}, {"errors": {"*": 999}},
        {"errors": {name: 4 for name in FUNCTIONS if "Processes" in name}},
        {"errors": {"nvmlDeviceGetMemoryInfo_v2": 25}},
    ]  # fmt: skip
    ordinary = nvml.state
    for day in days:
        nvml.write(ordinary)
        nvml.change_gpu(1, **day)
        direct, theirs = both()
        assert direct == theirs, day
    for init in (9, 18, 4, 999, 28, 0):  # the driver goes, and comes back
        nvml.write(ordinary.with_(init=init, errors={"nvmlDeviceGetCount_v2": 1} if init else {}))
        direct, theirs = both()
        assert direct == theirs, init
        assert (direct.problem is None) is (init == 0)


def test_a_machine_without_the_library(tmp_path: Path) -> None:
    code = (
        "from gpuconsole.gpu.nvml.source import NvmlSource;"
        "a, b = (NvmlSource(direct=d).snapshot() for d in (True, False));"
        "assert (a.reason, a.problem, a.hint) == (b.reason, b.problem, b.hint), (a, b); print(a.reason)"
    )
    library = tmp_path / "libnvidia-ml.so.1"
    library.write_text("no library")  # found, and none
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"LD_LIBRARY_PATH": str(tmp_path)},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "no-library\n"), done.stderr


def test_a_python_without_ctypes_is_said_to_be_one() -> None:
    """As it is where Python was built without libffi; a missing package is another matter."""
    code = (
        "import sys; sys.modules['_ctypes'] = None; from gpuconsole.gpu.nvml.source import NvmlSource;"
        "a, b = (NvmlSource(direct=d).snapshot() for d in (True, False));"
        "assert (a.reason, a.problem, a.hint) == (b.reason, b.problem, b.hint), (a, b); print(a.reason, a.hint)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("no-ctypes ")
    assert "pip" not in done.stdout


def test_before_the_start_and_for_what_is_not_bound_there_are_codes() -> None:
    gateway = Gateway.direct()
    assert isinstance(gateway, Gateway)
    assert gateway.ask("nvmlDeviceGetCount") == Failure(pynvml.NVML_ERROR_UNINITIALIZED)
    assert gateway.ask("nvmlDeviceDoesWhatIsNotBound") == Failure(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
    with pytest.raises(AttributeError):
        _ = Direct().nvmlDeviceDoesWhatIsNotBound


def test_its_thread_imports_no_threading(nvml_box: NvmlBox) -> None:
    """Which would take that thread for the main one, and wait for it when a driver hangs."""
    nvml_box.change_gpu(0, name="NVIDIA \u200bGr\u00f6\u00dfe\x1b[2J", processes=(GpuProcess(1, None),))
    code = (
        "import sys; from gpuconsole.gpu.nvml.source import NvmlSource; source = NvmlSource(direct=True);"
        "snapshot = source.snapshot(); source.close(); assert snapshot.gpus[0].name == 'NVIDIA Größe';"
        "print([name for name in ('threading', 'pynvml') if name in sys.modules])"
    )
    assert nvml_box.python(code) == "[]"


def test_the_machines_own_gpus() -> None:
    """On a machine with a driver: all is as nvidia-ml-py has it there."""
    try:
        Direct().nvmlInitWithFlags(0)
    except NvmlError:
        pytest.skip("this machine has no NVIDIA driver")
    assert ctypes.sizeof(ctypes.c_void_p) == 8
    done = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
