"""What a benchmark is given."""

from __future__ import annotations

import time
from typing import Any, Callable

_PATIENCE = 0.92
"""Of the deadline, which is twice the budget."""
_PARTING_S = 1.5
"""Before the end of the run, to tell that they were late."""


class BenchContext:
    """What the benchmarks of one worker share, and the budget of the one that runs.

    Args:
        config: What the supervisor sent; ``mode`` is ``quick`` or ``full``, ``archive`` the path of the payload, which
            ``python ARCHIVE rank JSON`` starts as a rank, ``folder`` a place for files that goes with the run.
        report: Tells the step the benchmark is at, in a few words.
        torch: The module.
        device: ``cuda:0``, or ``cpu`` where no GPU works.
        gpus: How many GPUs torch sees and can use.

    Processes that a benchmark starts stay in the worker's process group, which is killed as a whole at its deadline;
    they must not lead sessions of their own.
    """

    def __init__(
        self, config: dict[str, Any], report: Callable[[str], None], torch: Any, *, device: str, gpus: int
    ) -> None:
        self.config = config
        self.report = report
        self.torch = torch
        self.device = device
        self.gpus = gpus
        self.full: bool = config.get("mode") == "full"
        self.archive: str = str(config.get("archive") or "")
        self.folder: str = str(config.get("folder") or "")
        self.budget_s = 1.0
        """Seconds the benchmark that runs should take; smaller than its plan says when the run is late."""
        self.alloc_retries = 0
        """How often torch's allocator had run out so far."""
        self._ends_at = 0.0

    @property
    def cuda(self) -> bool:
        """The work is done on a GPU."""
        return self.device != "cpu"

    @property
    def pace(self) -> str:
        """``quick`` or ``full`` on a GPU, else ``cpu``, which has no clocks that heat brings down in seconds."""
        if not self.cuda:
            return "cpu"
        return "full" if self.full else "quick"

    @property
    def left_s(self) -> float:
        """Seconds of the budget that are left; below 0 when it has been overrun."""
        return self._ends_at - time.monotonic()

    @property
    def patience_s(self) -> float:
        """How long processes that a benchmark starts are waited for: until shortly before it is ended itself."""
        own_s = _PATIENCE * float(self.option("deadline_s") or 2 * self.budget_s)
        ends_at = self.config.get("ends_at")  # of the whole run, on the same clock
        return own_s if ends_at is None else max(1.0, min(own_s, float(ends_at) - time.monotonic() - _PARTING_S))

    def begin(self, budget_s: float) -> None:
        """Start the clock of a benchmark."""
        self.budget_s = budget_s
        self._ends_at = time.monotonic() + budget_s

    def option(self, name: str, default: Any = None) -> Any:
        """A setting of the run for tests and diagnosis, such as ``{"data": "zeros"}``, under ``options``."""
        options = self.config.get("options")
        return options.get(name, default) if isinstance(options, dict) else default
