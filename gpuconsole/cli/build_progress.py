"""How a build is told while it goes on: a picture on a terminal, lines that stay elsewhere, or JSON Lines."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Protocol

from gpuconsole.cli.canvas import Canvas
from gpuconsole.cli.glyphs import Glyphs, glyphs_of_stdout
from gpuconsole.cli.output import json_event, talk
from gpuconsole.cli.pull_progress import picture as pull_picture
from gpuconsole.core.document import body_of
from gpuconsole.core.text import plain_line, shorten
from gpuconsole.services.buildmeter import BuildState
from gpuconsole.services.buildorders import Chosen

_LINE_S = 10.0
"""Seconds between two lines about the same step, where lines stay."""
_DRAW_S = 0.1
_BAR = 16


class BuildTeller(Protocol):
    """Tells how a build goes on."""

    def begin(self, chosen: Chosen) -> None:
        """This is built from now on."""
        ...

    def state(self, state: BuildState) -> None:
        """So far it is."""
        ...

    def say(self, text: str) -> None:
        """A line of another subject, between what is told."""
        ...

    def close(self) -> None:
        """It is over; what became of it is told elsewhere."""
        ...


def build_teller(*, as_json: bool) -> BuildTeller:
    """What fits: JSON Lines, a picture on a terminal, or lines that stay."""
    if as_json:
        return JsonLines()
    if sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        return Picture(glyphs_of_stdout())
    return Lines()


class JsonLines:
    """A line of JSON when a step begins, and once a second at most."""

    def __init__(self) -> None:
        self._step = -1
        self._told_at = 0.0

    def begin(self, chosen: Chosen) -> None:
        """The first line names the schema, and what is built."""
        recipe = chosen.recipe
        json_event(
            body_of(
                "build", tag=chosen.name, torch=f"{recipe.torch}+{recipe.build}", cuda=recipe.cuda, base=recipe.base
            )
        )

    def state(self, state: BuildState) -> None:
        """How far it is."""
        now = time.monotonic()
        if state.step == self._step and now - self._told_at < 1.0:
            return
        self._step, self._told_at = state.step, now
        pull = state.pull
        json_event(
            {
                "event": "progress",
                "step": state.step,
                "steps": state.steps or None,
                "doing": f"pulling {pull.reference}" if pull else state.words,
                "line": state.line,
                "current_bytes": pull.current_bytes if pull else state.current_bytes,
                "total_bytes": (pull.total_bytes or None) if pull else state.total_bytes,
                "bytes_per_s": pull.rate if pull else state.rate,
            }
        )

    def say(self, text: str) -> None:
        """To the person: stdout is for JSON alone."""
        talk(text)

    def close(self) -> None:
        """Nothing is open."""


class Lines:
    """A line for each step, and one about it every few seconds."""

    def __init__(self) -> None:
        self._words = ""
        self._told_at = 0.0

    def begin(self, chosen: Chosen) -> None:
        """What is built."""
        talk(f"Building {chosen.name} on {chosen.recipe.base} …")

    def state(self, state: BuildState) -> None:
        """How far it is."""
        now = time.monotonic()
        words = "pull" if state.pull else state.words  # several short steps in a row are one to a reader
        if not words or (words == self._words and now - self._told_at < _LINE_S):
            return
        talk(f"  {plain_line(str(state))}")
        self._words, self._told_at = words, now

    def say(self, text: str) -> None:
        """A line like the others."""
        talk(text)

    def close(self) -> None:
        """Nothing is open."""


class Picture:
    """The step, its last line and the download under way, in the place of the last picture."""

    def __init__(self, glyphs: Glyphs) -> None:
        self._glyphs = glyphs
        self._canvas = Canvas(glyphs.text)
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._state = BuildState("")
        self._began_at = time.monotonic()
        self._drawn_at = 0.0

    def begin(self, chosen: Chosen) -> None:
        """Draw it for the first time; from then on the time goes on, also while a step says nothing."""
        self.state(BuildState(chosen.name))
        threading.Thread(target=self._tick, name="build-picture", daemon=True).start()

    def state(self, state: BuildState) -> None:
        """Draw anew, some times a second."""
        with self._lock:
            fresh = state.step != self._state.step
            self._state = state
            if fresh or time.monotonic() - self._drawn_at >= _DRAW_S:
                self._draw()

    def say(self, text: str) -> None:
        """A line that stays, above the picture."""
        with self._lock:
            self._canvas.put([])
            talk(text)
            self._draw()

    def close(self) -> None:
        """Leave nothing of the picture behind."""
        self._closed.set()
        with self._lock:
            self._canvas.put([])

    def _tick(self) -> None:
        while not self._closed.wait(1.0):
            with self._lock:
                self._draw()

    def _draw(self) -> None:
        if self._closed.is_set():
            return
        columns, rows = self._canvas.room
        elapsed = time.monotonic() - self._began_at
        self._canvas.put(picture(self._state, self._glyphs, columns, rows, elapsed_s=elapsed))
        self._drawn_at = time.monotonic()


def picture(state: BuildState, glyphs: Glyphs, columns: int, rows: int, *, elapsed_s: float | None = None) -> list[str]:
    """The lines of a picture: the whole, then the pull of the base, or the last line and the download under way.

    Args:
        state: How far the build is.
        glyphs: What bars are drawn with.
        columns: Of the terminal.
        rows: Lines there are.
        elapsed_s: Since the build began; None leaves it out.
    """
    passed = "" if elapsed_s is None else f"  {int(elapsed_s) // 60}:{int(elapsed_s) % 60:02}"
    lines = [f"Building {state.name}{passed}"]
    if state.pull is not None:
        return (lines + pull_picture([state.pull], glyphs, max(1, rows - 1)))[:rows]
    where = f"step {state.step}/{state.steps}, {state.words}" if state.step else "beginning"
    lines.append(f"  {glyphs.bar(state.share, _BAR)} {where}")
    if state.line:
        lines.append(shorten(f"  {plain_line(state.line)}", columns))
    if state.download:
        lines.append(f"  {glyphs.bar((state.current_bytes or 0) / (state.total_bytes or 1), _BAR)} {state.download}")
    return lines[: max(1, rows)]
