"""An image as a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from gpuconsole.core.text import duration, size
from gpuconsole.services.runs import Run
from gpuconsole.tui.present.cell import EMPTY, Cell, Column, Row
from gpuconsole.tui.present.container import check_cell
from gpuconsole.tui.theme import Glyphs

if TYPE_CHECKING:
    from gpuconsole.images.facts import Fact
    from gpuconsole.services.images import ImageView

COLUMNS = (
    Column("name", "IMAGE", 20, grow=4),
    Column("torch", "TORCH", 9),
    Column("cuda", "CUDA", 7),
    Column("python", "PYTHON", 7, rank=4),
    Column("size", "SIZE", 8, align="right", rank=1),
    Column("created", "MADE", 6, align="right", rank=3),
    Column("check", "CHECK", 8, rank=5),
    Column("used", "USED BY", 8, grow=1, rank=2),
)


def row(view: ImageView, *, now: float, glyphs: Glyphs, check: Run | None = None) -> Row:
    """One image as a row keyed by its id."""
    image = view.image
    created = EMPTY if not image.created_at else Cell(duration(now - image.created_at), "dim")
    return Row(
        image.id,
        (
            Cell(image.name, "strong"),
            _fact(view.facts.torch),
            Cell("none", "dim") if view.facts.cpu_only else _fact(view.facts.cuda),
            _fact(view.facts.python),
            Cell(size(image.size_bytes)),
            created,
            check_cell(check, glyphs),
            Cell(", ".join(view.used_by)) if view.used_by else EMPTY,
        ),
    )


def _fact(fact: Fact | None) -> Cell:
    return EMPTY if fact is None else Cell(fact.value)


SORT_KEYS: dict[str, Callable[[ImageView], Any]] = {
    "name": lambda view: view.image.name.lower(),
    "created": lambda view: -(view.image.created_at or 0),
    "size": lambda view: -(view.image.size_bytes or 0),
    "torch": lambda view: view.facts.torch.value if view.facts.torch else "~",
    "used": lambda view: (not view.used_by, view.image.name.lower()),
}


def matches(view: ImageView, words: Iterable[str]) -> bool:
    """Every word is in one of its names, its digest, or a version inside."""
    facts = (view.facts.torch, view.facts.cuda, view.facts.python)
    parts = [*view.image.tags, *view.image.digests, view.image.id, *(fact.value for fact in facts if fact)]
    text = " ".join(parts).lower()
    return all(word in text for word in words)
