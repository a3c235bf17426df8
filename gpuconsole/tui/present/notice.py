"""Calm panels in place of what is not there: no driver, no engine, an empty list; what happened, what to do."""

from __future__ import annotations

import textwrap

from gpuconsole.core.text import duration
from gpuconsole.host.model import HostView
from gpuconsole.services.feed import EngineLink
from gpuconsole.tui.present.cell import Cell

Notice = tuple[tuple[Cell, ...], ...]
NOTHING: Notice = ()


def _wrapped(message: str, hint: str, *, width: int) -> Notice:
    room = max(20, width - 4)
    lines = [(Cell(f"  {part}", "strong"),) for part in textwrap.wrap(message, room)]
    lines += [(Cell(f"  {part}", "dim"),) for part in textwrap.wrap(f"→ {hint}", room, subsequent_indent="  ") if hint]
    return tuple(lines)


def of_gpus(view: HostView | None, *, now: float, width: int) -> Notice:
    """Why there are no GPUs; nothing when there are."""
    if view is None or view.snapshot.problem is None:
        return NOTHING
    return _wrapped(view.snapshot.problem, view.snapshot.hint or "", width=width)


def of_processes(view: HostView | None, *, width: int) -> Notice:
    """What is true of all processes on GPUs, said once for all rows; nothing where each speaks for itself."""
    notes = () if view is None else view.notes
    return tuple(line for note in notes for line in _wrapped(note, "", width=width))


def of_engine(link: EngineLink | None, *, now: float, width: int) -> Notice:
    """Why the engine cannot be seen; nothing when it can."""
    if link is None:
        return ((Cell("  Connecting to the container engine …", "dim"),),)
    if link.connected:
        return NOTHING
    since = f" Since {duration(now - link.since)}; tried again by itself." if link.since else ""
    return _wrapped(f"{link.message}{since}", link.hint, width=width)


def empty(what: str, hint: str, *, width: int) -> Notice:
    """A list with nothing in it."""
    return _wrapped(what, hint, width=width)


def too_small(width: int, height: int, smallest: tuple[int, int], *, quits: str = "q") -> Notice:
    """The window is too small; ``quits`` is the key that leaves."""
    return (
        (Cell("Too small", "strong"),),
        (Cell(f"{width}×{height}, need", "dim"),),
        (Cell(f"{smallest[0]}×{smallest[1]}.  {quits} quits", "dim"),),
    )
