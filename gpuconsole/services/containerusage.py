"""CPU and memory of running containers: from their control groups on this machine, else from the engine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from gpuconsole.core.errors import ConsoleError
from gpuconsole.engine.model import Container, Usage
from gpuconsole.host.usage import UsageReader
from gpuconsole.services.gather import gather
from gpuconsole.services.ownership import main_process

if TYPE_CHECKING:
    from gpuconsole.engine.protocol import Engine

WORKERS = 32
"""Questions to the engine at the same time."""
DEADLINE_S = 6.0
"""So long all answers are waited for."""
_CPU_SPAN_S = 0.5


class Meter:
    """CPU and memory of containers on this machine, from their control groups."""

    def __init__(self, running: Sequence[Container]) -> None:
        self._reader = UsageReader()
        self._pids = {one.id: one.pid for one in running if one.pid is not None and main_process(one) is not None}
        self._reader.read(self._pids)
        self._started = time.monotonic()

    def read(self) -> dict[str, Usage]:
        """By container id, CPU use over at least half a second."""
        if not self._pids:
            return {}
        time.sleep(max(0.0, self._started + _CPU_SPAN_S - time.monotonic()))
        return self._reader.read(self._pids)


def usages_of(engine: Engine, asked: Sequence[Container], meter: Meter) -> dict[str, Usage | ConsoleError]:
    """Usage by container id; the engine is asked where the control groups cannot be read."""
    found: dict[str, Usage | ConsoleError] = dict(meter.read())
    rest = [one.id for one in asked if one.id not in found]
    answers = gather([partial(engine.usage, one) for one in rest], workers=WORKERS, deadline_s=DEADLINE_S)
    return found | dict(zip(rest, answers, strict=True))
