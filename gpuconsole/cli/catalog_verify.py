"""``gpuconsole catalog verify``: ask the registries whether the catalog's images are there, and what they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from gpuconsole.cli.context import Settings, pass_settings
from gpuconsole.core.errors import ExitCode

if TYPE_CHECKING:
    from gpuconsole.cli.glyphs import Glyphs
    from gpuconsole.images.catalog import Catalog
    from gpuconsole.images.findings import Finding

_STATES = {
    None: ("✓", "+", "there", "green"),
    "gone": ("✗", "x", "gone", "red"),
    "refused": ("?", "?", "login", "yellow"),
    "limit": ("?", "?", "limit", "yellow"),
    "unreached": ("?", "?", "unreached", "yellow"),
    "answer": ("?", "?", "unclear", "yellow"),
}


@click.command(
    epilog="\b\nExamples:\n  gpuconsole catalog verify\n  gpuconsole catalog verify --all\n"
    "  gpuconsole catalog verify nvcr.io/nvidia/pytorch:25.10-py3 --json"
)
@click.argument("references", metavar="[REF]...", nargs=-1)
@click.option("-a", "--all", "everything", is_flag=True, help="Every image, not only the recommended ones.")
@click.option("--json", "as_json", is_flag=True, help="A JSON document.")
@pass_settings
def verify(settings: Settings, references: tuple[str, ...], everything: bool, as_json: bool) -> int:
    """Ask the registries for digest, platforms and size of the catalog's images; nothing is pulled.

    What they say is kept, and from then on stands in the catalog in the place of what was read elsewhere; with
    --readonly it is only shown. A registry that cannot be reached is asked once. Docker Hub counts each question as a
    pull: --all may need 'docker login'.

    The exit code is 1 when an image is gone or a registry did not answer.
    """
    from gpuconsole.cli.output import json_document, talk
    from gpuconsole.engine.docker.logins import DockerLogins
    from gpuconsole.images.findings import save_findings
    from gpuconsole.services.catalog import load_catalog
    from gpuconsole.services.verifying import verify as ask

    catalog = load_catalog()
    wanted = _wanted(catalog, references, everything=everything)
    known = {name: image.digest for name in wanted if (image := catalog.find(name)) is not None}
    found = ask(wanted, DockerLogins(), on_finding=_Counter(len(wanted)))
    path = save_findings(found) if not settings.readonly and any(each.settles for each in found) else None
    if as_json:
        json_document(
            "catalog-verify", path=path, images=[_document(each, known.get(each.reference)) for each in found]
        )
    else:
        _write(found, known)
    if path is not None:
        talk(f"Kept in {path}.")
    return int(ExitCode.OK if all(each.trouble is None for each in found) else ExitCode.FAILED)


def _wanted(catalog: Catalog, references: Sequence[str], *, everything: bool) -> list[str]:
    """The references to ask for, each once.

    Raises:
        click.BadParameter: One of those given is none.
    """
    from gpuconsole.images.reference import parse

    if not references:
        images = catalog.images if everything else catalog.recommended(None)
        return [image.reference for image in images]
    try:
        return list(dict.fromkeys(str(parse(reference)) for reference in references))
    except ValueError as error:
        raise click.BadParameter(f"{error}.", param_hint="REF") from error


class _Counter:
    """Says on a terminal how far it is."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._done = 0

    def __call__(self, _: Finding) -> None:
        import sys

        self._done += 1
        if sys.stderr.isatty():
            end = "\n" if self._done == self._count else ""
            click.echo(f"\r{self._done} of {self._count} asked", nl=False, err=True)
            click.echo(end, nl=False, err=True)


def _document(finding: Finding, known: str | None) -> dict[str, Any]:
    return {
        "reference": finding.reference,
        "state": "there" if finding.trouble is None else finding.trouble,
        "text": finding.text,
        "digest": finding.digest,
        "known_digest": known,
        "sizes_bytes": finding.sizes,
        "asked_at": finding.asked_at,
    }


def _write(found: Sequence[Finding], known: dict[str, str | None]) -> None:
    from gpuconsole.cli.glyphs import glyphs_of_stdout
    from gpuconsole.cli.output import data

    glyphs = glyphs_of_stdout()
    data("\n".join(glyphs.text(line) for each in found for line in _lines(each, known.get(each.reference), glyphs)))


def _lines(finding: Finding, known: str | None, glyphs: Glyphs) -> Iterator[str]:
    from gpuconsole.cli.output import paint
    from gpuconsole.core.text import size
    from gpuconsole.images.reference import short_digest

    glyph, ascii_glyph, word, colour = _STATES[finding.trouble]
    label = paint(f"{glyph if glyphs.unicode else ascii_glyph} {word:9}", colour)
    digest = f"  {short_digest(finding.digest)}" if finding.digest else ""
    yield f"{label}  {finding.reference:46}{digest}".rstrip()
    if finding.text:
        yield f"    {finding.text}"
    for platform, count in (finding.sizes or {}).items():
        yield f"    {platform}: {size(count)} to pull"
    if known and finding.digest and known != finding.digest:
        yield f"    another digest than the one recorded ({short_digest(known)}): the tag was moved"
