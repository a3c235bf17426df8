"""What a prune takes, with sizes, and what it leaves, with reasons."""

from __future__ import annotations

from collections.abc import Sequence

from gpuconsole.core.text import size
from gpuconsole.images.reference import shorter
from gpuconsole.services.imageremoval import Kept, Removal, freed_bytes
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.theme import Glyphs

Line = tuple[Cell, ...]


def chosen(taken: Sequence[Removal], *, named: bool) -> tuple[Removal, ...]:
    """What goes: images without a name, and with ``named`` also those with one."""
    return tuple(each for each in taken if named or not each.image.tags)


def total(removals: Sequence[Removal]) -> str:
    """``3 images, 21 GiB at most``."""
    if not removals:
        return "Nothing without a name is left over."
    many = f"{len(removals)} images" if len(removals) > 1 else "1 image"
    return f"{many}, {size(freed_bytes(removals))} at most: layers that other images share stay."


def lines(removals: Sequence[Removal], kept: Sequence[Kept], glyphs: Glyphs) -> list[Line]:
    """Each image that goes, then each that stays although no container needs it."""
    largest = sorted(removals, key=lambda each: -(each.freed_bytes or 0))
    found: list[Line] = [
        (Cell(f"{glyphs.critical} {size(each.image.size_bytes):>9}  ", "critical"), Cell(shorter(each.name)))
        for each in largest
    ]
    for each in kept:
        found.append((Cell(f"{glyphs.ok} stays      ", "dim"), Cell(shorter(each.image.name), "dim")))
        found.append((Cell("  "), Cell(each.need.text, "dim")))
    return found
