"""The NVML simulator answers as the recorded H200 did, wherever that can be compared."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.rig.nvml import GpuProcess, NvmlBox, NvmlState, box, busy, h200

ROOT = Path(__file__).parents[2]
RECORDED: dict[str, Any] = json.loads((ROOT / "tests/fixtures/nvml/h200.json").read_text(encoding="utf-8"))


class TestAgainstTheRecording:
    """A box in the shape of the recorded one, asked by the same recorder."""

    VARYING = (
        # Times of day.
        "referenceTime", "timeStamp",
        # Two ways to the same clock that a real card reads a moment apart, while it is falling asleep.
        "nvmlDeviceGetClock(graphics current)", "nvmlDeviceGetClock(sm current)", "nvmlDeviceGetClock(video current)",
        # Readings that moved between one call and the next: power, energy, time spent throttled.
        "/samples/power", "fields/185", "fields/186", "fields/191", "fields/83", "fields/78", "fields/80", "fields/81",
        # PCIe error and traffic counters of that one machine, which the simulator keeps at 0.
        "fields/169", "fields/175", "fields/176", "fields/177", "fields/197", "fields/198",
    )  # fmt: skip
    """Where a value may differ at rest, though never a code, a field or a type."""

    EXACT = ("code", "return", "count", "size code", "cut", "same", "version", "value_type")
    """Numbers that must agree even where readings differ."""

    @pytest.fixture
    def recorder(self, nvml_box: NvmlBox) -> Any:
        def record(state: str) -> dict[str, Any]:
            command = [sys.executable, str(ROOT / "tests/gpu/record_nvml.py"), "--only", state]
            ended = subprocess.run(command, env=nvml_box.env(), capture_output=True, timeout=120, check=False)
            assert ended.returncode == 0, ended.stderr.decode()
            found: dict[str, Any] = json.loads(ended.stdout)
            return found

        return record

    def differences(self, real: Any, simulated: Any, where: str = "") -> list[str]:
        """Every place where code, field or type differ, or a value that must not."""
        if isinstance(real, dict) and isinstance(simulated, dict):
            if list(real) != list(simulated):
                return [f"{where}: {sorted(set(real) ^ set(simulated)) or 'order of fields'}"]
            return [d for key in real for d in self.differences(real[key], simulated[key], f"{where}/{key}")]
        if isinstance(real, list) and isinstance(simulated, list) and len(real) == len(simulated):
            pairs = enumerate(zip(real, simulated, strict=True))
            return [d for at, (one, other) in pairs for d in self.differences(one, other, f"{where}/{at}")]
        fits = type(real) is type(simulated) and (real == simulated or self.may_vary(where))
        return [] if fits else [f"{where}: {real!r} recorded, {simulated!r} simulated"]

    def may_vary(self, where: str) -> bool:
        *_, above, last = where.split("/")
        if last in self.EXACT or (above.isdigit() and "/fields/" in where and last in "01"):
            return False
        return any(place in where for place in self.varying)

    varying: tuple[str, ...] = VARYING

    def test_at_rest(self, nvml_box: NvmlBox, recorder: Any) -> None:
        nvml_box.write(box(1))
        found = recorder("idle")
        for part in ("before and after init", "error texts", "python types", "functions"):
            assert self.differences(RECORDED[part], found[part]) == []
        assert self.differences(RECORDED["states"]["idle"], found["states"]["idle"]) == []
        assert sorted(RECORDED["microseconds"]) == sorted(found["microseconds"])

    def test_at_work(self, nvml_box: NvmlBox, recorder: Any) -> None:
        self.varying = ("",)  # of readings only the form; codes, counts, versions, fields and types as before
        first = GpuProcess(os.getpid(), 4366270464, sm_percent=97, memory_percent=28)
        second = GpuProcess(os.getppid(), 1753219072)
        nvml_box.write(NvmlState(gpus=(busy(h200(), first, second),)))
        found = recorder("busy")["states"]["busy"]
        assert self.differences(RECORDED["states"]["busy"], found) == []
        lists = {
            state: states["processes"] for state, states in (("real", RECORDED["states"]["busy"]), ("ours", found))
        }
        held = [
            [
                process["usedGpuMemory"]
                for process in listed["nvmlDeviceGetComputeRunningProcesses_v3"]["room for 64"]["processes"]
            ]
            for listed in lists.values()
        ]
        assert held[0] == held[1]

    def test_the_recorder_says_when_there_is_no_driver(self, tmp_path: Path) -> None:
        (tmp_path / "libnvidia-ml.so.1").write_bytes(b"")
        command = [sys.executable, str(ROOT / "tests/gpu/record_nvml.py")]
        ended = subprocess.run(
            command, env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}, capture_output=True, text=True, check=False
        )
        assert (ended.returncode, ended.stdout) == (3, "")
        assert ended.stderr.count("\n") == 1
