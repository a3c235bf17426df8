"""A container as a row, and how containers are sorted and filtered."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from gpuconsole.core.text import amount
from gpuconsole.services.runs import Run, RunState
from gpuconsole.tui.present.cell import EMPTY, Cell, Column, Row, Tone
from gpuconsole.tui.theme import Glyphs

if TYPE_CHECKING:
    from gpuconsole.services.containers import ContainerView

COLUMNS = (
    Column("name", "NAME", 12, grow=3),
    Column("image", "IMAGE", 16, grow=4, rank=4),
    Column("gpu", "GPU", 4),
    Column("gpumem", "GPU MEM", 8, align="right"),
    Column("cpu", "CPU", 6, align="right", rank=2),
    Column("ram", "RAM", 7, align="right", rank=3),
    Column("state", "STATE", 13, grow=1),
    Column("check", "CHECK", 8, rank=5),
    Column("user", "USER", 7, rank=1),
)
_STATE_TONES: dict[str, Tone] = {"running": "ok", "paused": "watch", "restarting": "watch", "dead": "critical"}
_GONE = -1.0


def row(view: ContainerView, *, now: float, glyphs: Glyphs, check: Run | None = None) -> Row:
    """One container as a row keyed by its id."""
    container = view.container
    return Row(
        container.id,
        (
            Cell(container.name, "strong" if container.running else "dim"),
            Cell(view.image or container.image, "" if container.running else "dim"),
            _gpus(view),
            _memory(view),
            _cpu(view),
            EMPTY if view.usage is None else Cell(amount(view.usage.memory_bytes)),
            _ahead(view, _state(view, now), glyphs),
            check_cell(check, glyphs),
            Cell(view.user or "–", "dim" if view.user is None else ""),
        ),
    )


def _gpus(view: ContainerView) -> Cell:
    if view.gpus is None:
        return Cell("?", "dim")
    if not view.gpus:
        return EMPTY
    return Cell(",".join("?" if gpu.index is None else str(gpu.index) for gpu in view.gpus))


def _memory(view: ContainerView) -> Cell:
    if view.gpu_memory_bytes is None or view.gpus == ():
        return EMPTY
    return Cell(amount(view.gpu_memory_bytes))


def _cpu(view: ContainerView) -> Cell:
    if view.usage is None or view.usage.cpu_pct is None:
        return EMPTY
    return Cell(f"{view.usage.cpu_pct:.0f} %")


def _state(view: ContainerView, now: float) -> Cell:
    from gpuconsole.services.endings import out_of_memory, state_words

    container = view.container
    tone: Tone = _STATE_TONES.get(container.state.value, "dim")
    if container.state == "exited" and container.exit_code not in (0, None):
        tone = "critical" if out_of_memory(container) else "risk"
    if container.health == "unhealthy":
        return Cell(f"{state_words(container, now=now)} unhealthy", "risk")
    return Cell(state_words(container, now=now), tone)


def _ahead(view: ContainerView, state: Cell, glyphs: Glyphs) -> Cell:
    """Its state, and before it which of its memories is running full."""
    if not view.outlooks:
        return state
    from gpuconsole.tui.present.outlook import row_cell

    return row_cell(view.outlooks, state, glyphs)


def check_cell(run: Run | None, glyphs: Glyphs) -> Cell:
    """The last check in a word."""
    if run is None:
        return Cell("")
    signs: dict[RunState, tuple[str, Tone]] = {
        RunState.OK: (glyphs.ok, "ok"),
        RunState.WARN: (glyphs.watch, "watch"),
        RunState.FAILED: (glyphs.critical, "critical"),
    }
    glyph, tone = signs.get(run.state, (glyphs.unknown, "dim"))
    return Cell(f"{glyph} {run.state.value}", tone)


SORT_KEYS: dict[str, Callable[[ContainerView], Any]] = {
    "state": lambda view: (not view.container.running, -(view.container.started_at or view.container.created_at or 0)),
    "name": lambda view: view.container.name.lower(),
    "image": lambda view: view.image.lower(),
    "gpu": lambda view: [gpu.index if gpu.index is not None else 99 for gpu in view.gpus or ()] or [100],
    "gpumem": lambda view: -(view.gpu_memory_bytes if view.gpu_memory_bytes is not None else _GONE),
    "cpu": lambda view: -(_GONE if view.usage is None or view.usage.cpu_pct is None else view.usage.cpu_pct),
    "ram": lambda view: -(_GONE if view.usage is None or view.usage.memory_bytes is None else view.usage.memory_bytes),
    "user": lambda view: (view.user or "~").lower(),
}
"""Column → what it is sorted by; the first is how it starts."""


def matches(view: ContainerView, words: Iterable[str]) -> bool:
    """Every word is in its name, image, user, state or id."""
    container = view.container
    text = " ".join((container.name, view.image, container.image, view.user or "", container.state.value, container.id))
    return all(word in text.lower() for word in words)
