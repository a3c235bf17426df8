"""The supervisor of benchmarks: one worker for those that share it, one for each that must have its own."""

from __future__ import annotations

import time
from typing import Any

from gpuconsole.probes.payload.bench.measurement import ERROR, SKIPPED, TIMEOUT
from gpuconsole.probes.payload.benchplan import BY_SLUG, ONE_GPU, Benchmark
from gpuconsole.probes.payload.outcome import FAIL
from gpuconsole.probes.payload.supervisor import Supervisor

_FIELDS = (
    "status", "params", "device", "gpu", "unit", "score", "stat", "values", "headline", "noisy", "cold_s",
    "peak_reserved_bytes", "began", "ended", "why", "fix",
)  # fmt: skip
"""Of a ``bench`` record, beside what tells which benchmark it is of."""
_PARTING_S = 5.0
_START_S = 90.0
"""A worker imports torch and starts CUDA before it begins."""


class BenchSupervisor(Supervisor):
    """Runs the benchmarks named in ``config["checks"]``; ``config["mode"]`` is ``quick`` or ``full``."""

    plan = BY_SLUG

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__(dict(config, ends_at=time.monotonic() + float(config["deadline_s"])))
        self.mode = "full" if config.get("mode") == "full" else "quick"
        self._given: list[str] = []
        """What the worker that runs has still to do."""
        self._headline = False
        """The benchmark that runs has told its headline."""
        self._gpus: int | None = None
        """How many GPUs torch can use; None before a worker has told it."""
        self._starting = False
        """The worker has not come to its first benchmark yet."""

    def _run_worker(self) -> None:
        if self._current.own and "gpus" in self._current.needs and self._gpus == 1:
            self._settle(SKIPPED, ONE_GPU, "")  # no process is started only to find that out
            return
        super()._run_worker()

    def _batch(self) -> list[str]:
        """The next one alone if it wants a process of its own, else all that share one with it."""
        first, *rest = self._pending
        batch = [first]
        if not BY_SLUG[first].own:
            for slug in rest:
                if BY_SLUG[slug].own:
                    break
                batch.append(slug)
        self._given = list(batch)
        self._starting = True
        return batch

    @property
    def _owed(self) -> bool:
        return bool(self._given and self._pending)

    def _allowed_s(self) -> float:
        options = self._config.get("options") or {}
        allowed = float(options.get("deadline_s") or self._current.deadline_s(self.mode))
        return allowed + (_START_S if self._starting else 0.0)

    @property
    def _current(self) -> Benchmark:
        return BY_SLUG[self._pending[0]]

    def _take_record(self, record: dict[str, Any]) -> None:
        kind = record.get("t")
        mine = bool(self._given) and record.get("id") == self._given[0]
        if kind == "bench":
            if mine:
                self._tell({name: record.get(name) for name in _FIELDS})
        elif kind == "measured":
            if mine:
                self._done()
        elif kind == "seen":
            gpus = record.get("gpus")
            self._gpus = gpus if isinstance(gpus, int) else None
        elif kind == "leave":
            self._given = []  # the rest is for a new worker
            self._check_ends_at = time.monotonic() + _PARTING_S
        elif kind == "env" or mine:
            self._starting = self._starting and not record.get("begin")
            super()._take_record(record)

    def _tell(self, fields: dict[str, Any]) -> None:
        self._headline = self._headline or bool(fields.get("headline"))
        self._out.emit("bench", id=self._current.slug, code=self._current.code, rev=self._current.rev, **fields)

    def _done(self) -> None:
        """The benchmark that runs has told all it has to tell."""
        slug = self._pending.pop(0)
        self._statuses[slug] = "done"
        self._out.emit("measured", id=slug)
        self._given = self._given[1:]
        self._headline = False
        if self._owed:
            self._start_clock(0.0)
        else:
            self._check_ends_at = time.monotonic() + _PARTING_S

    def _late(self) -> bool:
        now = time.monotonic()
        if not self._owed:
            return now >= min(self._check_ends_at, self._ends_at)
        if now >= self._ends_at:
            self._stopping = "timeout"
            allowed = float(self._config["deadline_s"])
            why = "it still ran when the {:g} s for the whole run were over".format(allowed)
            self._settle(TIMEOUT, why, "Measure it alone, with --only {}.".format(self._current.code))
            return True
        if now >= self._check_ends_at:
            why = "it did not end within {:g} s".format(self._allowed_s())
            self._settle(TIMEOUT, why, "Look whether something else uses the GPU or the processors.")
            return True
        return False

    def _settle(self, status: str, why: str, fix: str, value: object = None) -> None:
        """The benchmark that runs ends with this, beside what it has told already."""
        self._tell(
            {
                "status": ERROR if status == FAIL else status,
                "params": {},
                "values": {},
                "gpu": [],
                "headline": not self._headline,
                "noisy": False,
                "why": why,
                "fix": fix,
                "ended": time.time(),
            }
        )
        self._done()
