"""Checking a container, an image or this machine: what each needs before and after the checks themselves."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from gpuconsole.core.errors import Conflict, ConsoleError, NotFound
from gpuconsole.core.text import shorten, size
from gpuconsole.engine.model import Container
from gpuconsole.engine.protocol import Engine
from gpuconsole.gpu.model import Gpu
from gpuconsole.host.claims import ClaimedGpu, ClaimedGpus, resolve_claims
from gpuconsole.host.model import GpuView, Holder, HostView
from gpuconsole.launch import labels
from gpuconsole.launch.spec import LaunchSpec
from gpuconsole.probes.records import AskedGpu, AskedGpus, CheckReport, Record, RunEnd
from gpuconsole.probes.runner import DEADLINE_S, run_check, run_local
from gpuconsole.services.cancelling import Cancellation, Cancelled
from gpuconsole.services.launching import LaunchStep, OnStep, launch
from gpuconsole.services.overview import overview
from gpuconsole.services.session import Session

_SPARE_S = 120
"""A check's own container ends by itself this long after the check must have, should we be killed."""
_REMOVAL_S = 10.0
_ELSEWHERE = "the engine is not on this machine"

OnRecord = Callable[[Record], None]


def check_container(
    session: Session,
    name: str,
    on_record: OnRecord,
    *,
    cancel: Cancellation | None = None,
    deadline_s: float = DEADLINE_S,
) -> CheckReport:
    """Check a running container.

    Raises:
        NotFound: There is none of this name.
        Conflict: It does not run.
        Cancelled: ``cancel`` was used; the payload was ended inside.
        EngineUnavailable: The engine does not answer.
    """
    container = session.engine.container(name)
    with _event_of(cancel) as stop:
        report = run_check(
            session.engine,
            container,
            asked_gpus=asked_of(session, container),
            on_record=on_record,
            cancel=stop,
            deadline_s=deadline_s,
        )
    return _unless_cancelled(report, f"container {container.name}")


def check_image(
    session: Session,
    spec: LaunchSpec,
    on_record: OnRecord,
    *,
    on_step: OnStep,
    cancel: Cancellation | None = None,
    deadline_s: float = DEADLINE_S,
) -> CheckReport:
    """Check an image in a fresh container, which is removed whatever happens.

    Args:
        session: Whose GPUs and engine.
        spec: The image and its GPUs; name, command and entrypoint are ours.
        on_record: Called at each step and result of the checks.
        on_step: Called at each step of the launch before them.
        cancel: Ends it at any moment.
        deadline_s: For the checks alone.

    Raises:
        NotFound: There is no such image.
        GpuNotFound: Its GPUs do not exist, or cannot be given.
        Cancelled: ``cancel`` was used; container and payload are gone.
        ConsoleError: The engine refused or failed.
    """
    cancel = cancel or Cancellation()
    container = _idle_container(session, spec, on_step, cancel=cancel, lifetime_s=int(deadline_s) + _SPARE_S)
    try:
        with _event_of(cancel) as stop:
            report = run_check(
                session.engine,
                container,
                asked_gpus=asked_of(session, container),
                on_record=on_record,
                cancel=stop,
                deadline_s=deadline_s,
                ephemeral=True,
            )
    finally:
        _remove(session.engine, container)
    report = replace(report, environment=replace(report.environment, where=f"image {spec.image}"))
    return _unless_cancelled(report, f"image {spec.image}")


def check_local(
    session: Session, on_record: OnRecord, *, cancel: Cancellation | None = None, deadline_s: float = DEADLINE_S
) -> CheckReport:
    """Check this machine's own Python.

    Raises:
        Cancelled: ``cancel`` was used.
    """
    host = overview(session)
    asked = AskedGpus.of(tuple(_asked_gpu(view, None) for view in host.gpus if view.gpu.uuid))
    with _event_of(cancel) as stop:
        report = run_local(asked_gpus=asked, on_record=on_record, cancel=stop, deadline_s=deadline_s)
    return _unless_cancelled(report, "this machine")


def _unless_cancelled(report: CheckReport, where: str) -> CheckReport:
    if report.end is RunEnd.CANCELLED:
        raise Cancelled(f"The check of {where} was cancelled: it was ended there, and nothing of it is left.")
    return report


class _Stop:
    """The wish to stop, as the event that a run waits for."""

    def __init__(self) -> None:
        self.event = threading.Event()

    def close(self) -> None:
        """Pass the wish on."""
        self.event.set()


@contextmanager
def _event_of(cancel: Cancellation | None) -> Iterator[threading.Event]:
    stop = _Stop()
    if cancel is None:
        yield stop.event
        return
    with cancel.closing(stop):
        yield stop.event


def _idle_container(
    session: Session, spec: LaunchSpec, on_step: OnStep, *, cancel: Cancellation, lifetime_s: int
) -> Container:
    """A container of the image that does nothing for a while; by whatever program the image has for that."""
    wait = f"import time; time.sleep({lifetime_s})"
    keepers: Sequence[tuple[str, ...]] = (
        ("sleep", str(lifetime_s)),
        ("python3", "-c", wait),
        ("python", "-c", wait),
        ("/opt/conda/bin/python", "-c", wait),
    )
    for program, *words in keepers:
        idle = replace(
            spec,
            name=f"gpuconsole-check-{secrets.token_hex(4)}",
            entrypoint=(program,),
            command=tuple(words),
            auto_remove=True,
            init=False,
            interactive=False,
        )
        try:
            launched = launch(session, idle, on_step if program == keepers[0][0] else _silent, cancel=cancel)
        except NotFound as error:
            if f"program {program}" not in error.message:
                raise
            continue
        if launched.container is not None and launched.ending is None:
            return launched.container
        raise ConsoleError(
            f"A container of {spec.image} does not stay up to be checked.",
            hint="Launch it with a command that goes on, then check it by its name.",
        )
    raise NotFound(
        f"The image {spec.image} has no Python, so there is nothing to check.",
        hint="Take an image with PyTorch; 'gpuconsole images' shows what is inside.",
    )


def _silent(_: LaunchStep) -> None:
    """What a further try would say has been said by the first."""


def _remove(engine: Engine, container: Container) -> None:
    """Remove the check's container, and wait until it is gone."""
    deadline = time.monotonic() + _REMOVAL_S
    while True:
        try:
            engine.remove(container.id, force=True, volumes=True)
        except NotFound:
            return
        except Conflict:
            pass  # its removal on its own end is under way
        if time.monotonic() >= deadline:
            raise ConsoleError(
                f"The container {container.name} of the check is left behind: the engine does not remove it.",
                hint=f"Remove it by 'gpuconsole rm --force {container.name}'.",
            )
        time.sleep(0.1)


def asked_of(session: Session, container: Container) -> AskedGpus:
    """The GPUs a container was given, with what the host knows of them now."""
    if not session.engine.info().local:
        return _asked(container, None, unknown=_ELSEWHERE)
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
    return AskedGpu(
        uuid=mig_uuid or gpu.uuid or "",
        index=gpu.index,
        name=gpu.name,
        minor=gpu.minor,
        memory_total_bytes=total,
        memory_used_bytes=used,
        holders=tuple(_holder(holder) for holder in sorted(holders, key=lambda one: -(one.memory_bytes or 0))[:5]),
    )


def _memory(gpu: Gpu, mig_uuid: str | None) -> tuple[int | None, int | None]:
    for mig in gpu.migs:
        if mig.uuid == mig_uuid:
            return mig.memory_total_bytes, mig.memory_used_bytes
    return gpu.memory_total_bytes, gpu.memory_used_bytes


def _holder(holder: Holder) -> str:
    who = holder.command or f"process {holder.pid}"
    amount = "" if holder.memory_bytes is None else f" ({size(holder.memory_bytes)})"
    return f"{shorten(who, 40)}{amount}"
