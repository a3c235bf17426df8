"""An image in full: names, versions inside and who says so, what it does when started."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from gpuconsole.core.text import duration, size
from gpuconsole.images.facts import Fact, ImageFacts
from gpuconsole.services.images import ImageView
from gpuconsole.services.runs import Run
from gpuconsole.services.secrets import mask_arguments
from gpuconsole.tui.keymap import USUAL, Keymap
from gpuconsole.tui.present import details
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.present.details import Field, Line, field, unknown
from gpuconsole.tui.theme import Glyphs


def _named(facts: ImageFacts) -> list[tuple[str, Fact]]:
    named = [
        ("torch", facts.torch), ("CUDA", facts.cuda), ("cuDNN", facts.cudnn), ("NCCL", facts.nccl),
        ("Python", facts.python), ("system", facts.system), ("NGC", facts.ngc), ("kind", facts.kind),
        ("demands", facts.require_cuda),
    ]  # fmt: skip
    return [(name, fact) for name, fact in named if fact is not None]


def facts_words(facts: ImageFacts | None) -> str:
    """Versions in one line: ``torch 2.9.0 · CUDA 12.8``."""
    if facts is None:
        return ""
    words = [f"{name} {fact.value}" for name, fact in _named(facts) if name != "demands"]
    return " · ".join([*words, *(["CPU only"] if facts.cpu_only else [])])


def fields(
    view: ImageView, *, now: float, glyphs: Glyphs, runs: Sequence[Run] = (), keys: Keymap = USUAL
) -> tuple[Field, ...]:
    """Everything known of an image."""
    image = view.image
    return (
        field("names", *(image.tags or (Cell("none", "dim"),))),
        Field("inside", _inside(view.facts, keys)),
        details.check_field(runs, image.id, now=now, glyphs=glyphs, keys=keys, action="image.check"),
        field("used by", ", ".join(view.used_by) or Cell("no container", "dim")),
        field("size", size(image.size_bytes) if image.size_bytes is not None else unknown("the engine does not tell")),
        field("made", f"{duration(now - image.created_at)} ago" if image.created_at else unknown("it does not tell")),
        field("made for", "/".join(part for part in (image.os, image.architecture) if part)),
        field("digests", *image.digests),
        field("id", image.id),
        field("starts", shlex.join(mask_arguments((*image.entrypoint, *image.command)))),
        field("as user", image.user or "root"),
        field("directory", image.working_dir),
        Field("environment", details.variables(image.environment)),
        Field("labels", details.labels(image.labels.items())),
    )


def _inside(facts: ImageFacts, keys: Keymap) -> tuple[Line, ...]:
    lines: list[Line] = [
        (Cell(f"{name:<8}"), Cell(f"{fact.value}  ", "strong"), Cell(f"says {fact.source.value} {fact.key}", "dim"))
        for name, fact in _named(facts)
    ]
    lines += [(Cell("CPU only: torch in it was built without CUDA", "watch"),)] if facts.cpu_only else []
    lines += [(Cell(sentence, "watch"),) for sentence in facts.contradictions]
    return tuple(lines) or ((unknown(f"nothing in it tells; {keys.name('image.check')} checks it from inside"),),)
