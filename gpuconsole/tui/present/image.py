"""An image as a row: one that is here, or one of the catalog that could be pulled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from gpuconsole.core.text import amount, duration
from gpuconsole.images.reference import is_ngc_pytorch, is_pytorch, parse, short, shorter
from gpuconsole.services.kinds import is_image
from gpuconsole.services.runs import Run
from gpuconsole.tui.present import verdict as verdicts
from gpuconsole.tui.present.cell import EMPTY, Cell, Column, Row
from gpuconsole.tui.present.container import check_cell
from gpuconsole.tui.theme import Glyphs

if TYPE_CHECKING:
    from gpuconsole.images.facts import Fact
    from gpuconsole.services.catalog import CatalogView
    from gpuconsole.services.images import ImageView
    from gpuconsole.services.shelf import Hold

COLUMNS = (
    Column("name", "IMAGE", 24, grow=3),
    Column("pin", "PIN", 3, rank=1),
    Column("here", "RUNS HERE", 14),
    Column("why", "WHY", 26, grow=5, rank=4),
    Column("torch", "TORCH", 7),
    Column("cuda", "CUDA", 6),
    Column("python", "PYTHON", 7, rank=6),
    Column("size", "SIZE", 7, align="right", rank=1),
    Column("created", "MADE", 6, align="right", rank=3),
    Column("check", "CHECK", 8, rank=5),
    Column("used", "USED", 4, grow=1, rank=2),
)
_PROCESSORS = {"x86_64": "amd64", "aarch64": "arm64"}
BRIEF_BELOW = 140
"""Cells of a row below which official images are named in few words."""


def row(
    view: ImageView,
    *,
    now: float,
    glyphs: Glyphs,
    check: Run | None = None,
    holds: Sequence[Hold] = (),
    brief: bool = False,
) -> Row:
    """An image that is here, as a row keyed by its id.

    Args:
        view: The image.
        now: Seconds since the epoch.
        glyphs: The signs to draw with.
        check: The last check of it.
        holds: The lock files that hold it.
        brief: Name official images in few words.
    """
    image = view.image
    used = f"{len(view.used_by)} {', '.join(view.used_by)}"
    return Row(
        image.id,
        (
            Cell(_name(image.name, brief=brief), "strong"),
            _pin(holds, glyphs),
            verdicts.cell(view.verdict, glyphs),
            Cell(verdicts.why(view.verdict), "dim"),
            _fact(view.facts.torch),
            Cell("none", "dim") if view.facts.cpu_only else _fact(view.facts.cuda),
            _fact(view.facts.python),
            Cell(amount(image.size_bytes)),
            EMPTY if not image.created_at else Cell(duration(now - image.created_at), "dim"),
            _checked(view, check, glyphs),
            Cell(used) if view.used_by else EMPTY,
        ),
    )


def _checked(view: ImageView, check: Run | None, glyphs: Glyphs) -> Cell:
    """The last check of the image; without one, whether a check in a container of it saw what is inside."""
    return Cell("seen", "dim") if check is None and view.facts.seen_at is not None else check_cell(check, glyphs)


def catalog_row(
    view: CatalogView, *, glyphs: Glyphs, holds: Sequence[Hold] = (), architecture: str = "", brief: bool = False
) -> Row:
    """An image that is not here, as a row keyed by its reference; marked by a sign too, not only by its colour."""
    image, size = view.image, download_bytes(view, architecture)
    return Row(
        image.reference,
        (
            Cell(f"{glyphs.absent} {_name(image.reference, brief=brief)}", "dim"),
            _pin(holds, glyphs),
            verdicts.cell(view.verdict, glyphs),
            Cell(verdicts.why(view.verdict), "dim"),
            _version(image.torch),
            _version(image.cuda),
            _version(image.python),
            EMPTY
            if (size := download_bytes(view, architecture)) is None
            else Cell(f"{glyphs.absent}{amount(size)}", "dim"),
            EMPTY,
            Cell(""),
            Cell("gone", "risk") if image.gone else EMPTY,
        ),
    )


def download_bytes(view: CatalogView, architecture: str = "") -> int | None:
    """Compressed bytes of a pull, when its registry told them.

    Args:
        view: The entry.
        architecture: The engine's processor, as it calls it; an image for several has a size for each.
    """
    sizes = view.image.sizes or {}
    own = sizes.get(f"linux/{_PROCESSORS.get(architecture, architecture)}")
    return next(iter(sizes.values())) if own is None and len(sizes) == 1 else own


def _name(name: str, *, brief: bool) -> str:
    return brief_name(name) if brief else shorter(name)


def brief_name(name: str) -> str:
    """An official image in few words, ``pytorch 2.9.1-cu128``; any other as it is, its digest cut."""
    try:
        reference = parse(name)
    except ValueError:
        return name
    return short(name) if is_pytorch(reference) or is_ngc_pytorch(reference) else shorter(name)


def _pin(holds: Sequence[Hold], glyphs: Glyphs) -> Cell:
    return Cell(glyphs.ok, "accent") if holds else Cell("")


def _version(text: str | None) -> Cell:
    """A version short enough for a column: ``2.9.0a0+145a3a7bda`` is ``2.9.0a0``."""
    return EMPTY if text is None else Cell(".".join(text.partition("+")[0].split(".")[:3]))


def _fact(fact: Fact | None) -> Cell:
    return _version(None if fact is None else fact.value)


def _called(thing: Any) -> str:
    return str(thing.image.name if is_image(thing) else thing.image.reference)


def _torch(thing: Any) -> str:
    told = thing.facts.torch.value if is_image(thing) and thing.facts.torch else None
    return told or (None if is_image(thing) else thing.image.torch) or ""


def _newest_first(version: str) -> tuple[bool, list[int]]:
    return not version, [-int(part) for part in version.partition("+")[0].split(".") if part.isdigit()]


_GOODNESS = {"runs": 0, "runs_with": 1, "unknown": 2, "will_not_run": 3}

SORT_KEYS: dict[str, Callable[[Any], Any]] = {
    "name": lambda thing: _called(thing).lower(),
    "here": lambda thing: _GOODNESS[thing.verdict.word.value] if thing.verdict else len(_GOODNESS),
    "created": lambda thing: -(thing.image.created_at or 0) if is_image(thing) else 0,
    "size": lambda thing: -((thing.image.size_bytes if is_image(thing) else download_bytes(thing)) or 0),
    "torch": lambda thing: _newest_first(_torch(thing)),
    "used": lambda thing: (not getattr(thing, "used_by", ()), _called(thing).lower()),
}
"""Column → what it is sorted by; those that are here always come first."""


def matches(thing: ImageView | CatalogView, words: Iterable[str]) -> bool:
    """Every word is in one of its names, its digest, a version inside, or its verdict."""
    if is_image(thing):
        facts = (thing.facts.torch, thing.facts.cuda, thing.facts.python)
        parts = [*thing.image.tags, *thing.image.digests, thing.image.id, *(fact.value for fact in facts if fact)]
    else:
        entry = thing.image
        parts = [entry.reference, *(part for part in (entry.torch, entry.cuda, entry.python, entry.digest) if part)]
    if thing.verdict is not None:
        from gpuconsole.images.verdictwords import plain_words

        parts.append(plain_words(thing.verdict.word))
    text = " ".join(parts).lower()
    return all(word in text for word in words)
