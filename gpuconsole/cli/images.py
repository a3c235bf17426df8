"""``gpuconsole images``: local images with the PyTorch and CUDA inside."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from gpuconsole.cli.context import Settings, pass_settings
from gpuconsole.cli.glyphs import Glyphs, glyphs_of_stdout
from gpuconsole.cli.output import data, json_document, talk
from gpuconsole.cli.tables import Column, table
from gpuconsole.cli.verdicts import short_verdict
from gpuconsole.core.text import duration
from gpuconsole.images.reference import short_digest, shorter

if TYPE_CHECKING:
    from gpuconsole.images.facts import Fact
    from gpuconsole.services.images import ImageView

_UNKNOWN = "–"
_COLUMNS = (
    Column("IMAGE", flexible=True),
    Column("DIGEST"),
    Column("TORCH"),
    Column("CUDA"),
    Column("PYTHON"),
    Column("HERE"),
    Column("GiB", align="right"),
    Column("AGE", align="right"),
    Column("USED BY", flexible=True),
)


@click.command(
    epilog="\b\nExamples:\n  gpuconsole images\n"
    "  gpuconsole images --json | jq '.images[] | {name, torch: .facts.torch.value}'"
)
@click.option("--json", "as_json", is_flag=True, help="A JSON document.")
@click.option("-a", "--all", "every_tag", is_flag=True, help="A line for each tag, not only for each image.")
@pass_settings
def images(settings: Settings, as_json: bool, every_tag: bool) -> None:
    """List local images, the newest first, with the versions inside and the containers made from them.

    Versions are read from the image's environment, its labels, the commands it was built with and, for the official
    PyTorch images, its tag; nothing is started. What a check saw in an image counts more than all of these. A dash is
    "not said anywhere". --json names the source of each. HERE says whether the image runs with this machine's driver
    and GPUs, as far as that is known; 'gpuconsole image inspect' gives the reasons.
    """
    from gpuconsole.services.fitting import engine_machine
    from gpuconsole.services.images import read_histories, view_images
    from gpuconsole.services.seenimages import seen_images

    session = settings.session()
    here = engine_machine(session)
    found = session.engine.images()
    histories = read_histories(session.engine, found)
    views = view_images(found, session.engine.containers(), here.traits, histories=histories, seen=seen_images())
    if as_json:
        from gpuconsole.cli.container_document import endpoint_part

        json_document("images", endpoint=endpoint_part(session), images=[image_document(view) for view in views])
        return
    if not views:
        talk(f"No images at {session.endpoint.url}.")
        return
    now = time.time()
    glyphs = glyphs_of_stdout()
    rows = [row for view in views for row in _rows(view, glyphs, every_tag=every_tag, now=now)]
    data(glyphs.text(table(_COLUMNS, rows)))
    for view in views:
        for sentence in _talk(view):
            talk(f"{view.image.name}: {sentence}.")


def _talk(view: ImageView) -> Iterator[str]:
    """What the table has no room for: who looked inside, facts that disagree, and why an image will not run here."""
    from gpuconsole.images.facts import Source
    from gpuconsole.images.verdict import Word

    torch = view.facts.torch
    if torch is not None and torch.source is Source.CHECK:
        yield f"what is inside was seen in {torch.key}"
    yield from view.facts.contradictions
    if view.verdict is not None and view.verdict.word is Word.WILL_NOT_RUN:
        yield f"will not run here: {view.verdict.reasons[0].text}"


def _rows(view: ImageView, glyphs: Glyphs, *, every_tag: bool, now: float) -> Iterator[tuple[str, ...]]:
    image, facts = view.image, view.facts
    names = image.tags or (shorter(image.name),)
    shown = names if every_tag else names[:1]
    more = f" (+{len(names) - 1})" if len(names) > len(shown) else ""
    for name in shown:
        yield (
            f"{name}{more}",
            short_digest(image.digests[0]) if image.digests else _UNKNOWN,
            _version(facts.torch, parts=3),
            "CPU only" if facts.cpu_only else _version(facts.cuda, parts=3),
            _version(facts.python, parts=3),
            _UNKNOWN if view.verdict is None else short_verdict(view.verdict.word, glyphs),
            _UNKNOWN if image.size_bytes is None else f"{image.size_bytes / 2**30:.1f}",
            _UNKNOWN if image.created_at is None else duration(now - image.created_at),
            ",".join(view.used_by) or _UNKNOWN,
        )


def _version(fact: Fact | None, *, parts: int) -> str:
    """A version short enough for a table: ``2.9.0a0+145a3a7bda`` is ``2.9.0a0``, ``13.0.2.006`` is ``13.0.2``."""
    return _UNKNOWN if fact is None else ".".join(fact.value.partition("+")[0].split(".")[:parts])


def _verdict_part(view: ImageView) -> dict[str, Any]:
    verdict = view.verdict
    if verdict is None:
        return {"verdict": None, "reasons": [], "needs": {}}
    reasons = [{"id": reason.id, "text": reason.text} for reason in verdict.reasons]
    return {"verdict": verdict.word, "reasons": reasons, "needs": verdict.needs}


def image_document(view: ImageView) -> dict[str, Any]:
    """One image as ``images --json`` lists it."""
    from gpuconsole.services.secrets import mask_arguments, mask_value

    image = view.image
    return {
        "id": image.id,
        "name": image.name,
        "tags": image.tags,
        "digests": image.digests,
        "size_bytes": image.size_bytes,
        "created_at": image.created_at,
        "architecture": image.architecture,
        "os": image.os,
        "facts": view.facts,
        "seen_at": view.facts.seen_at,
        **_verdict_part(view),
        "used_by": view.used_by,
        "entrypoint": mask_arguments(image.entrypoint),
        "command": mask_arguments(image.command),
        "working_dir": image.working_dir,
        "runs_as": image.user,
        "labels": {name: mask_value(name, value) for name, value in image.labels.items()},
    }
