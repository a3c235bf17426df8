"""The NVML simulator does all that tests may ask of it."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from pathlib import Path

import pynvml
import pytest

from tests.rig.nvml import (
    GIB,
    MIB,
    GpuProcess,
    NvmlBox,
    NvmlState,
    Xid,
    a100_mig,
    box,
    build,
    busy,
    gb10,
    h200,
    rtx4090,
    stand_in_uuid,
)
from tests.rig.nvml.fixtures import code_of, initialised

ROOT = Path(__file__).parents[2]

LOOK = """
import sys, pynvml as n
n.nvmlInit()
for line in sys.stdin:
    handles = [n.nvmlDeviceGetHandleByIndex(i) for i in range(n.nvmlDeviceGetCount())]
    print(len(handles), *(n.nvmlDeviceGetMemoryInfo(h, version=n.nvmlMemory_v2).used for h in handles), flush=True)
"""
"""A program that looks at the GPUs whenever it is given a line."""


class TestReadings:
    def test_a_program_and_this_process_see_the_same(self, nvml: NvmlBox) -> None:
        nvml.change_gpu(1, name="NVIDIA H100", processes=(GpuProcess(os.getpid(), 5 * GIB),))
        handle = initialised(1)
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
        assert memory.used == 5 * GIB
        assert memory.used + memory.free + memory.reserved == memory.total
        assert pynvml.nvmlDeviceGetMemoryInfo(handle).used == memory.used + memory.reserved
        assert pynvml.nvmlDeviceGetUUID(handle) == stand_in_uuid(1)
        program = (
            "import pynvml as n; n.nvmlInit(); h = n.nvmlDeviceGetHandleByIndex(1);"
            "print(n.nvmlDeviceGetName(h), n.nvmlDeviceGetUUID(h), n.nvmlDeviceGetComputeRunningProcesses(h)[0].pid)"
        )
        assert nvml.python(program) == f"NVIDIA H100 {stand_in_uuid(1)} {os.getpid()}"
        plain = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert plain.stdout.strip() == nvml.python(program), "the fixture's environment leads children to the box"

    def test_the_library_is_found_by_its_name_once_loaded(self, nvml: NvmlBox) -> None:
        by_name = ctypes.CDLL("libnvidia-ml.so.1")
        assert by_name._handle == ctypes.CDLL(str(nvml.library))._handle

    def test_state_changes_while_a_program_runs(self, nvml_box: NvmlBox) -> None:
        command = [sys.executable, "-c", LOOK]
        with subprocess.Popen(
            command, env=nvml_box.env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as program:
            assert program.stdin is not None
            assert program.stdout is not None
            for state, seen in (
                (box(2), "2 0 0"),
                (NvmlState(gpus=(h200(used_bytes=3 * GIB),)), f"1 {3 * GIB}"),
                (box(0), "0"),
                (box(16), "16" + " 0" * 16),
            ):
                nvml_box.write(state)
                program.stdin.write("\n")
                program.stdin.flush()
                assert program.stdout.readline().strip() == seen
            program.stdin.close()

    def test_a_reader_never_sees_half_a_state(self, nvml: NvmlBox) -> None:
        pynvml.nvmlInit()
        states = {1: box(1), 16: box(16)}
        stop = threading.Event()

        def rewrite() -> None:
            while not stop.is_set():
                for state in states.values():
                    state.write(nvml.path)

        writer = threading.Thread(target=rewrite)
        writer.start()
        try:
            assert {pynvml.nvmlDeviceGetCount() for _ in range(3000)} <= {1, 2, 16}
        finally:
            stop.set()
            writer.join()

    def test_readings_that_a_card_lacks(self, nvml: NvmlBox) -> None:
        nvml.write(NvmlState(gpus=(rtx4090(), h200(1, power_mw=None))))
        handle = initialised()
        assert pynvml.nvmlDeviceGetFanSpeed(handle) == 0
        assert pynvml.nvmlDeviceGetNumFans(handle) == 2
        for call in (pynvml.nvmlDeviceGetSerial, pynvml.nvmlDeviceGetMigMode, pynvml.nvmlDeviceGetRemappedRows):
            assert code_of(call, handle) == pynvml.NVML_ERROR_NOT_SUPPORTED
        assert code_of(pynvml.nvmlDeviceGetTotalEccErrors, handle, 0, 0) == pynvml.NVML_ERROR_NOT_SUPPORTED
        other = pynvml.nvmlDeviceGetHandleByIndex(1)
        assert code_of(pynvml.nvmlDeviceGetPowerUsage, other) == pynvml.NVML_ERROR_NOT_SUPPORTED
        assert pynvml.nvmlDeviceGetEnforcedPowerLimit(other) == 700000

    def test_unified_memory(self, nvml: NvmlBox) -> None:
        nvml.write(NvmlState(gpus=(gb10(processes=(GpuProcess(os.getpid(), 4 * GIB),)),)))
        handle = initialised()
        for version in (None, pynvml.nvmlMemory_v2):
            assert code_of(pynvml.nvmlDeviceGetMemoryInfo, handle, version) == pynvml.NVML_ERROR_NOT_SUPPORTED
        assert [p.usedGpuMemory for p in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)] == [4 * GIB]
        assert pynvml.nvmlDeviceGetCudaComputeCapability(handle) == (12, 1)

    def test_processes_of_every_kind(self, nvml: NvmlBox) -> None:
        listed = (
            GpuProcess(os.getpid(), None),
            GpuProcess(1, 30 * MIB, kind="G"),
            GpuProcess(os.getppid(), GIB, kind="CG", sm_percent=40),
        )
        nvml.change_gpu(0, processes=listed)
        handle = initialised()
        compute = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
        assert [(p.pid, p.usedGpuMemory) for p in compute] == [(os.getpid(), None), (os.getppid(), GIB)]
        assert [p.pid for p in pynvml.nvmlDeviceGetGraphicsRunningProcesses(handle)] == [1, os.getppid()]
        assert pynvml.nvmlDeviceGetMPSComputeRunningProcesses(handle) == []
        (sample,) = pynvml.nvmlDeviceGetProcessUtilization(handle, 0)
        assert (sample.pid, sample.smUtil) == (os.getppid(), 40)
        assert code_of(pynvml.nvmlDeviceGetProcessUtilization, handle, sample.timeStamp + 10**9) == 6
        assert pynvml.nvmlSystemGetProcessName(os.getpid()) == Path("/proc/self/cmdline").read_text().split("\0")[0]

    @pytest.mark.parametrize(
        "name", ["[red]x[/red]", "a\x1b[31m", "two\nlines", " spaces ", "back\\slash", "名前", "k = v"]
    )
    def test_hostile_names(self, nvml: NvmlBox, name: str) -> None:
        nvml.change_gpu(0, name=name)
        assert pynvml.nvmlDeviceGetName(initialised()) == name

    def test_a_name_that_is_no_utf8(self, nvml: NvmlBox) -> None:
        nvml.change_gpu(0, name="a\udcff")
        handle, text = initialised(), ctypes.create_string_buffer(96)
        assert pynvml.nvmlLib.nvmlDeviceGetName(handle, text, 96) == 0
        assert text.value == b"a\xff"

    def test_events(self, nvml: NvmlBox) -> None:
        nvml.write(xids=(Xid(1, 0, 31),))
        handle = initialised(1)
        events = pynvml.nvmlEventSetCreate()
        pynvml.nvmlDeviceRegisterEvents(handle, pynvml.nvmlEventTypeXidCriticalError, events)
        assert code_of(pynvml.nvmlEventSetWait, events, 10) == pynvml.NVML_ERROR_TIMEOUT
        nvml.write(xids=(Xid(1, 0, 31), Xid(2, 0, 43), Xid(3, 1, 79)))
        event = pynvml.nvmlEventSetWait(events, 5000)
        assert (event.eventType, event.eventData) == (pynvml.nvmlEventTypeXidCriticalError, 79)
        assert pynvml.nvmlDeviceGetIndex(event.device) == 1
        assert code_of(pynvml.nvmlEventSetWait, events, 10) == pynvml.NVML_ERROR_TIMEOUT
        pynvml.nvmlEventSetFree(events)


class TestMig:
    def test_instances(self, nvml: NvmlBox) -> None:
        nvml.write(NvmlState(gpus=(busy(a100_mig(), GpuProcess(os.getpid(), 2 * GIB, sm_percent=50)),)))
        parent = initialised()
        assert pynvml.nvmlDeviceGetMigMode(parent) == [1, 1]
        assert pynvml.nvmlDeviceGetMaxMigDeviceCount(parent) == 7
        parts = [pynvml.nvmlDeviceGetMigDeviceHandleByIndex(parent, index) for index in range(4)]
        assert code_of(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, parent, 4) == pynvml.NVML_ERROR_NOT_FOUND
        assert pynvml.nvmlDeviceGetName(parts[0]) == "NVIDIA A100-SXM4-40GB MIG 3g.20gb"
        assert [pynvml.nvmlDeviceGetGpuInstanceId(part) for part in parts] == [2, 3, 9, 10]
        used = [pynvml.nvmlDeviceGetMemoryInfo(part, version=pynvml.nvmlMemory_v2).used for part in (parent, *parts)]
        assert used == [2 * GIB, 2 * GIB, 0, 0, 0]
        pids = [[p.pid for p in pynvml.nvmlDeviceGetComputeRunningProcesses(part)] for part in (parent, *parts)]
        assert pids == [[os.getpid()], [os.getpid()], [], [], []]
        (process,) = pynvml.nvmlDeviceGetComputeRunningProcesses(parent)
        assert (process.gpuInstanceId, process.computeInstanceId) == (2, 0)

    def test_handles_and_what_is_not_said(self, nvml: NvmlBox) -> None:
        nvml.write(NvmlState(gpus=(a100_mig(),)))
        parent = initialised()
        part = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(parent, 2)
        uuid = pynvml.nvmlDeviceGetUUID(part)
        assert uuid.startswith("MIG-")
        assert pynvml.nvmlDeviceIsMigDeviceHandle(pynvml.nvmlDeviceGetHandleByUUID(uuid)).value == 1
        assert pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(part)) == stand_in_uuid(0)
        for handle in (parent, part):
            assert code_of(pynvml.nvmlDeviceGetUtilizationRates, handle) == pynvml.NVML_ERROR_NOT_SUPPORTED
        assert pynvml.nvmlDeviceGetTemperature(parent, 0) == 38
        assert pynvml.nvmlDeviceGetAttributes(part).multiprocessorCount == 14

    def test_an_instance_is_destroyed(self, nvml: NvmlBox) -> None:
        nvml.write(NvmlState(gpus=(a100_mig(),)))
        part = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(initialised(), 0)
        nvml.change_gpu(0, mig_instances=())
        assert code_of(pynvml.nvmlDeviceGetUUID, part) == pynvml.NVML_ERROR_GPU_IS_LOST


class TestBuilding:
    def test_two_builders_at_once(self, nvml_box: NvmlBox, tmp_path: Path) -> None:
        program = "from tests.rig.nvml import build; print(build())"
        environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
        started = [
            subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True)
            for _ in range(2)
        ]
        paths = {builder.communicate(timeout=120)[0].strip() for builder in started}
        assert [builder.returncode for builder in started] == [0, 0]
        (path,) = paths
        assert Path(path).is_file()
        assert [folder.name for folder in Path(path).parents[1].iterdir()] == [Path(path).parent.name]

    def test_without_a_compiler(self, nvml_box: NvmlBox, tmp_path: Path) -> None:
        program = "from tests.rig.nvml import build; build()"
        environment = {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
        ended = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
        )
        assert "NoCompiler: The NVML simulator needs gcc to be built." in ended.stderr

    def test_the_command(self, nvml_box: NvmlBox) -> None:
        program = (
            "import pynvml as n; n.nvmlInit(); h = n.nvmlDeviceGetHandleByIndex(1)\n"
            "print(n.nvmlDeviceGetCount(), n.nvmlDeviceGetUtilizationRates(h).gpu > 50)"
        )
        command = [sys.executable, "-m", "tests.rig.nvml"]
        work = [*command, "--gpus", "3", "--busy", "--", sys.executable, "-c", program]
        ended = subprocess.run(work, cwd=ROOT, capture_output=True, text=True, check=True)
        assert ended.stdout.strip() == "3 True"
        nvml_box.write(box(5))
        given = [*command, "--state", str(nvml_box.path), "--", sys.executable, "-c", "raise SystemExit(7)"]
        assert subprocess.run(given, cwd=ROOT, check=False).returncode == 7

    def test_omitting_gives_another_library(self, nvml_box: NvmlBox) -> None:
        assert build(omit=["nvmlDeviceGetName"]) != build() == nvml_box.library
