"""The GPUs a container was given, as its check is told of them: what the host knows, so that both can be compared."""

from __future__ import annotations

from gpuconsole.core.text import shorten, size
from gpuconsole.engine.model import Container
from gpuconsole.gpu.model import Gpu
from gpuconsole.host.claims import ClaimedGpu, ClaimedGpus, resolve_claims
from gpuconsole.host.model import GpuView, Holder, HostView
from gpuconsole.launch import labels
from gpuconsole.probes.records import AskedGpu, AskedGpus
from gpuconsole.services.overview import overview
from gpuconsole.services.session import Session

ELSEWHERE = "the engine is not on this machine"
_MOST_HOLDERS = 5


def asked_of_machine(session: Session) -> AskedGpus:
    """All GPUs of this machine."""
    return AskedGpus.of(tuple(_asked_gpu(view, None) for view in overview(session).gpus if view.gpu.uuid))


def asked_of(session: Session, container: Container) -> AskedGpus:
    """The GPUs a container was given, with what the host knows of them now."""
    if not session.engine.info().local:
        return _asked(container, None, unknown=ELSEWHERE)
    host = overview(session, names={container.id: container.name})
    if host.snapshot.problem is not None:
        return _asked(container, None, unknown=host.snapshot.problem)
    return _asked(container, host, unknown="")


def _asked(container: Container, host: HostView | None, *, unknown: str) -> AskedGpus:
    gpus = None if host is None else [view.gpu for view in host.gpus]
    claimed = resolve_claims(container.gpu_claims, gpus, unknown=unknown or "this machine's GPUs are unknown")
    if claimed.gpus is None or not all(gpu.mig_uuid or gpu.uuid for gpu in claimed.gpus):
        return _by_label(container, claimed)
    return AskedGpus.of(tuple(_described(gpu, host) for gpu in claimed.gpus))


def _by_label(container: Container, claimed: ClaimedGpus) -> AskedGpus:
    """What our label says, for a container whose configuration does not say it in a way this machine understands."""
    label = container.labels.get(labels.GPUS, "")
    if label == labels.NO_GPUS:
        return AskedGpus.of(())
    if label:
        return AskedGpus.of(tuple(AskedGpu(uuid=uuid.strip()) for uuid in label.split(",")))
    return AskedGpus.unknown(claimed.reason or "its GPUs cannot be told", count=claimed.count)


def _described(claimed: ClaimedGpu, host: HostView | None) -> AskedGpu:
    uuid = claimed.mig_uuid or claimed.uuid or ""
    for view in host.gpus if host is not None else ():
        if view.gpu.uuid == claimed.uuid:
            return _asked_gpu(view, claimed.mig_uuid)
    return AskedGpu(uuid=uuid, index=claimed.index)


def _asked_gpu(view: GpuView, mig_uuid: str | None) -> AskedGpu:
    gpu = view.gpu
    total, used = _memory(gpu, mig_uuid)
    holders = [holder for holder in view.holders if mig_uuid is None or holder.mig_uuid == mig_uuid]
    holders.sort(key=lambda holder: -(holder.memory_bytes or 0))
    return AskedGpu(
        uuid=mig_uuid or gpu.uuid or "",
        index=gpu.index,
        name=gpu.name,
        minor=gpu.minor,
        memory_total_bytes=total,
        memory_used_bytes=used,
        holders=tuple(
            _holder(holder) for holder in sorted(holders, key=lambda one: -(one.memory_bytes or 0))[:_MOST_HOLDERS]
        ),
    )


def _memory(gpu: Gpu, mig_uuid: str | None) -> tuple[int | None, int | None]:
    for mig in gpu.migs:
        if mig.uuid is not None and mig.uuid == mig_uuid:
            return mig.memory_total_bytes, mig.memory_used_bytes
    return gpu.memory_total_bytes, gpu.memory_used_bytes


def _holder(holder: Holder) -> str:
    who = holder.command or f"process {holder.pid}"
    amount = "" if holder.memory_bytes is None else f" ({size(holder.memory_bytes)})"
    return f"{shorten(who, 40)}{amount}"
