"""The same work on several GPUs at the same time, each at its own pace, timed in chunks by events."""

from __future__ import annotations

import time
from typing import Any, Callable

_IN_FLIGHT = 2
_POLL_S = 0.001


class Lane:
    """One GPU, or the CPU, with its work.

    Args:
        torch: The module.
        device: ``cuda:1``, or ``cpu``.
        fn: One call of the work.
        chunk: Calls between two events.
        after: Called behind each chunk's calls, outside its time: looks at the result.
    """

    def __init__(
        self,
        torch: Any,
        device: str,
        fn: Callable[[], object],
        *,
        chunk: int,
        after: Callable[[], object] | None = None,
    ) -> None:
        self._torch = torch
        self.device = device
        self._fn = fn
        self.chunk = max(1, chunk)
        self._after = after
        self._cuda = device.startswith("cuda")
        self._flying: list[tuple[Any, Any]] = []
        self.samples_ms: list[float] = []
        """Milliseconds a call took, one for each chunk, in their order."""

    @property
    def position(self) -> int | None:
        """N of ``cuda:N``; None on the CPU."""
        return int(self.device.partition(":")[2] or 0) if self._cuda else None

    def feed(self) -> bool:
        """Start another chunk if there is room for one; whether it did."""
        self._collect(wait=False)
        if len(self._flying) >= _IN_FLIGHT:
            return False
        if not self._cuda:
            begun = time.perf_counter()
            for _ in range(self.chunk):
                self._fn()
            self.samples_ms.append((time.perf_counter() - begun) * 1000.0 / self.chunk)
            if self._after is not None:
                self._after()
            return True
        cuda = self._torch.cuda
        with cuda.device(self.device):
            begin, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
            begin.record()
            for _ in range(self.chunk):
                self._fn()
            end.record()
            if self._after is not None:
                self._after()
        self._flying.append((begin, end))
        return True

    def _collect(self, *, wait: bool) -> None:
        while self._flying:
            begin, end = self._flying[0]
            if wait:
                end.synchronize()
            elif not end.query():
                return
            self.samples_ms.append(float(begin.elapsed_time(end)) / self.chunk)
            self._flying.pop(0)

    def finish(self) -> None:
        """Wait for all that was started."""
        self._collect(wait=True)
        if self._cuda:
            self._torch.cuda.synchronize(self.device)


def drive(lanes: list[Lane], seconds: float, *, tell: Callable[[float], object] | None = None) -> None:
    """Keep all ``lanes`` busy for so many seconds, then wait for their end.

    Args:
        lanes: One for each device.
        seconds: By the host's clock; at least one chunk is done on each.
        tell: Called about once a second with the seconds that have passed.
    """
    begun = told = time.monotonic()
    while True:
        fed = [lane.feed() for lane in lanes]
        now = time.monotonic()
        if now - begun >= seconds:
            break
        if tell is not None and now - told >= 1.0:
            told = now
            tell(now - begun)
        if not any(fed):
            time.sleep(_POLL_S)
    for lane in lanes:
        lane.finish()
