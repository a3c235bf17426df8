"""Benchmark runs to look at: one that was made on an H200, judged anew, and later ones that differ from it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from gpuconsole.probes.benchrecords import BenchRun
from gpuconsole.services.benching import judged
from gpuconsole.services.benchruns import conclusion
from gpuconsole.services.benchstore import BenchStore, run_of
from gpuconsole.services.runs import Run, RunKind

_FIXTURE = Path(__file__).parents[1] / "fixtures" / "bench" / "h200-quick.json"
DAY_S = 86400.0


def made(now: float, *, speeds: tuple[float, ...], uuid: str, store: BenchStore) -> tuple[BenchRun, ...]:
    """Runs two days apart, the last two days ago, whose products and copies are so much faster; kept, oldest first."""
    base = run_of(json.loads(_FIXTURE.read_text()))
    machine = replace(base.machine, gpus=tuple(replace(gpu, uuid=uuid) for gpu in base.machine.gpus))
    found = []
    for place, speed in enumerate(speeds):
        at = now - (len(speeds) - place) * 2 * DAY_S
        records = tuple(
            replace(
                record,
                score=record.score * speed if record.score and record.id in ("bench.mm", "bench.mem") else record.score,
                began=at,
                ended=at + 1,
            )
            for record in base.benchmarks
        )
        run = replace(base, run=f"{place}abc{place}def", benchmarks=records, machine=machine, taken_at=at,
                      subject="llama-ft", subject_id="10" * 32)  # fmt: skip
        found.append(judged(run, store).run)
    return tuple(found)


def listed(run: BenchRun) -> Run:
    """The same as the list of runs has it."""
    state, headline, summary = conclusion(run)
    took = run.seconds or 0.0
    return Run(f"run-{run.run}", RunKind.BENCH, run.subject, run.subject_id, run.taken_at, state, run.taken_at + took,
               headline, None, summary)  # fmt: skip
