"""The layers of a pull, each in a line."""

from __future__ import annotations

from gpuconsole.core.text import plain_line, size
from gpuconsole.engine.model import PullProgress
from gpuconsole.tui.present.cell import Cell, Tone
from gpuconsole.tui.present.gpu import bar
from gpuconsole.tui.theme import Glyphs

_DONE = ("pull complete", "already exists")
_WAITING = ("pulling fs layer", "waiting")


def layer_order(layer: PullProgress) -> int:
    """Layers at work first, then those that wait, then those that are here."""
    status = layer.status.lower()
    return 2 if status.startswith(_DONE) else 1 if status.startswith(_WAITING) else 0


def layer_line(layer: PullProgress, glyphs: Glyphs, width: int) -> tuple[Cell, ...]:
    """One layer with its bar, for ``width`` cells."""
    order = layer_order(layer)
    share = 1.0 if order == 2 else None
    amount = ""
    if order == 0 and layer.total_bytes and layer.current_bytes is not None:
        share = min(1.0, layer.current_bytes / layer.total_bytes)
        amount = f"{size(layer.current_bytes)} of {size(layer.total_bytes)}"
    tone: Tone = "ok" if order == 2 else "dim" if order == 1 else ""
    cells = max(10, min(40, width - 56))
    text = (
        f" {plain_line(layer.layer)[:12]:<12} {bar(share, cells, glyphs)} {plain_line(layer.status)[:18]:<18} {amount}"
    )
    return (Cell(text.rstrip(), tone),)
