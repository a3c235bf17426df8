"""How far a build is, added up from what the engine tells."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from gpuconsole.core.text import duration, size
from gpuconsole.engine.model import BuildProgress
from gpuconsole.images.dockerfile import Recipe
from gpuconsole.services.pace import Pace, left_s
from gpuconsole.services.pulling import PullMeter, PullState

_KEPT = 200
"""Lines of the log that are remembered: a failure is explained from them."""
_PROGRESS = re.compile(r"^Progress (\d+) of (\d+)$")
"""What pip writes now and then with --progress-bar raw."""
_DOWNLOADS = re.compile(r"^Downloading (\S+)")


@dataclass(frozen=True, slots=True)
class BuildState:
    """How far a build is."""

    name: str
    """The new image's name."""
    step: int = 0
    """The step under way, from 1; 0 before the first."""
    steps: int = 0
    """How many there are; 0 as long as that is not known."""
    words: str = ""
    """What the step does, in a few words."""
    line: str = ""
    """The last line that came out of it."""
    pull: PullState | None = None
    """The pull of the base, while it is under way."""
    current_bytes: int | None = None
    """Of the package that is being downloaded."""
    total_bytes: int | None = None
    rate: float | None = None
    """Bytes a second of that download."""

    @property
    def share(self) -> float | None:
        """The part of the steps that is done, 0 … 1; None as long as their number is not known."""
        return (self.step - 1) / self.steps if self.steps and self.step else None

    @property
    def download(self) -> str:
        """``512 MiB of 848 MiB, 31 MiB/s, 11 s left``; empty while no package is being downloaded."""
        if self.current_bytes is None or not self.total_bytes:
            return ""
        text = f"{size(self.current_bytes)} of {size(self.total_bytes)}"
        if self.rate and self.current_bytes < self.total_bytes:
            left = left_s(self.total_bytes - self.current_bytes, self.rate)
            text += f", {size(int(self.rate))}/s, {duration(left)} left"
        return text

    def __str__(self) -> str:
        if self.pull is not None:
            return f"pulling the base: {self.pull}"
        if not self.step:
            return "beginning"
        last = ", ".join(filter(None, (self.line, self.download)))
        return f"step {self.step}/{self.steps}, {self.words}" + (f": {last}" if last else "")


class BuildMeter:
    """Adds up what a build tells.

    Args:
        name: The new image's name.
        recipe: What goes into it.
        clock: Seconds that only grow.
    """

    def __init__(self, name: str, recipe: Recipe, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._recipe = recipe
        self._state = BuildState(name)
        self._lines: deque[str] = deque(maxlen=_KEPT)
        self._clock = clock
        self._pace = Pace(clock)
        self._pull: PullMeter | None = None

    @property
    def state(self) -> BuildState:
        """How far it is now."""
        return self._state

    @property
    def lines(self) -> tuple[str, ...]:
        """The last lines, those that only tell how far a download is left out."""
        return tuple(self._lines)

    def pulls(self, pull: PullState) -> BuildState:
        """The state while the base is pulled before the build."""
        self._state = replace(self._state, pull=pull)
        return self._state

    def add(self, told: BuildProgress) -> BuildState:
        """The state after what was told."""
        state = self._state
        if told.pull is not None:
            self._pull = self._pull or PullMeter(self._recipe.base, clock=self._clock)
            state = replace(state, pull=self._pull.add(told.pull))
        elif told.step is not None:
            self._lines.append(f"Step {told.step}/{told.steps}: {told.text}")
            state = BuildState(state.name, told.step, told.steps or 0, self._words(told.text))
        elif told.text:
            state = replace(self._line(state, told.text), pull=None)
        self._state = state
        return state

    def _line(self, state: BuildState, text: str) -> BuildState:
        progress = _PROGRESS.match(text)
        if progress is not None:
            current, total = int(progress[1]), int(progress[2])
            return replace(state, current_bytes=current, total_bytes=total, rate=self._pace.reached(current))
        self._lines.append(text)
        download = _DOWNLOADS.match(text)
        self._pace = Pace(self._clock)
        line = f"downloading {download[1].rpartition('/')[2]}" if download else text
        return replace(state, line=line, current_bytes=None, total_bytes=None, rate=None)

    def _words(self, instruction: str) -> str:
        kind = instruction.split(None, 1)[0].upper() if instruction.strip() else ""
        if kind == "FROM":
            return "the base"
        if kind != "RUN":
            return "settings and labels"
        if f"torch=={self._recipe.torch}" in instruction:
            return f"installing torch {self._recipe.torch} for CUDA {self._recipe.cuda}"
        if "jupyterlab" in instruction:
            return "installing JupyterLab and TensorBoard"
        return "installing Python and a compiler" if "python3" in instruction else "making the user"
