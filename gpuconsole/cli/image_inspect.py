"""``gpuconsole image inspect``: what is inside an image, and whether it runs here, in words."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from gpuconsole.cli.context import Settings, pass_settings
from gpuconsole.cli.glyphs import Glyphs, glyphs_of_stdout
from gpuconsole.cli.names import complete_image
from gpuconsole.cli.output import data, json_document, terminal_width
from gpuconsole.cli.tables import wrapped
from gpuconsole.cli.verdicts import verdict_words
from gpuconsole.core.errors import NotFound
from gpuconsole.core.text import duration, size
from gpuconsole.images.facts import Fact, Source

if TYPE_CHECKING:
    from gpuconsole.services.images import ImageView
    from gpuconsole.services.session import Session

_TITLE = 14
_UNKNOWN = "–"


@click.command(
    short_help="What is inside an image, and whether it runs here.",
    epilog="\b\nExamples:\n  gpuconsole image inspect pytorch-cuda:v2.9\n"
    "  gpuconsole image inspect pytorch-cuda:v2.9 --json | jq '.image.reasons[].text'",
)
@click.argument("name", metavar="NAME", shell_complete=complete_image)
@click.option("--json", "as_json", is_flag=True, help="A JSON document.")
@pass_settings
def inspect(settings: Settings, name: str, as_json: bool) -> None:
    """Show what is inside an image, where that was read or seen, and whether it runs here, with every reason.

    What a check saw in it ('gpuconsole check --image NAME') counts more than what the image says of itself.
    """
    from gpuconsole.cli.container_document import endpoint_part
    from gpuconsole.cli.images import image_document

    session = settings.session()
    view = _view(session, name)
    if as_json:
        json_document("image", endpoint=endpoint_part(session), image=image_document(view))
        return
    glyphs = glyphs_of_stdout()
    data(glyphs.text("\n".join(inspection(view, glyphs, now=time.time(), width=terminal_width(1 << 20)))))


def _view(session: Session, name: str) -> ImageView:
    from gpuconsole.services.fitting import engine_machine
    from gpuconsole.services.images import read_histories, view_images
    from gpuconsole.services.seenimages import seen_images

    if not name.strip():
        raise NotFound("There is no image without a name.", hint="'gpuconsole images' lists the names.")
    image = session.engine.image(name)
    here = engine_machine(session)
    histories = read_histories(session.engine, [image])
    (view,) = view_images([image], session.engine.containers(), here.traits, histories=histories, seen=seen_images())
    return view


def inspection(view: ImageView, glyphs: Glyphs, *, now: float, width: int) -> list[str]:
    """The lines of an image."""
    lines = [view.image.name]
    for title, texts in _sections(view, glyphs, now):
        for position, text in enumerate(texts):
            first = f"  {title if position == 0 else '':{_TITLE}}"
            lines += wrapped(text, width, first=first, rest=" " * (_TITLE + 2), whole_words=True)
    return lines


def _sections(view: ImageView, glyphs: Glyphs, now: float) -> Iterator[tuple[str, list[str]]]:
    image, facts = view.image, view.facts
    yield "id", [image.short_id]
    yield "also called", list(image.tags[1:])
    yield "digest", list(image.digests)
    yield "size", [size(image.size_bytes)]
    yield "made", [] if image.created_at is None else [f"{duration(now - image.created_at)} ago"]
    yield "for", [f"{image.os or 'linux'}/{image.architecture}"] if image.architecture else []
    yield "here", _verdict(view, glyphs)
    named = (
        ("torch", facts.torch), ("CUDA", facts.cuda), ("cuDNN", facts.cudnn), ("NCCL", facts.nccl),
        ("Python", facts.python), ("system", facts.system), ("NGC", facts.ngc), ("code for", facts.archs),
        ("demands", facts.require_cuda),
    )  # fmt: skip
    inside = [f"{title} {fact.value} ({_where(fact)})" for title, fact in named if fact is not None]
    yield "inside", [*inside, *(["torch is a CPU build"] if facts.cpu_only else [])] or [_UNKNOWN]
    yield "disagreement", [f"{text}." for text in facts.contradictions]
    yield "used by", [", ".join(view.used_by)] if view.used_by else []
    yield "user", [image.user] if image.user else []
    yield "directory", [image.working_dir] if image.working_dir else []


def _where(fact: Fact) -> str:
    """``label gpuconsole.torch``, ``a check on 2026-11-30``."""
    return fact.key if fact.source is Source.CHECK else f"{fact.source} {fact.key}"


def _verdict(view: ImageView, glyphs: Glyphs) -> list[str]:
    verdict = view.verdict
    if verdict is None:
        return [_UNKNOWN]
    lines = [verdict_words(verdict.word, glyphs), *(f"{reason.text}" for reason in verdict.reasons)]
    if view.facts.seen_at is None and not view.facts.archs:
        lines.append(f"No check of it is remembered: gpuconsole check --image {view.image.name}")
    return lines
