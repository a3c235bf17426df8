"""How pulls are told while they go on: a picture that is drawn anew on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Sequence
from typing import Protocol

from gpuconsole.cli.canvas import Canvas
from gpuconsole.cli.glyphs import Glyphs, glyphs_of_stdout
from gpuconsole.cli.output import json_event, talk
from gpuconsole.core.document import body_of
from gpuconsole.core.text import duration, plain_line, size
from gpuconsole.engine.model import PullProgress
from gpuconsole.images.reference import shorter
from gpuconsole.services.pulling import PullState

_LINE_S = 5.0
"""Seconds between two lines about a pull, where lines stay."""
_DRAW_S = 0.1
_BAR = 16
_BUSY = ("downloading", "extracting", "verifying")


class Teller(Protocol):
    """Tells how pulls go on; may be told from several threads."""

    def begin(self, references: Sequence[str]) -> None:
        """These are pulled from now on."""
        ...

    def state(self, state: PullState) -> None:
        """So far one of them is."""
        ...

    def end(self, reference: str) -> None:
        """It is over, one way or the other; what became of it is told elsewhere."""
        ...

    def say(self, text: str) -> None:
        """A line of another subject, between what is told."""
        ...

    def close(self) -> None:
        """All is over."""
        ...


def teller(*, as_json: bool) -> Teller:
    """What fits: JSON Lines, a picture on a terminal, or lines that stay."""
    if as_json:
        return JsonLines()
    if sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        return Picture(glyphs_of_stdout())
    return Lines()


class JsonLines:
    """A line of JSON for each pull, once a second at most."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told: dict[str, float] = {}

    def begin(self, references: Sequence[str]) -> None:
        """The first line names the schema."""
        json_event(body_of("pull", references=references))

    def state(self, state: PullState) -> None:
        """How far one is."""
        with self._lock:
            now = time.monotonic()
            if now - self._told.get(state.reference, -1.0) < 1.0:
                return
            self._told[state.reference] = now
            json_event(
                {
                    "event": "progress",
                    "reference": state.reference,
                    "layers": state.layers,
                    "layers_downloaded": state.layers_downloaded,
                    "layers_done": state.layers_done,
                    "current_bytes": state.current_bytes,
                    "total_bytes": state.total_bytes or None,
                    "bytes_per_s": state.rate,
                    "left_s": state.left_s,
                }
            )

    def end(self, reference: str) -> None:
        """Its last line is written with what became of it."""

    def say(self, text: str) -> None:
        """To the person: stdout is for JSON alone."""
        talk(text)

    def close(self) -> None:
        """Nothing is open."""


class Lines:
    """A line about each pull every few seconds, and one when something else begins."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told: dict[str, float] = {}
        self._unpacks: set[str] = set()

    def begin(self, references: Sequence[str]) -> None:
        """A line for each."""
        for reference in references:
            talk(f"Pulling {shorter(reference)} …")

    def state(self, state: PullState) -> None:
        """How far one is."""
        with self._lock:
            now = time.monotonic()
            unpacks = bool(state.layers) and state.unpacking and state.reference not in self._unpacks
            if not unpacks and now - self._told.setdefault(state.reference, now) < _LINE_S:
                return
            if unpacks:
                self._unpacks.add(state.reference)
            self._told[state.reference] = now
            talk(f"  {shorter(state.reference)}: {plain_line(str(state))}")

    def end(self, reference: str) -> None:
        """What became of it is told elsewhere."""

    def say(self, text: str) -> None:
        """A line like the others."""
        with self._lock:
            talk(text)

    def close(self) -> None:
        """Nothing is open."""


class Picture:
    """All pulls with the layers that are under way, in the place of the last picture."""

    def __init__(self, glyphs: Glyphs) -> None:
        self._glyphs = glyphs
        self._canvas = Canvas(glyphs.text)
        self._lock = threading.Lock()
        self._states: dict[str, PullState] = {}
        self._drawn_at = 0.0

    def begin(self, references: Sequence[str]) -> None:
        """Draw them for the first time."""
        with self._lock:
            self._states = {reference: PullState(reference) for reference in references}
            self._draw()

    def state(self, state: PullState) -> None:
        """Draw anew, some times a second."""
        with self._lock:
            if state.reference in self._states:
                self._states[state.reference] = state
            if time.monotonic() - self._drawn_at >= _DRAW_S:
                self._draw()

    def end(self, reference: str) -> None:
        """Take it out of the picture."""
        with self._lock:
            self._states.pop(reference, None)
            self._draw()

    def say(self, text: str) -> None:
        """A line that stays, above the picture."""
        with self._lock:
            self._canvas.put([])
            talk(text)
            self._draw()

    def close(self) -> None:
        """Leave nothing of the picture behind."""
        with self._lock:
            self._states = {}
            self._draw()

    def _draw(self) -> None:
        _, rows = self._canvas.room
        self._canvas.put(picture(list(self._states.values()), self._glyphs, rows))
        self._drawn_at = time.monotonic()


def picture(states: Sequence[PullState], glyphs: Glyphs, rows: int) -> list[str]:
    """The lines of a picture: two for each pull, and the layers under way as far as there is room.

    Args:
        states: The pulls.
        glyphs: What bars are drawn with.
        rows: Lines there are.
    """
    lines: list[str] = []
    room = max(0, rows - 2 * len(states))
    for number, state in enumerate(states):
        busy = [step for step in state.each if step.status.lower().startswith(_BUSY)]
        share = room // (len(states) - number)
        shown = busy[:share]
        room -= len(shown)
        part = state.current_bytes / state.total_bytes if state.total_bytes else None
        lines += [shorter(state.reference), f"  {glyphs.bar(part, _BAR)} {_whole(state)}"]
        lines += [_layer(step, glyphs) for step in shown]
    return lines[: max(1, rows)]


def _whole(state: PullState) -> str:
    """How far a pull is, in what fits beside a bar at 80 columns."""
    if not state.layers:
        return plain_line(str(state))
    parts = [f"{state.layers_downloaded}/{state.layers} layers"]
    if state.total_bytes:
        parts.append(f"{size(state.current_bytes)} of {size(state.total_bytes)}")
    if state.unpacking:
        parts.append("unpacking")
    elif state.rate is not None and state.current_bytes < state.total_bytes:
        parts.append(f"{size(int(state.rate))}/s")
        parts += [f"{duration(state.left_s)} left"] if state.left_s is not None else []
    return " · ".join(parts)


def _layer(step: PullProgress, glyphs: Glyphs) -> str:
    share = step.current_bytes / step.total_bytes if step.current_bytes is not None and step.total_bytes else None
    amount = f"{size(step.current_bytes)} of {size(step.total_bytes)}" if share is not None else ""
    return f"  {glyphs.bar(share, _BAR)} {step.layer[:12]} {step.status.lower()} {amount}".rstrip()
