"""The NVML simulator fails in every way that drivers and GPUs fail."""

from __future__ import annotations

import subprocess
import sys
import threading

import pynvml
import pytest

from tests.rig.nvml import (
    NvmlBox,
    box,
    h200,
    stand_in_uuid,
)
from tests.rig.nvml.fixtures import code_of, initialised, load


class TestTrouble:
    def test_no_box_at_all(self, nvml: NvmlBox, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GPUCONSOLE_NVML_STATE", "/nonexistent")
        assert code_of(pynvml.nvmlInit) == pynvml.NVML_ERROR_DRIVER_NOT_LOADED

    @pytest.mark.parametrize("code", [9, 18, 999])
    def test_init_fails(self, nvml: NvmlBox, code: int) -> None:
        nvml.write(init=code)
        assert code_of(pynvml.nvmlInit) == code
        nvml.write(init=0)
        assert code_of(pynvml.nvmlInit) == 0

    def test_any_error_on_any_call_of_one_gpu(self, nvml: NvmlBox) -> None:
        nvml.change_gpu(1, errors={"nvmlDeviceGetPowerUsage": 999, "nvmlDeviceGetMemoryInfo_v2": 4})
        well, ill = initialised(0), pynvml.nvmlDeviceGetHandleByIndex(1)
        assert code_of(pynvml.nvmlDeviceGetPowerUsage, ill) == 999
        assert code_of(pynvml.nvmlDeviceGetMemoryInfo, ill, pynvml.nvmlMemory_v2) == 4
        assert code_of(pynvml.nvmlDeviceGetMemoryInfo, ill) == 0
        assert code_of(pynvml.nvmlDeviceGetPowerUsage, well) == 0

    def test_errors_at_the_handle_and_everywhere(self, nvml: NvmlBox) -> None:
        nvml.change_gpu(1, errors={"nvmlDeviceGetHandleByIndex_v2": 4})
        handle = initialised(0)
        assert code_of(pynvml.nvmlDeviceGetHandleByIndex, 1) == 4
        nvml.write(errors={"nvmlDeviceGetCount_v2": 17})
        assert code_of(pynvml.nvmlDeviceGetCount) == 17
        nvml.write(errors={"*": 16, "nvmlDeviceGetName": 0})
        assert code_of(pynvml.nvmlDeviceGetUUID, handle) == 16
        assert code_of(pynvml.nvmlDeviceGetName, handle) == 0

    def test_a_gpu_is_lost(self, nvml: NvmlBox) -> None:
        well, ill = initialised(0), pynvml.nvmlDeviceGetHandleByIndex(1)
        nvml.change_gpu(1, lost=True)
        assert pynvml.nvmlDeviceGetCount() == 2
        for call in (pynvml.nvmlDeviceGetName, pynvml.nvmlDeviceGetPowerUsage, pynvml.nvmlDeviceGetMemoryInfo):
            assert code_of(call, ill) == pynvml.NVML_ERROR_GPU_IS_LOST
            assert code_of(call, well) == 0
        assert code_of(pynvml.nvmlDeviceGetHandleByIndex, 1) == pynvml.NVML_ERROR_GPU_IS_LOST
        assert code_of(pynvml.nvmlDeviceGetHandleByUUID, stand_in_uuid(1)) == pynvml.NVML_ERROR_GPU_IS_LOST

    def test_a_gpu_is_gone_and_the_others_move_up(self, nvml: NvmlBox) -> None:
        nvml.write(box(3))
        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(3)]
        nvml.write(gpus=(h200(0), h200(2)))
        assert pynvml.nvmlDeviceGetCount() == 2
        assert code_of(pynvml.nvmlDeviceGetName, handles[1]) == pynvml.NVML_ERROR_GPU_IS_LOST
        assert pynvml.nvmlDeviceGetIndex(handles[2]) == 1
        assert pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(1)) == stand_in_uuid(2)

    def test_a_slow_call_holds_up_no_other(self, nvml: NvmlBox) -> None:
        nvml.change_gpu(1, delays_ms={"nvmlDeviceGetPowerUsage": 1500})
        well, slow = initialised(0), pynvml.nvmlDeviceGetHandleByIndex(1)
        found: list[int] = []
        asking = threading.Thread(target=lambda: found.append(pynvml.nvmlDeviceGetPowerUsage(slow)))
        asking.start()
        assert pynvml.nvmlDeviceGetPowerUsage(well) == 78915
        assert pynvml.nvmlDeviceGetTemperature(slow, 0) == 38
        assert not found
        asking.join()
        assert found == [78915]

    @pytest.mark.parametrize("function", ["nvmlInitWithFlags", "nvmlDeviceGetCount_v2", "nvmlDeviceGetPowerUsage"])
    def test_a_driver_that_goes_while_a_call_hangs(self, nvml: NvmlBox, function: str) -> None:
        """In a process of its own: what went wrong here ended the process."""
        program = (
            "import os, threading, time, pynvml as n\n"
            f"inside = {function!r} == 'nvmlInitWithFlags'\n"
            "if not inside: n.nvmlInit(); h = n.nvmlDeviceGetHandleByIndex(0)\n"
            "else: n._LoadNvmlLibrary()\n"
            "ask = {'nvmlInitWithFlags': n.nvmlInit, 'nvmlDeviceGetCount_v2': n.nvmlDeviceGetCount,\n"
            "       'nvmlDeviceGetPowerUsage': lambda: n.nvmlDeviceGetPowerUsage(h)}"
            f"[{function!r}]\n"
            "def run():\n"
            "    try: ask(); print(0)\n"
            "    except n.NVMLError as error: print(error.value)\n"
            "asking = threading.Thread(target=run); asking.start(); time.sleep(0.5)\n"
            "del os.environ['GPUCONSOLE_NVML_STATE']\n"
            "n.nvmlLib.gpuconsole_sim_reset(); asking.join()"
        )
        nvml.write(delays_ms={function: 2000})
        if function == "nvmlDeviceGetPowerUsage":
            nvml.write(delays_ms={})
            nvml.change_gpu(0, delays_ms={function: 2000})
        told = int(nvml.python(program))
        assert told in (pynvml.NVML_ERROR_UNINITIALIZED, pynvml.NVML_ERROR_DRIVER_NOT_LOADED)

    def test_functions_an_older_driver_lacks(self, nvml: NvmlBox, monkeypatch: pytest.MonkeyPatch) -> None:
        missing = ("nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetComputeRunningProcesses_v3")
        program = (
            "import pynvml as n; n.nvmlInit(); h = n.nvmlDeviceGetHandleByIndex(0)\n"
            "print(n.nvmlDeviceGetMemoryInfo(h).used)\n"
            "try: n.nvmlDeviceGetMemoryInfo(h, version=n.nvmlMemory_v2)\n"
            "except n.NVMLError as error: print(error.value)"
        )
        assert nvml.python(program, omit=missing).split() == [str(644939776), str(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)]
        load(monkeypatch, omit=missing)
        handle = initialised()
        assert code_of(pynvml.nvmlDeviceGetMemoryInfo, handle, pynvml.nvmlMemory_v2) == 13
        with pytest.raises(pynvml.NVMLLibraryMismatchError):
            pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
        assert pynvml.nvmlDeviceGetComputeRunningProcesses_v2(handle) == []

    def test_no_setting_can_be_changed(self, nvml: NvmlBox) -> None:
        handle = initialised()
        assert code_of(pynvml.nvmlDeviceSetPersistenceMode, handle, 0) == pynvml.NVML_ERROR_NO_PERMISSION
        assert code_of(pynvml.nvmlDeviceSetComputeMode, handle, 2) == pynvml.NVML_ERROR_NO_PERMISSION

    def test_a_null_handle_is_as_fatal_as_on_a_real_driver(self, nvml_box: NvmlBox) -> None:
        program = "import pynvml as n; n.nvmlInit(); n.nvmlDeviceGetPowerUsage(n.c_nvmlDevice_t())"
        ended = subprocess.run([sys.executable, "-c", program], env=nvml_box.env(), capture_output=True, check=False)
        assert ended.returncode < 0
        assert b"null handle" in ended.stderr
