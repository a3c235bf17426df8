"""Looks at a container's GPUs from the host while its checks run, for what only shows under load."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

from gpuconsole.gpu.model import Gpu, GpuSnapshot
from gpuconsole.gpu.source import GpuSource
from gpuconsole.host.kernellog import xids
from gpuconsole.probes import gpuchecks
from gpuconsole.probes.catalog import CheckInfo
from gpuconsole.probes.gpuchecks import Observed, Xid, observe
from gpuconsole.probes.records import AskedGpus, CheckResult
from gpuconsole.probes.suite import GPU_HEALTH
from gpuconsole.services.session import Session

_PERIOD_S = 0.5
_PARTING_S = 3.0


class GpuWatch:
    """Takes a look each half second, from entry to exit, on a thread of its own.

    Args:
        session: Whose GPUs.
        asked: The GPUs the container was given.
        problem: Why NVML cannot tell of them, as a phrase; empty when it can.
    """

    def __init__(self, session: Session, asked: AskedGpus, *, problem: str = "") -> None:
        self._session = session
        self._asked = asked
        self._problem = problem.rstrip(".")
        self._seen: dict[str, Observed] = {}
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        if not self._problem and asked.gpus is None:
            self._problem = asked.reason.rstrip(".") or "which GPUs it has is not known"
        elif not self._problem and not asked.gpus:
            self._problem = gpuchecks.NOT_GIVEN

    def __enter__(self) -> Self:
        if not self._problem:
            self._thread = threading.Thread(
                target=self._work, args=(self._session.gpus,), name="check-gpus", daemon=True
            )
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(_PARTING_S)

    def _work(self, source: GpuSource) -> None:
        while True:
            snapshot = source.snapshot(details=True)
            if snapshot.problem is not None:
                self._problem = self._problem or snapshot.problem.rstrip(".")
            for gpu in of_container(snapshot, self._asked):
                key = gpu.uuid or f"#{gpu.index}"
                self._seen[key] = observe(self._seen.get(key), gpu)
            if self._stop.wait(_PERIOD_S):
                return

    def result(self, check: CheckInfo) -> CheckResult:
        """What was seen, judged; after the exit."""
        seen = sorted(self._seen.values(), key=lambda one: one.gpu.index)
        if not seen:
            return gpuchecks.skipped(check, self._problem or "the driver did not answer in time")
        if check is not GPU_HEALTH:
            return gpuchecks.clocks(seen)
        log = xids()
        return gpuchecks.health([one.gpu for one in seen], None if log is None else [Xid(*entry) for entry in log])


def of_container(snapshot: GpuSnapshot, asked: AskedGpus) -> list[Gpu]:
    """The GPUs of a snapshot that a container has, whole or in part."""
    wanted = {gpu.uuid for gpu in asked.gpus or ()}
    return [
        gpu
        for gpu in snapshot.gpus
        if (gpu.uuid is not None and gpu.uuid in wanted) or any(mig.uuid in wanted for mig in gpu.migs if mig.uuid)
    ]
