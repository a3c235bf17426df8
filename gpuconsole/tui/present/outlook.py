"""Where memory is going, in words: beside a state, in one line for the worst, and in full."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gpuconsole.core.text import eta, shorten, size
from gpuconsole.gpu.forecast_model import Assessment, Subject
from gpuconsole.gpu.state import MemoryState
from gpuconsole.tui.present.cell import Cell, Tone
from gpuconsole.tui.theme import Glyphs

if TYPE_CHECKING:
    from gpuconsole.host.model import GpuView, HostView

ALARMING: dict[MemoryState, Tone] = {
    MemoryState.WATCH: "watch",
    MemoryState.RISK: "risk",
    MemoryState.CRITICAL: "critical",
}
"""States from which on it is said of a row, and their tones."""
_ADVICE: dict[Subject, tuple[str, ...]] = {
    Subject.GPU: (
        "save a checkpoint, then lower the batch or length, or stop it",
        "save a checkpoint, then lower the batch",
        "save a checkpoint",
    ),
    Subject.CONTAINER: ("fewer workers, or start it with more --memory", "fewer workers"),
    Subject.HOST: ("find who holds it and stop it before the kernel chooses", "stop who holds it"),
    Subject.SHM: ("clear it, or start the container with a larger --shm-size", "clear it"),
}
MEMORY_OF = {Subject.CONTAINER: "RAM", Subject.SHM: "shm", Subject.PROCESS: "GPU"}
"""What the memory of a subject is called beside a container."""


def state_text(text: str, said: Assessment, width: int = 99) -> str:
    """A state, glyph and word, with the time ahead where that fits: ``▲ risk ~4 min``."""
    if said.eta_s is None or said.state not in ALARMING:
        return text
    forms = (f"{text} {eta(said.eta_s)}", f"{text} {eta(said.eta_s, short=True)}")
    return next((form for form in forms if len(form) <= width), text)


def glyph_of(state: MemoryState, glyphs: Glyphs) -> str:
    """The sign of a state that is alarming."""
    return {MemoryState.WATCH: glyphs.watch, MemoryState.RISK: glyphs.risk}.get(state, glyphs.critical)


def worst(outlooks: Iterable[Assessment]) -> Assessment | None:
    """The one that is to be seen first, the soonest of those that are equally bad; None where all are calm."""
    alarming = [each for each in outlooks if each.state in ALARMING]
    return min(alarming, key=_rank, default=None)


def _rank(said: Assessment) -> tuple[int, float]:
    return -said.state.severity, said.eta_s if said.eta_s is not None else float("inf")


def row_cell(outlooks: Sequence[Assessment], otherwise: Cell, glyphs: Glyphs, *, named: bool = True) -> Cell:
    """The state of a row: what is ahead of it where that is alarming, before what it says else.

    Args:
        outlooks: Of the thing in the row.
        otherwise: What it says else.
        glyphs: The signs.
        named: Say which memory it is.
    """
    said = worst(outlooks)
    if said is None:
        return otherwise
    words = f"{glyph_of(said.state, glyphs)} {said.state.value}"
    if named:  # in few cells, so that a narrow column shows all of it
        ahead = "" if said.eta_s is None else f" {eta(said.eta_s, short=True)}"
        words = f"{words}{ahead} {MEMORY_OF.get(said.subject, '')}".rstrip()
    else:
        words = state_text(words, said)
    return Cell(f"{words} · {otherwise.text}" if otherwise.text else words, ALARMING[said.state])


def told(said: Assessment, glyphs: Glyphs, name: str = "") -> tuple[tuple[Cell, ...], ...]:
    """An outlook in full, in lines: its state where that is alarming, and why it is thought so.

    Args:
        said: What is told.
        glyphs: The signs.
        name: Which memory it is, where the thing has several.
    """
    head = (Cell(f"{name}  ", "strong"),) if name else ()
    if said.state not in ALARMING:
        return ((*head, Cell(said.why, "dim")),)
    state = state_text(f"{glyph_of(said.state, glyphs)} {said.state.value}", said)
    return ((*head, Cell(state, ALARMING[said.state])), (Cell(said.why),))


def is_worth_telling(said: Assessment) -> bool:
    """There is more to it than that nothing grows, which the figures beside it say."""
    return said.state in (*ALARMING, MemoryState.LOADING, MemoryState.UNKNOWN) or said.rate_bytes_s is not None


def line(host: HostView, said: Assessment, width: int, glyphs: Glyphs) -> tuple[Cell, ...]:
    """Who grows, how fast, when it is full and what to do, as much of it as fits in one line.

    Args:
        host: What was seen.
        said: What is to be said, of a GPU, a container, the host or a ``/dev/shm``.
        width: Cells.
        glyphs: The signs.
    """
    tone = ALARMING.get(said.state, "critical" if said.state is MemoryState.FAILED else "dim")
    sign = glyph_of(said.state, glyphs) if tone != "dim" else " "
    place = f"GPU {said.gpu}: " if said.gpu is not None else "RAM: " if said.subject is Subject.CONTAINER else ""
    head = f" {sign} {place}"
    others = sum(each.state in ALARMING and each.subject is not Subject.PROCESS for each in host.outlooks) - 1
    tail = f"  (+{others} more)" if others > 0 and tone != "dim" else ""
    room = width - len(head) - len(tail) - 1
    text = next((form for form in _forms(said, _who(host, said)) if len(form) <= room), None)
    words = shorten(said.why, room) if text is None else text
    return (Cell(head, tone), Cell(words, "" if tone != "dim" else "dim"), Cell(tail, "dim"))


def fitting(gpus: Sequence[GpuView], said: Assessment, width: int) -> str | None:
    """The longest that can be said of a GPU's memory in ``width`` cells beside its state; None when all is longer.

    The time until it is full stands in the state: what to do comes before saying it again.

    Args:
        gpus: The GPU is one of these.
        said: Its outlook.
        width: Cells.
    """
    return next((form for form in _forms(said, _grower(gpus, said), timed=True) if len(form) <= width), None)


def _forms(said: Assessment, who: str, *, timed: bool = False) -> Iterable[str]:
    """What can be said, the longest first; ``timed`` where the time stands beside it."""
    if said.state is MemoryState.FAILED and said.pid is not None:
        yield f"process {said.pid}: {said.why}"
        yield f"process {said.pid} ended as memory ran out, most likely; its log says more"
        return
    yield said.why
    if said.rate_bytes_s is None or said.eta_s is None or said.state not in ALARMING:
        return
    ahead = f"full in about {eta(said.eta_s).lstrip('~')}"
    grows = f"{who} grows {pace(said.rate_bytes_s)}"
    base = f"{grows}, {ahead}"
    if said.state is not MemoryState.WATCH:
        for words in (base, grows) if timed else (base,):
            yield from (f"{words}: {advice}" for advice in _ADVICE.get(said.subject, ()))
    yield base
    yield f"{who}: {ahead}"


def _who(host: HostView, said: Assessment) -> str:
    if said.subject is Subject.GPU:
        return _grower(host.gpus, said)
    pools = host.memory.pools if host.memory is not None else ()
    names = {(pool.subject, pool.id): pool.name for pool in pools}
    return names.get(said.key, said.id[:12])


def _grower(gpus: Sequence[GpuView], said: Assessment) -> str:
    """What grows fastest on the GPU of which it is said."""
    growing = [
        holder
        for view in gpus
        if view.gpu.index == said.gpu
        for holder in view.holders
        if holder.outlook is not None and holder.outlook.state in ALARMING
    ]
    if not growing:
        return "memory in use"
    fastest = max(growing, key=lambda holder: (holder.outlook.rate_bytes_s or 0.0) if holder.outlook else 0.0)
    return fastest.container_name or f"process {fastest.pid}"


def pace(bytes_s: float) -> str:
    """A pace by the second, minute or hour, whichever is a figure one can read: ``151 MiB/s``, ``3.2 GiB/h``."""
    units = (("s", 1), ("min", 60), ("h", 3600))
    unit, seconds = next((each for each in units if bytes_s * each[1] >= 2**20), units[-1])
    return f"{size(round(bytes_s * seconds))}/{unit}"
