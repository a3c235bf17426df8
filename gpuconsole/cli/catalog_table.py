"""The catalog for people: a verdict in a word and a glyph, why, and what would run instead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gpuconsole.cli.glyphs import Glyphs, glyphs_of_stdout
from gpuconsole.cli.output import data, paint, talk
from gpuconsole.cli.tables import width_of, wrapped
from gpuconsole.cli.verdicts import COLOURS, verdict_words
from gpuconsole.engine.model import GpuPath
from gpuconsole.images.catalog import Evidence
from gpuconsole.images.verdictwords import OF_THE_MACHINE, explained, grouped
from gpuconsole.images.versions import capability_text

if TYPE_CHECKING:
    from gpuconsole.images.verdict import GpuTraits
    from gpuconsole.services.catalog import CatalogView
    from gpuconsole.services.fitting import Machine

_WIDTH = 80
_INDENT = " " * 4
_UNSEEN = "*"
_PATHS = {
    GpuPath.CDI: "CDI",
    GpuPath.HOOK: "NVIDIA's hook",
    GpuPath.RUNTIME: "NVIDIA's runtime",
    GpuPath.NONE: "no way",
}


def write_catalog(here: Machine, views: Sequence[CatalogView], *, everything: bool) -> None:
    """Write the machine and the images to stdout, and to stderr what a reader should know besides."""
    glyphs = glyphs_of_stdout()
    width = min(glyphs.width or _WIDTH, 120)
    lines = list(_machine(here, width))
    for recommended in (True, False):
        group = [view for view in views if view.recommended is recommended]
        if group and everything:
            lines += ["", "RECOMMENDED" if recommended else "ALL OTHERS"]
        elif group:
            lines.append("")
        for view in group:
            lines += _image(view, glyphs, width)
    data("\n".join(glyphs.text(line) for line in lines))
    if any(view.image.evidence is Evidence.INFERRED for view in views):
        talk(f"{_UNSEEN} nobody was seen using this tag; its runtime or devel twin is known.")
    if any(reason.id in OF_THE_MACHINE for view in views for reason in view.verdict.reasons):
        talk("What is not known of the machine can be given: --driver 580.95.05 --gpu NAME (or --cc 8.9).")
    if not everything:
        talk("'gpuconsole catalog --all' lists every image.")


def _machine(here: Machine, width: int) -> Iterator[str]:
    traits = here.traits
    parts = [
        f"driver {traits.driver}" if traits.driver else "driver –",
        traits.architecture or "processor –",
        f"GPUs by {_PATHS[here.gpu_path]}",
    ]
    yield from _wrapped(" · ".join(parts), width, "")
    for words, label in grouped((_gpu_words(gpu), gpu.label) for gpu in traits.gpus):
        yield from _wrapped(label if words in label else f"{label} · {words}", width, "")
    facts: dict[str, list[str]] = {}
    for fact, why in () if here.described else here.unknown.items():
        facts.setdefault(why, []).append(fact.replace("_", " ").replace("gpu", "GPU"))
    for why, names in facts.items():
        yield from _wrapped(f"{', '.join(names)}: {why}", width, "")


def _gpu_words(gpu: GpuTraits) -> str:
    cc = capability_text(gpu.capability) if gpu.capability else "–"
    return f"compute capability {cc}"


def _image(view: CatalogView, glyphs: Glyphs, width: int) -> Iterator[str]:
    image, word = view.image, view.verdict.word
    words = f"{verdict_words(word, glyphs):14}"
    mark = f" {_UNSEEN}" if image.evidence is Evidence.INFERRED else ""
    torch = (image.torch or "–").partition("+")[0]
    cuda = ".".join((image.cuda or "–").split(".")[:2])
    rest = f"  {image.reference:46}  {torch:8}  {cuda}{mark}".rstrip()
    if width_of(words + rest) <= width:
        yield paint(words, COLOURS[word]) + rest
    else:
        yield paint(words.rstrip(), COLOURS[word])
        yield from _wrapped(f"{image.reference}{mark}", width, _INDENT)
        yield from _wrapped(f"torch {torch} · CUDA {cuda}", width, _INDENT)
    for sentence in _sentences(view):
        yield from _wrapped(sentence, width, _INDENT)


def _sentences(view: CatalogView) -> Iterator[str]:
    yield from explained(view.verdict)
    if view.image.gone:
        yield "its registry says that there is no such image any more"
    if view.instead is not None:
        yield f"→ instead: {view.instead.reference}"
    yield from (reason.text for reason in view.verdict.reasons if reason.id == "facts-unsure")
    if view.image.note:
        yield f"note: {view.image.note}"


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    return wrapped(text, width, first=indent, rest=f"{indent}  ", whole_words=True)
