"""A score as a share of what is written of its GPU: of the datasheet, and of the card's peak at the clock it held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpuconsole.probes import benchreference, benchsheets
from gpuconsole.probes.benchrecords import BenchGpu, BenchRecord
from gpuconsole.probes.benchreference import reference_for
from gpuconsole.probes.benchsheets import Figure, datasheet, rate_at_clock

_RATED = ("bench.mm", "bench.attn", "bench.soak")
"""Their score is a rate of the type in their parameters."""


@dataclass(frozen=True, slots=True)
class Written:
    """What is written of the GPU that a score is of."""

    share: float
    words: str
    """``989 TFLOP/s dense bf16 of the H200 SXM (datasheet; MLE, PL)``."""
    source: tuple[str, ...] = ()
    """Short names of where that is written."""


def of_datasheet(record: BenchRecord, gpus: Sequence[BenchGpu]) -> Written | None:
    """The score against the datasheet; None where there is none with evidence, or the GPU is a slice of one."""
    gpu = _one(record, gpus)
    sheet = None if gpu is None else datasheet(gpu.name)
    if sheet is None:
        return None
    figure: Figure | None = None
    reached, dtype = _rate(record)
    words = f"TFLOP/s dense {dtype}"
    if dtype is not None:
        figure = sheet.rates.get(dtype)
    elif record.id == "bench.mem" and record.unit == "GB/s":
        figure, reached, words = sheet.memory_gbs, record.score, "GB/s"
    if figure is None or reached is None:
        return None
    told = f"{figure.value:g} {words} of the {sheet.name} ({figure.evidence})"
    return Written(reached / figure.value, told, figure.source)


def sources_of(record: BenchRecord, gpus: Sequence[BenchGpu]) -> dict[str, str]:
    """Short name → where it is, of all that a result is compared with by a table."""
    found: dict[str, str] = {}
    if (row := reference_for(record, gpus)) is not None:
        found |= {name: benchreference.sources()[name] for name in row.source}
    if (sheet := of_datasheet(record, gpus)) is not None:
        names = [name.partition(" (")[0] for name in sheet.source]  # some carry a remark
        for name in names:
            place, before = benchsheets.sources().get(name), found.get(name)
            if place is not None:
                found[name] = place if before is None else f"{before}; {place}"
    return found


def of_clock(record: BenchRecord, gpus: Sequence[BenchGpu]) -> Written | None:
    """The score against what the card can do at the mean clock it held; None where clock or card are not known."""
    gpu, (reached, dtype) = _one(record, gpus), _rate(record)
    if gpu is None or reached is None or dtype is None:
        return None
    clocks = [use.sm_mhz.mean for use in record.dev if use.gpu == gpu.position and use.sm_mhz is not None]
    if not clocks:
        return None
    peak = rate_at_clock(gpu.name, dtype=dtype, multiprocessors=gpu.multiprocessors, mhz=clocks[0])
    if peak is None:
        return None
    return Written(reached / peak, f"{peak:.0f} TFLOP/s dense {dtype} at {clocks[0]:.0f} MHz")


def _one(record: BenchRecord, gpus: Sequence[BenchGpu]) -> BenchGpu | None:
    """The one whole GPU a result is of."""
    return gpus[0] if record.device == "cuda" and len(gpus) == 1 and not gpus[0].mig else None


def _rate(record: BenchRecord) -> tuple[float | None, str | None]:
    """TFLOP/s that were reached, and in which type; nothing of what is no rate of arithmetic."""
    reached: object = None
    if record.unit == "TFLOP/s" and record.id in _RATED:
        reached = record.score
    elif record.id == "bench.train":
        reached = record.values.get("model_tflop_per_s")
    dtype = record.params.get("dtype", record.params.get("precision"))
    if isinstance(reached, bool) or not isinstance(reached, int | float) or not isinstance(dtype, str):
        return None, None
    return float(reached), dtype
