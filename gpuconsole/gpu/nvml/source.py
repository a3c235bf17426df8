"""Snapshots of this machine's GPUs through NVML, within a time limit: a driver that hangs must not hang us."""

from __future__ import annotations

from _thread import allocate_lock
from time import time

from gpuconsole.core.records import replace
from gpuconsole.core.threads import Gate, begin
from gpuconsole.gpu.model import GpuSnapshot
from gpuconsole.gpu.nvml.codes import not_answering
from gpuconsole.gpu.nvml.reader import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os

_CLOSE_LIMIT_S = 0.2
"""How long closing waits for a driver that is to be let go. Who quits does not want to wait for it."""


class _Look:
    """One reading on its own daemon thread."""

    def __init__(self, reader: Reader, *, details: bool, bare: bool) -> None:
        self._reader = reader
        self._details = details
        self._snapshot: GpuSnapshot | None = None
        self._error: BaseException | None = None
        self.done = Gate()
        self.over = Gate()
        """Nobody needs to wait any longer: it is done, or not wanted any more."""
        begin(self._run, name="nvml", bare=bare)

    def _run(self) -> None:
        try:
            self._snapshot = self._reader.read(details=self._details)
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            self._error = error
        finally:
            self.done.open()
            self.over.open()

    def snapshot(self) -> GpuSnapshot:
        """What was read, once done."""
        if self._error is not None:
            raise self._error
        assert self._snapshot is not None  # noqa: S101 - one of the two was set before done was
        return self._snapshot


class NvmlSource:
    """GPU readings by NVML; see :class:`gpuconsole.gpu.source.GpuSource`.

    Args:
        limit_s: How long a driver may take to answer a look.
        start_limit_s: The same until it has answered once: without persistence mode each GPU starts up first.
        refresh_s: How old readings that are slow or seldom change may grow.
        sysfs: Where the kernel shows its devices.
        direct: Ask through the binding of our own, which is there sooner than nvidia-ml-py: for a single look.
    """

    def __init__(
        self,
        *,
        limit_s: float = 5.0,
        start_limit_s: float = 20.0,
        refresh_s: float = 30.0,
        sysfs: str | os.PathLike[str] = "/sys",
        direct: bool = False,
    ) -> None:
        self._direct = direct
        """Nothing that it imports for itself imports :mod:`threading`, as nvidia-ml-py does."""
        self._limit_s = limit_s
        self._start_limit_s = start_limit_s
        self._turn = allocate_lock()
        """Held by who waits for the driver: one question at a time."""
        self._lock = allocate_lock()
        """Guards the two below, and is never held while anybody waits."""
        self._reader = Reader(refresh_s=refresh_s, sysfs=sysfs, direct=direct)
        self._look: _Look | None = None
        self._last: GpuSnapshot | None = None

    def snapshot(self, *, details: bool = False) -> GpuSnapshot:
        """Read every GPU now.

        When the driver does not answer in time, or the source is closed meanwhile, the last snapshot comes back with
        its own ``taken_at`` and the reason ``not-answering``; the question stays with the driver, and the next call
        waits for it again.

        Args:
            details: Also take the readings anew that are slow or seldom change.
        """
        with self._turn:
            look = self._begun(details=details)
            limit_s = self._start_limit_s if self._last is None else self._limit_s
            look.over.wait(limit_s)
            if not look.done.is_open:
                return self._unanswered(limit_s)
            with self._lock:
                if self._look is look:
                    self._look = None
            self._last = look.snapshot()
            return self._last

    def _begun(self, *, details: bool) -> _Look:
        """The question the driver still has, else a new one."""
        with self._lock:
            if self._look is None or self._look.done.is_open:  # an answer that came too late is old by now
                self._look = _Look(self._reader, details=details, bare=self._direct)
            return self._look

    def close(self) -> None:
        """Let the driver go, and who waits for it. A driver that hangs is left to a thread of its own, not waited for.

        The library is let go when the question that the driver still holds is answered.
        """
        with self._lock:
            look, self._look = self._look, None
            reader, self._reader = self._reader, self._reader.successor()
        if look is not None:
            look.over.open()
        gone = Gate()
        begin(lambda: _let_go(reader, look, gone), name="nvml-close", bare=self._direct)
        gone.wait(_CLOSE_LIMIT_S)

    def _unanswered(self, limit_s: float) -> GpuSnapshot:
        problem = not_answering(limit_s)
        last = self._last or GpuSnapshot(taken_at=time())
        return replace(last, problem=problem.message, hint=problem.hint, reason=problem.reason)


def _let_go(reader: Reader, look: _Look | None, gone: Gate) -> None:
    """Close ``reader`` once ``look`` no longer works with it, and open ``gone`` then."""
    try:
        if look is not None:
            look.done.wait()
        reader.close()
    finally:
        gone.open()
