"""An image of the catalog that is not here, in full: what it would be here, what is inside, who has seen it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpuconsole.core.text import duration, size
from gpuconsole.tui.keymap import USUAL, Keymap
from gpuconsole.tui.present import verdict as verdicts
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.present.details import Field, Line, field
from gpuconsole.tui.present.imagedetails import code_words, holds_field
from gpuconsole.tui.theme import Glyphs

if TYPE_CHECKING:
    from gpuconsole.images.catalog import CatalogImage
    from gpuconsole.services.catalog import CatalogView
    from gpuconsole.services.shelf import Hold

_EVIDENCE = {
    "measured": "somebody ran it and printed what is inside",
    "digest": "it was seen pinned with its digest",
    "seen": "its tag is used in public files",
    "inferred": "nobody was seen using it; its runtime or devel twin was",
    "registry": "its registry was asked, and has it",
    "own": "it was entered by hand",
}


def fields(
    view: CatalogView, *, now: float, glyphs: Glyphs, holds: Sequence[Hold] = (), keys: Keymap = USUAL
) -> tuple[Field, ...]:
    """Everything known of an image of the catalog."""
    image, instead = view.image, view.instead
    here = Cell(f"not on this machine; {keys.name('image.pull')} pulls it", "dim")
    return (
        field("here", Cell("its registry says that there is no such image any more", "risk") if image.gone else here),
        Field("runs here", verdicts.lines(view.verdict, glyphs, instead=instead.reference if instead else None)),
        Field("inside", _inside(image)),
        holds_field(holds, keys),
        field("download", *_download(image)),
        field("made for", ", ".join(image.platforms or ())),
        field("digest", image.digest),
        field("known by", _EVIDENCE[image.evidence.value]),
        field("asked", f"its registry, {duration(now - image.asked_at)} ago" if image.asked_at else None),
        field("unsure", ", ".join(image.unsure)),
        field("note", image.note),
        field("from", Cell(image.source, "dim")),
    )


def _inside(image: CatalogImage) -> tuple[Line, ...]:
    from gpuconsole.images.catalog import traits
    from gpuconsole.images.compatibility import shipped_compatibility

    named = [
        ("torch", image.torch), ("CUDA", image.cuda), ("cuDNN", image.cudnn), ("NCCL", image.nccl),
        ("Python", image.python), ("system", image.os), ("kind", image.variant), ("demands", image.require),
    ]  # fmt: skip
    kernels = traits(image, shipped_compatibility()).kernels
    codes = dict.fromkeys(code_words(each) for each in kernels.values())
    named += [("code for", code) for code in codes if code]
    return tuple((Cell(f"{name:<8} "), Cell(value, "strong")) for name, value in named if value)


def _download(image: CatalogImage) -> list[str | Cell]:
    sizes = image.sizes or {}
    if not sizes:
        return [Cell("–  its registry was not asked; 'gpuconsole catalog verify' asks", "dim")]
    return [f"{size(count)} for {platform}, compressed" for platform, count in sizes.items()]
