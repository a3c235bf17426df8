"""An image in full: names, versions inside and who says so, what it does when started."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuconsole.core.text import duration, shorten, size
from gpuconsole.images.facts import Fact, ImageFacts
from gpuconsole.images.versions import capability_text
from gpuconsole.services.endings import state_words
from gpuconsole.services.images import ImageView
from gpuconsole.services.runs import Run, RunKind
from gpuconsole.services.secrets import mask_arguments, mask_text
from gpuconsole.tui.keymap import USUAL, Keymap
from gpuconsole.tui.present import details
from gpuconsole.tui.present import verdict as verdicts
from gpuconsole.tui.present.benchbrief import bench_field
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.present.container import check_cell
from gpuconsole.tui.present.details import Field, Line, field, unknown
from gpuconsole.tui.theme import Glyphs

if TYPE_CHECKING:
    from gpuconsole.engine.model import Container, Image, ImageStep
    from gpuconsole.images.compatibility import Kernels
    from gpuconsole.services.shelf import Hold

_MOST_LAYERS = 60
_STEP = 400
"""Characters of a build command that are shown."""


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


@dataclass(frozen=True, slots=True)
class Known:
    """What is known beside the image itself."""

    now: float
    glyphs: Glyphs
    runs: Sequence[Run] = ()
    keys: Keymap = USUAL
    holds: Sequence[Hold] = ()
    """The lock files that hold it."""
    steps: Sequence[ImageStep] | None = None
    """How it was made; None when nobody asked, or the engine does not tell."""
    containers: Sequence[Container] = ()
    """All containers."""


def fields(view: ImageView, known: Known) -> tuple[Field, ...]:
    """Everything known of an image."""
    image, keys, now, glyphs = view.image, known.keys, known.now, known.glyphs
    return (
        field("names", *(image.tags or (Cell("none", "dim"),))),
        Field("runs here", verdicts.lines(view.verdict, glyphs)),
        Field("inside", _inside(view, keys)),
        holds_field(known.holds, keys),
        _check_field(view, known),
        bench_field(known.runs, image.id, now=now, glyphs=glyphs, keys=keys, action="image.bench"),
        _users(image, known),
        field("size", size(image.size_bytes) if image.size_bytes is not None else unknown("the engine does not tell")),
        field("made", f"{duration(now - image.created_at)} ago" if image.created_at else unknown("it does not tell")),
        field("made for", "/".join(part for part in (image.os, image.architecture) if part)),
        field("digests", *image.digests),
        field("id", image.id),
        field("starts", shlex.join(mask_arguments((*image.entrypoint, *image.command)))),
        field("as user", image.user or "root"),
        field("directory", image.working_dir),
        Field("layers", _layers(known.steps)),
        Field("environment", details.variables(image.environment)),
        Field("labels", details.labels(image.labels.items())),
    )


def _check_field(view: ImageView, known: Known) -> Field:
    """The checks of the image itself; while there was none, the one in a container of it that told what is inside."""
    own = details.check_field(
        known.runs, view.image.id, now=known.now, glyphs=known.glyphs, keys=known.keys, action="image.check"
    )
    at, checks = view.facts.seen_at, [run for run in known.runs if run.kind is RunKind.CHECK]
    mine = [run for run in checks if run.subject_id == view.image.id]
    if at is None or any(run.ended for run in mine):
        return own
    by = next((run for run in checks if at == (run.ended_at or run.started_at)), None)
    where = f"the container {by.subject}, which was made from it," if by is not None else "a container of it"
    words = f"a check of {where} told what is inside, {duration(known.now - at)} ago"
    lines: list[Line] = [(Cell("seen  "), Cell(words))]
    if by is not None:
        verdict = check_cell(by, known.glyphs)
        lines.append((Cell(f"there {verdict.text}  ", verdict.tone), Cell(by.headline)))
    if mine:  # one of its own is under way
        return Field(own.title, (*own.lines, *lines))
    lines.append((Cell(f"{known.keys.name('image.check')} checks the image itself, in a fresh container", "dim"),))
    return Field(own.title, tuple(lines))


def holds_field(holds: Sequence[Hold], keys: Keymap) -> Field:
    """The lock files that hold it."""
    lines: list[Line] = [(Cell(f"{hold.lock}  "), Cell(f"as {hold.reference}", "dim")) for hold in holds]
    return Field("pinned", tuple(lines) or ((Cell(f"no; {keys.name('image.pin')} pins it", "dim"),),))


def _users(image: Image, known: Known) -> Field:
    lines: list[Line] = [
        (Cell(f"{each.name}  "), Cell(state_words(each, now=known.now), "dim"))
        for each in known.containers
        if each.image_id == image.id
    ]
    return Field("used by", tuple(lines) or ((Cell("no container", "dim"),),))


def _layers(steps: Sequence[ImageStep] | None) -> tuple[Line, ...]:
    """The steps that brought files, the newest first; the others are counted."""
    if steps is None:
        return ()
    layers = [step for step in steps if step.size_bytes]
    lines: list[Line] = [
        (Cell(f"{size(step.size_bytes):>8}  ", "strong"), Cell(shorten(_command(step.command), _STEP) or "–", "dim"))
        for step in layers[:_MOST_LAYERS]
    ]
    left, without = len(layers) - _MOST_LAYERS, len(steps) - len(layers)
    lines += [(Cell(f"and {left} more layers", "dim"),)] if left > 0 else []
    lines += [(Cell(f"and {without} steps without files", "dim"),)] if without else []
    return tuple(lines)


def _command(text: str) -> str:
    """A step as its Dockerfile has it, secrets masked."""
    text = text.removeprefix("/bin/sh -c ").removeprefix("#(nop)").removesuffix("# buildkit")
    return mask_text(" ".join(text.split()))


def code_words(kernels: Kernels | None) -> str:
    """The GPUs that torch has code for: ``8.0 9.0 10.0 12.0 +PTX 12.0``."""
    if kernels is None:
        return ""
    words = [capability_text(each) for each in kernels.cubins]
    return " ".join([*words, *([f"+PTX {capability_text(kernels.ptx)}"] if kernels.ptx else [])])


def _inside(view: ImageView, keys: Keymap) -> tuple[Line, ...]:
    facts = view.facts
    lines: list[Line] = [
        (Cell(f"{name:<8} "), Cell(f"{fact.value}  ", "strong"), Cell(f"says {fact.source.value} {fact.key}", "dim"))
        for name, fact in _named(facts)
    ]
    code = code_words(_kernels(view))
    lines += [(Cell(f"{'code for':<8} "), Cell(code, "strong"))] if code else []
    lines += [(Cell("CPU only: torch in it was built without CUDA", "watch"),)] if facts.cpu_only else []
    lines += [(Cell(sentence, "watch"),) for sentence in facts.contradictions]
    return tuple(lines) or ((unknown(f"nothing in it tells; {keys.name('image.check')} checks it from inside"),),)


def _kernels(view: ImageView) -> Kernels | None:
    """What its torch has code for; only where it was judged, which reads the same tables."""
    if view.verdict is None:
        return None
    from gpuconsole.images.compatibility import shipped_compatibility
    from gpuconsole.images.traits import from_local

    return next(iter(from_local(view.image, shipped_compatibility(), view.facts).kernels.values()), None)
