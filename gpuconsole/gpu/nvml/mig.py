"""The MIG instances of a GPU, each with its own memory and processes."""

from __future__ import annotations

from gpuconsole.gpu.model import GpuProcess, Mig
from gpuconsole.gpu.nvml.codes import INVALID_ARGUMENT, NOT_FOUND
from gpuconsole.gpu.nvml.gateway import Failure, Gateway
from gpuconsole.gpu.nvml.processes import Entry, take_processes
from gpuconsole.gpu.nvml.readings import take_memory
from gpuconsole.gpu.nvml.sheet import Reading, Sheet, between, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_NUMBER = between(0, 1 << 16)
_IDENTITY = (
    Reading("uuid", "nvmlDeviceGetUUID", (), text),
    Reading("name", "nvmlDeviceGetName", (), text),
    Reading("gpu_instance", "nvmlDeviceGetGpuInstanceId", (), _NUMBER),
    Reading("compute_instance", "nvmlDeviceGetComputeInstanceId", (), _NUMBER),
)
_NO_INSTANCE = (NOT_FOUND, INVALID_ARGUMENT)
"""Codes that say that there is no instance at a place."""
_FIELDS = (
    "uuid", "name", "gpu_instance", "compute_instance", "memory_total_bytes", "memory_used_bytes", "memory_free_bytes",
    "memory_reserved_bytes", "processes",
)  # fmt: skip


def take_migs(parent: Sheet, gateway: Gateway) -> tuple[Mig, ...]:
    """Read every instance. Positions without one are passed over; NVML leaves gaps."""
    places = parent.ask("nvmlDeviceGetMaxMigDeviceCount")
    if isinstance(places, Failure):
        parent.lack(places.reason, "migs")
        return ()
    migs = []
    for place in range(places):
        handle = gateway.ask("nvmlDeviceGetMigDeviceHandleByIndex", parent.handle, place)
        if not isinstance(handle, Failure):
            migs.append(_mig(Sheet(gateway, handle), gateway))
        elif handle.code not in _NO_INSTANCE:
            migs.append(_unreadable(handle))
    return tuple(migs)


def _unreadable(failure: Failure) -> Mig:
    """An instance of which nothing can be told but that it is there; without it the others would be miscounted."""
    return Mig(None, None, None, None, None, None, processes=None, unknown=dict.fromkeys(_FIELDS, failure.reason))


def _mig(sheet: Sheet, gateway: Gateway) -> Mig:
    for reading in _IDENTITY:
        sheet.take(reading)
    take_memory(sheet, gateway)
    total = sheet.values.get("memory_total_bytes")
    uuid: str | None = sheet.values.get("uuid")
    entries = take_processes(sheet, total_bytes=total)
    return Mig(
        uuid=uuid,
        name=sheet.values.get("name"),
        gpu_instance=sheet.values.get("gpu_instance"),
        compute_instance=sheet.values.get("compute_instance"),
        memory_total_bytes=total,
        memory_used_bytes=sheet.values.get("memory_used_bytes"),
        memory_free_bytes=sheet.values.get("memory_free_bytes"),
        memory_reserved_bytes=sheet.values.get("memory_reserved_bytes"),
        processes=None if entries is None else tuple(entry.process(uuid) for entry in entries),
        unknown={field: reason for field, reason in sheet.unknown.items() if field in _FIELDS},
    )


def outside(entries: Sequence[Entry], migs: Sequence[Mig]) -> tuple[GpuProcess, ...]:
    """What the parent lists beside its instances' processes.

    Asked with enough rights, the parent lists the processes of all its instances too; each must count once. One that
    no instance's own list has keeps the instance its numbers name.
    """
    inside = {process.pid for mig in migs for process in mig.processes or ()}
    uuids = {(mig.gpu_instance, mig.compute_instance): mig.uuid for mig in migs}
    return tuple(
        # An entry without a number runs outside of MIG, not in the instance whose number is unknown.
        entry.process(None if entry.gpu_instance is None else uuids.get((entry.gpu_instance, entry.compute_instance)))
        for entry in entries
        if entry.pid not in inside
    )
