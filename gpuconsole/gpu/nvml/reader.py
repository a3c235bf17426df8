"""One snapshot of all GPUs: starts the library when needed, and keeps what is slow or seldom changes."""

from __future__ import annotations

import os
import time

from gpuconsole.core.records import replace
from gpuconsole.gpu.model import Gpu, GpuSnapshot, GpuStatus
from gpuconsole.gpu.nvml import codes
from gpuconsole.gpu.nvml.building import IDENTITY, Kept, answering, breakdown, failed, loss, sleeping
from gpuconsole.gpu.nvml.bus import on_bus, read_line
from gpuconsole.gpu.nvml.codes import Problem
from gpuconsole.gpu.nvml.gateway import Failure, Gateway
from gpuconsole.gpu.nvml.mig import outside, take_migs
from gpuconsole.gpu.nvml.processes import take_processes
from gpuconsole.gpu.nvml.readings import take_frequent, take_seldom
from gpuconsole.gpu.nvml.sheet import Reading, Sheet, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Reader:
    """Takes snapshots, one at a time.

    Args:
        refresh_s: How old the readings that are slow or seldom change may grow.
        sysfs: Where the kernel shows its devices.
        direct: Ask through the binding of our own instead of nvidia-ml-py.
    """

    def __init__(
        self, *, refresh_s: float = 30.0, sysfs: str | os.PathLike[str] = "/sys", direct: bool = False
    ) -> None:
        self._refresh_s = refresh_s
        self._sysfs = sysfs
        self._direct = direct
        self._gateway: Gateway | None = None
        self._started_at = 0.0
        self._versions: dict[str, str] = {}
        self._missing_versions: dict[str, str] = {}
        self._first_driver: str | None = None
        self._kept: dict[str, Kept] = {}
        """By UUID, or by ``#index`` where the driver gives none."""
        self._keys: dict[int, str] = {}
        """Index → key in ``_kept`` of who last answered there, so that a lost GPU keeps its name."""
        self._count = 0

    def read(self, *, details: bool = False) -> GpuSnapshot:
        """Read every GPU now.

        Args:
            details: Take all readings anew.
        """
        gateway = self._started()
        if isinstance(gateway, Problem):
            return _without_gpus(gateway)
        count = gateway.ask("nvmlDeviceGetCount")
        if isinstance(count, Failure):
            # The driver went away beneath us (unloaded, exchanged); it may be back already.
            self.close()
            gateway = self._started()
            if isinstance(gateway, Problem):
                return _without_gpus(gateway)
            count = gateway.ask("nvmlDeviceGetCount")
            if isinstance(count, Failure):
                self.close()
                return _without_gpus(codes.start_problem(count.code, worked=True))
        if count != self._count:
            self._keys.clear()  # the indices mean others now
            self._count = count
        gpus = tuple(self._gpu(gateway, index, details=details) for index in range(count))
        self._start_anew_when_all_fail(gpus)
        problem = None if gpus else codes.NO_GPU
        return GpuSnapshot(
            taken_at=time.time(),
            gpus=gpus,
            driver_version=self._versions.get("driver_version"),
            cuda_version=self._versions.get("cuda_version"),
            nvml_version=self._versions.get("nvml_version"),
            problem=problem.message if problem else None,
            hint=problem.hint if problem else None,
            reason=problem.reason if problem else None,
            unknown=self._missing_versions,
        )

    def close(self) -> None:
        """Let the driver go; the next look starts anew."""
        if self._gateway is not None:
            self._gateway.stop()
            self._gateway = None

    def successor(self) -> Reader:
        """A reader that starts anew, and knows which driver this process loaded: the binding never unloads it."""
        successor = Reader(refresh_s=self._refresh_s, sysfs=self._sysfs, direct=self._direct)
        successor._first_driver = self._first_driver
        return successor

    def _started(self) -> Gateway | Problem:
        if self._gateway is not None:
            return self._gateway
        gateway = Gateway.direct() if self._direct else Gateway.open()
        if isinstance(gateway, Problem):
            return gateway
        failure = gateway.start()
        if failure is not None:
            return self._start_problem(failure)
        self._take_versions(gateway)
        driver = self._versions.get("driver_version")
        self._first_driver = self._first_driver or driver
        if driver is not None and driver != self._first_driver:
            # The library in this process is of the first driver; its structures need not fit the second.
            gateway.stop()
            return codes.DRIVER_CHANGED
        self._gateway = gateway
        self._started_at = time.monotonic()
        return gateway

    def _start_problem(self, failure: Failure) -> Problem:
        problem = codes.start_problem(failure.code, worked=self._first_driver is not None)
        if failure.code == codes.LIBRARY_NOT_FOUND and on_bus(self._sysfs) is False:
            return replace(problem, hint=codes.NO_GPU_EITHER)
        return problem

    def _take_versions(self, gateway: Gateway) -> None:
        sheet = Sheet(gateway, None)
        for reading in _VERSIONS:
            sheet.take(reading)
        self._versions, self._missing_versions = sheet.values, sheet.unknown

    def _start_anew_when_all_fail(self, gpus: tuple[Gpu, ...]) -> None:
        """A GPU that was reset answers only to a library started after it.

        While another GPU still answers it is not done: a start can fail where what is open goes on working.
        """
        none_left = gpus and all(gpu.status is not GpuStatus.OK for gpu in gpus)
        if none_left and time.monotonic() - self._started_at > self._refresh_s:
            self.close()

    def _gpu(self, gateway: Gateway, index: int, *, details: bool) -> Gpu:
        handle = gateway.ask("nvmlDeviceGetHandleByIndex", index)
        if isinstance(handle, Failure):
            return self._failed(index, handle)
        sheet = Sheet(gateway, handle)
        sheet.take(_UUID)
        lost = loss(sheet)
        if lost is not None:
            return self._failed(index, lost)
        key = self._keys[index] = sheet.values.get("uuid") or self._keys.get(index, f"#{index}")
        if not details and self._asleep(key):
            return sleeping(index, _uuid(key), self._kept[key])
        kept = self._seldom(gateway, handle, key, details=details)
        mig = kept.values.get("mig_enabled") is True
        take_frequent(sheet, gateway, name=kept.values.get("name"), mig=mig)
        migs = take_migs(sheet, gateway) if mig else ()
        entries = take_processes(sheet, total_bytes=sheet.values.get("memory_total_bytes"))
        failure = breakdown(sheet)
        if failure is not None:
            return self._failed(index, failure)
        sheet.values["migs"] = migs
        sheet.values["processes"] = None if entries is None else outside(entries, migs)
        return answering(index, kept, sheet.values, sheet.unknown, notes=sheet.notes)

    def _seldom(self, gateway: Gateway, handle: object, key: str, *, details: bool) -> Kept:
        kept = self._kept.get(key)
        now = time.monotonic()
        if kept is None or details or now - kept.taken_at > self._refresh_s:
            sheet = Sheet(gateway, handle)
            take_seldom(sheet)
            if breakdown(sheet):  # not worth keeping; what was read in better days is
                return kept or Kept(sheet.values, sheet.unknown, now)
            if kept is not None:  # who a GPU is does not change when it can no longer say so
                identity = {field: kept.values[field] for field in IDENTITY if field in kept.values}
                sheet.values = identity | sheet.values
                sheet.unknown = {f: reason for f, reason in sheet.unknown.items() if f not in sheet.values}
            kept = self._kept[key] = Kept(sheet.values, sheet.unknown, now)
        return kept

    def _asleep(self, key: str) -> bool:
        """Whether the kernel says that it has powered the GPU down; asking NVML would power it up."""
        kept = self._kept.get(key)
        bus_id: str | None = kept.values.get("pci_bus_id") if kept else None
        if bus_id is None:
            return False
        return read_line(self._sysfs, bus_id[-12:].lower(), "power/runtime_status") == "suspended"

    def _failed(self, index: int, failure: Failure) -> Gpu:
        key = self._keys.get(index, f"#{index}")
        return failed(index, _uuid(key), self._kept.get(key), failure)


def _uuid(key: str) -> str | None:
    return None if key.startswith("#") else key


def _cuda(number: Any) -> str:
    """``13.0`` of 13000."""
    return f"{int(number) // 1000}.{int(number) % 1000 // 10}"


_UUID = Reading("uuid", "nvmlDeviceGetUUID", (), text)
_VERSIONS = (
    Reading("driver_version", "nvmlSystemGetDriverVersion", (), text),
    Reading("cuda_version", "nvmlSystemGetCudaDriverVersion_v2", (), _cuda, instead="nvmlSystemGetCudaDriverVersion"),
    Reading("nvml_version", "nvmlSystemGetNVMLVersion", (), text),
)


def _without_gpus(problem: Problem) -> GpuSnapshot:
    return GpuSnapshot(taken_at=time.time(), problem=problem.message, hint=problem.hint, reason=problem.reason)
