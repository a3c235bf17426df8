"""A report of benchmarks joined with what the host saw meanwhile: the run as it is graded and kept."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from gpuconsole.gpu.model import Gpu, GpuSnapshot, Mig
from gpuconsole.probes.benchrecords import BenchGpu, BenchMachine, BenchRecord, BenchRun, DeviceUse
from gpuconsole.probes.benchresults import BenchReport, BenchResult
from gpuconsole.probes.records import AskedGpus, Environment, SeenGpu
from gpuconsole.services import benchhost

if TYPE_CHECKING:
    from gpuconsole.services.benchsampling import HostSamples

_LINK = "bench.h2d"
_TIMES = ("µs", "us", "ms", "s")
_PLAIN = tuple(field.name for field in fields(BenchResult) if field.name in {each.name for each in fields(BenchRecord)})


def new_id() -> str:
    """An id for a run, short enough to be typed."""
    return secrets.token_hex(4)


def record_of(result: BenchResult) -> BenchRecord:
    """A result as it was told, not graded yet."""
    told = {name: getattr(result, name) for name in _PLAIN}
    return BenchRecord(**told, better="lower" if result.unit in _TIMES else "higher")


def assemble(
    report: BenchReport,
    samples: HostSamples | None,
    *,
    asked: AskedGpus,
    taken_at: float,
    subject: str,
    subject_id: str,
    only: tuple[str, ...] = (),
    elsewhere: str = "",
) -> BenchRun:
    """The run, each result with how its GPUs were meanwhile.

    Args:
        report: What the payload told.
        samples: What the host saw; None when the GPUs are not this machine's.
        asked: The GPUs that were given, as the host knows it.
        taken_at: Seconds since the epoch when it began.
        subject: The container's or image's name, or ``this machine``.
        subject_id: Its id.
        only: The benchmarks asked for.
        elsewhere: Why there are no samples.
    """
    environment = replace(report.environment, gpus=_seen(report, asked))
    uuids = {gpu.position: _uuid(gpu, environment, asked) for gpu in environment.gpus}
    records = tuple(_with_use(record_of(result), samples, uuids) for result in report.benchmarks)
    unknown = elsewhere if samples is None else samples.problem or ""
    snapshot = GpuSnapshot(0.0) if samples is None else samples.snapshot

    def link(uuid: str | None) -> tuple[int | None, int | None]:
        """As it was while the link was measured."""
        times = [(each.began, each.ended) for each in records if each.id == _LINK and each.began and each.ended]
        if samples is None or not times:
            return None, None
        return samples.link(uuid, began=min(began for began, _ in times), ended=max(ended for _, ended in times))

    machine = BenchMachine(
        cpu=None if elsewhere else benchhost.cpu_model(),
        governor=None if elsewhere else benchhost.governor(),
        virtual=None if elsewhere else benchhost.is_virtual(),
        driver=snapshot.driver_version or environment.driver,
        gpus=tuple(_gpu(gpu, uuids[gpu.position], snapshot, link) for gpu in environment.gpus),
        unknown=unknown if environment.gpus else "",
    )
    return BenchRun(
        run=new_id(),
        mode=report.mode,
        end=report.end,
        environment=environment,
        machine=machine,
        benchmarks=records,
        obstacle=report.obstacle,
        notes=report.notes,
        only=only,
        seconds=report.seconds,
        taken_at=taken_at,
        subject=subject,
        subject_id=subject_id,
    )


def _seen(report: BenchReport, asked: AskedGpus) -> tuple[SeenGpu, ...]:
    """The GPUs as torch saw them; where only benchmarks ran that do not tell, those given, if each ran on all."""
    if report.environment.gpus or not asked.gpus:
        return report.environment.gpus
    positions = set(range(len(asked.gpus)))
    if not all(set(result.gpu) == positions for result in report.benchmarks if result.gpu):
        return ()
    return tuple(
        SeenGpu(position, gpu.uuid or None, gpu.name, memory_total_bytes=gpu.memory_total_bytes)
        for position, gpu in enumerate(asked.gpus)
    )


def _uuid(gpu: SeenGpu, environment: Environment, asked: AskedGpus) -> str | None:
    """Which of the host's GPUs it is; an old torch does not tell, and then it is clear only where there is one."""
    if gpu.uuid is not None:
        return gpu.uuid if gpu.uuid.startswith(("GPU-", "MIG-")) else f"GPU-{gpu.uuid}"
    given = asked.gpus or ()
    return given[0].uuid or None if len(given) == 1 and len(environment.gpus) == 1 else None


def _with_use(record: BenchRecord, samples: HostSamples | None, uuids: dict[int, str | None]) -> BenchRecord:
    if record.device != "cuda" or not record.gpu or not record.measured or samples is None:
        return record
    contended: bool | None = None
    by: tuple[str, ...] = ()
    mine = [uuids.get(position) for position in record.gpu]
    known = [uuid for uuid in mine if uuid is not None]
    if known:
        contended, by = samples.contention(known, began=record.began, ended=record.ended)
        if len(known) < len(mine) and not contended:
            contended = None
    uses: tuple[DeviceUse, ...] = tuple(
        samples.use(uuid, position, began=record.began, ended=record.ended)
        for position, uuid in zip(record.gpu, mine, strict=True)
    )
    told = {field.name: getattr(record, field.name) for field in fields(record)}
    return BenchRecord(**(told | {"dev": uses, "contended": contended, "contended_by": by}))


def _gpu(
    seen: SeenGpu, uuid: str | None, snapshot: GpuSnapshot, link: Callable[[str | None], tuple[int | None, int | None]]
) -> BenchGpu:
    found, mig = _found(uuid, snapshot)
    if found is None:
        part = True if uuid is not None and uuid.startswith("MIG-") else None
        return BenchGpu(
            seen.position, uuid, seen.name, seen.compute_capability, seen.multiprocessors, seen.memory_total_bytes,
            mig=part,
        )  # fmt: skip
    generation, width = link(found.uuid)
    return BenchGpu(
        seen.position,
        uuid,
        seen.name or found.name,
        seen.compute_capability,
        seen.multiprocessors,
        seen.memory_total_bytes if mig is None else mig.memory_total_bytes,
        power_limit_w=found.power_limit_w,
        power_default_w=found.power_default_w,
        max_sm_clock_mhz=found.max_sm_clock_mhz,
        max_memory_clock_mhz=found.max_memory_clock_mhz,
        ecc=found.ecc.enabled,
        mig=mig is not None or bool(found.mig_enabled),
        pcie_generation=generation,
        pcie_width=width,
        pcie_max_generation=found.pcie.max_generation,
        pcie_max_width=found.pcie.max_width,
        numa_node=benchhost.numa_node(found.pci_bus_id),
    )


def _found(uuid: str | None, snapshot: GpuSnapshot) -> tuple[Gpu | None, Mig | None]:
    for gpu in snapshot.gpus if uuid else ():
        if gpu.uuid == uuid:
            return gpu, None
        for mig in gpu.migs:
            if mig.uuid == uuid:
                return gpu, mig
    return None, None
