"""The past of benchmarks: each result with the one before it that it may be compared with."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from gpuconsole.core.errors import UsageError
from gpuconsole.probes.benchkeys import owner_key, result_key
from gpuconsole.probes.benchrecords import BenchGpu, BenchLevel, BenchRecord, BenchRun, Origin
from gpuconsole.probes.benchwords import words_of
from gpuconsole.probes.catalog import benchmarks_for


@dataclass(frozen=True, slots=True)
class Past:
    """One result of the past."""

    run: str
    origin: Origin
    taken_at: float
    """Seconds since the epoch."""
    mode: str
    subject: str
    id: str
    code: str
    what: str
    """Its parameters, short."""
    gpus: tuple[str, ...]
    """Names; of what ran on the CPU the processor's."""
    uuids: tuple[str | None, ...]
    torch: str | None
    score: float | None
    unit: str
    better: str
    """Which scores are better: ``higher`` or ``lower``."""
    level: BenchLevel
    change: float | None
    """Better (above 0) or worse than the result before it that is comparable, as a share; None without one."""
    contended: bool | None
    noisy: bool
    partial: bool
    """Its run did not come to its end."""


def history(
    runs: Iterable[BenchRun], *, bench: str | None = None, gpu: str | None = None, headlines: bool = True
) -> tuple[Past, ...]:
    """The measured results, newest first.

    Args:
        runs: In any order.
        bench: Name or code of a benchmark; None takes all.
        gpu: A part of a GPU's name, or the beginning of its UUID; None takes all.
        headlines: Only the result each benchmark is known by.

    Raises:
        UsageError: There is no such benchmark.
    """
    wanted = None if bench is None else {one.id for one in benchmarks_for("full", (bench,))}
    last: dict[tuple[str, str], float] = {}
    found = []
    for run in sorted(runs, key=lambda each: each.taken_at):
        for record in run.benchmarks:
            if not record.measured or (wanted is not None and record.id not in wanted):
                continue
            if headlines and not record.headline:
                continue
            if gpu is not None and not any(_is(each, gpu) for each in run.gpus_of(record)):
                continue
            found.append(_past(record, run, last))
    return tuple(sorted(found, key=lambda past: -past.taken_at))  # of one run in its own order


def past_of(runs: Iterable[BenchRun], uuids: Iterable[str], *, cpu: Collection[str] = ()) -> tuple[Past, ...]:
    """The headlines measured on any of these GPUs, newest first, and of the benchmarks in ``cpu`` those of a CPU."""
    wanted = set(uuids)
    return tuple(past for past in history(runs) if (wanted & set(past.uuids)) or (past.id in cpu and not past.uuids))


def _past(record: BenchRecord, run: BenchRun, last: dict[tuple[str, str], float]) -> Past:
    key, owner = result_key(record, run), owner_key(record, run)
    change = None
    if key is not None and owner is not None and record.trusted and record.score:
        before = last.get((key, owner))
        if before:
            change = record.score / before if record.better == "higher" else before / record.score
            change = round(change - 1, 4)
        last[key, owner] = record.score
    gpus = run.gpus_of(record)
    names = tuple(gpu.name or "–" for gpu in gpus) if record.device == "cuda" else (run.machine.cpu or "CPU",)
    return Past(
        run=run.run,
        origin=run.origin,
        taken_at=run.taken_at,
        mode=run.mode,
        subject=run.subject,
        id=record.id,
        code=record.code,
        what=words_of(record),
        gpus=names,
        uuids=tuple(gpu.uuid for gpu in gpus),
        torch=run.environment.torch,
        score=record.score,
        unit=record.unit,
        better=record.better,
        level=record.verdict.level,
        change=change,
        contended=record.contended,
        noisy=record.noisy,
        partial=run.partial,
    )


def _is(gpu: BenchGpu, text: str) -> bool:
    name, uuid = (gpu.name or "").lower(), (gpu.uuid or "").lower()
    wanted = text.strip().lower()
    return bool(wanted) and (wanted in name or uuid.removeprefix("gpu-").startswith(wanted.removeprefix("gpu-")))


def known_gpus(runs: Iterable[BenchRun]) -> Iterator[str]:
    """The names of the GPUs that were measured, each once."""
    yield from dict.fromkeys(gpu.name for run in runs for gpu in run.machine.gpus if gpu.name)


def refuse_unknown_gpu(runs: Iterable[BenchRun], text: str) -> None:
    """See that some run is of a GPU that ``text`` names.

    Raises:
        UsageError: None is; the hint names those there are.
    """
    runs = tuple(runs)
    if any(_is(gpu, text) for run in runs for gpu in run.machine.gpus):
        return
    names = tuple(known_gpus(runs))
    raise UsageError(
        f"No benchmark of a GPU {text!r} is remembered.",
        hint=f"There are some of {', '.join(names)}." if names else "No benchmark of any GPU is remembered yet.",
    )
