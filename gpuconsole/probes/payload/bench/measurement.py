"""What a benchmark tells: one measurement for each set of parameters."""

from __future__ import annotations

from typing import Any

from gpuconsole.probes.payload.bench.timing import Timing
from gpuconsole.probes.payload.outcome import first_line

OK = "ok"
SKIPPED = "skipped"
TIMEOUT = "timeout"
ERROR = "error"
WRONG = "wrong"
"""The result was not what it must be: its speed means nothing."""


class Skip(Exception):
    """Raised by a benchmark for what it cannot do here; its text is the reason, as a phrase."""


def of_all(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """What the records of several processes come to as one: noisy if one is, from the first begin to the last end."""
    return {
        "noisy": any(part["noisy"] for part in parts),
        "began": min(part["began"] for part in parts),
        "ended": max(part["ended"] for part in parts),
        "cold_s": max(part["cold_s"] for part in parts),
        "peak_reserved_bytes": max((part["peak_reserved_bytes"] or 0 for part in parts), default=0) or None,
    }


class Measurement:
    """One record of a benchmark.

    Args:
        params: What tells this measurement from the benchmark's others: ``{"dtype": "bf16", "m": 8192}``. Together with
            the benchmark's name it is the key that runs are compared by, so only what was asked, nothing measured.
        status: ``ok``, ``skipped``, ``timeout``, ``error`` or ``wrong``.
        score: The figure, in ``unit``.
        timing: Where the score came from; gives ``stat``, ``noisy``, ``cold_s`` and when it ran.
        values: Further figures, each with its unit in its name.
        gpu: Positions of the GPUs that took part; by default the one of the context, none on the CPU.
        headline: This is the score of the benchmark.
        why: A phrase without a full stop: the reason of anything but ``ok``.
        noisy: Overrides what the timing says.
        began: Seconds since the epoch.
        ended: Likewise.
        cold_s: Seconds of the very first call.
        peak_reserved_bytes: Of GPU memory; filled in by the worker where it is None and the work was in its process.
    """

    def __init__(
        self,
        params: dict[str, Any],
        *,
        status: str = OK,
        unit: str = "",
        score: float | None = None,
        timing: Timing | None = None,
        values: dict[str, Any] | None = None,
        gpu: list[int] | None = None,
        headline: bool = False,
        why: str = "",
        noisy: bool | None = None,
        began: float | None = None,
        ended: float | None = None,
        cold_s: float | None = None,
        peak_reserved_bytes: int | None = None,
    ) -> None:
        self.params = params
        self.status = status
        self.unit = unit
        self.score = score
        self.stat = timing.stat() if timing is not None else None
        self.values = values if values is not None else {}
        self.gpu = gpu
        self.headline = headline
        self.why = why
        self.noisy = bool(timing is not None and timing.noisy) if noisy is None else noisy
        self.began = began if timing is None or began is not None else timing.began
        self.ended = ended if timing is None or ended is not None else timing.ended
        self.cold_s = cold_s if timing is None or cold_s is not None else timing.cold_s
        self.peak_reserved_bytes = peak_reserved_bytes

    @classmethod
    def skipped(cls, params: dict[str, Any], why: str, *, gpu: list[int] | None = None) -> Measurement:
        """It does not apply here."""
        return cls(params, status=SKIPPED, why=why, gpu=gpu)

    @classmethod
    def wrong(cls, params: dict[str, Any], why: str, *, gpu: list[int] | None = None, **values: Any) -> Measurement:
        """The result was wrong, so no speed is told."""
        return cls(params, status=WRONG, why=why, gpu=gpu, values=values)

    @classmethod
    def failed(cls, params: dict[str, Any], error: BaseException, *, gpu: list[int] | None = None) -> Measurement:
        """What an exception means: out of memory and :class:`Skip` are no errors."""
        if isinstance(error, Skip):
            return cls.skipped(params, str(error), gpu=gpu)
        if out_of_memory(error):
            return cls.skipped(params, "memory: {}".format(first_line(error)), gpu=gpu)
        return cls(params, status=ERROR, why="{}: {}".format(type(error).__name__, first_line(error)), gpu=gpu)


def out_of_memory(error: BaseException) -> bool:
    """``error`` says that the memory of GPU or host ran out."""
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and ("out of memory" in str(error) or "can't allocate memory" in str(error))
    )
