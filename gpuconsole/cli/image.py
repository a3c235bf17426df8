"""``gpuconsole image inspect | rm | prune``: one image, and what takes images away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from gpuconsole.cli.context import Settings, pass_settings
from gpuconsole.cli.image_inspect import inspect
from gpuconsole.cli.names import complete_image
from gpuconsole.cli.output import confirm, data, failure, json_document, talk
from gpuconsole.core.errors import Conflict, ConsoleError, ExitCode
from gpuconsole.core.text import size

if TYPE_CHECKING:
    from gpuconsole.services.imageremoval import Keeper, Kept, Removal, Removed

_PRUNE = "image-prune"

_yes = click.option("-y", "--yes", is_flag=True, help="Do not ask.")
_dry = click.option("-n", "--dry-run", is_flag=True, help="Only list what would go.")
_json = click.option("--json", "as_json", is_flag=True, help="A JSON document.")


@click.group(
    epilog="\b\nExamples:\n  gpuconsole image inspect team/train:1\n"
    "  gpuconsole image rm team/train:1\n  gpuconsole image prune --all --dry-run\n"
    "\b\n'gpuconsole images' lists what is here."
)
def image() -> None:
    """Look into an image, or take images away: never one that a lock file pins or a container was made from."""


image.add_command(inspect)


@image.command(
    short_help="Remove images by name or id.",
    epilog="\b\nExamples:\n  gpuconsole image rm pytorch/pytorch:2.8.0-cuda12.6-cudnn9-runtime\n"
    "  gpuconsole image rm -y team/train:1 team/train:2",
)
@click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=complete_image)
@_yes
@_dry
@_json
@pass_settings
def rm(settings: Settings, names: tuple[str, ...], yes: bool, dry_run: bool, as_json: bool) -> int:
    """Remove images: a tag, and with its last tag the image; by its id the image with all its tags.

    It says what would go and what that frees, and asks. An image that is pinned (in any project of yours) or that a
    container was made from stays.
    """
    from gpuconsole.services.imageremoval import removal

    if not dry_run:
        settings.may_change("remove an image")
    engine, keeper = settings.session().engine, _keeper(settings)
    found: list[Removal] = []
    worst = 0
    for name in dict.fromkeys(names):
        try:
            found.append(removal(engine, name, keeper))
        except ConsoleError as error:
            failure(error, detail=settings.debug)
            worst = max(worst, int(error.exit_code))
    if not found:
        if as_json:
            _document("image-rm", found, (), (), dry_run=dry_run)
        return worst
    return max(worst, _take(settings, "image-rm", found, (), yes=yes, dry_run=dry_run, as_json=as_json))


@image.command(
    short_help="Remove images that nothing needs.",
    epilog="\b\nExamples:\n  gpuconsole image prune\n  gpuconsole image prune --all --dry-run\n"
    "  gpuconsole image prune --all --yes",
)
@click.option("-a", "--all", "everything", is_flag=True, help="Also images with a tag that no container needs.")
@_yes
@_dry
@_json
@pass_settings
def prune(settings: Settings, everything: bool, yes: bool, dry_run: bool, as_json: bool) -> int:
    """Remove images without a tag that no container was made from: what moved tags and builds leave behind.

    It lists them with their sizes and asks. What a lock file of yours pins stays, also without a tag and also with
    --all; pins of other users are not known here.
    """
    from gpuconsole.services.imageremoval import prunable

    if not dry_run:
        settings.may_change("remove images")
    taken, kept = prunable(settings.session().engine, _keeper(settings), everything=everything)
    if not taken:
        if as_json:
            _document(_PRUNE, (), (), kept, dry_run=dry_run)
        else:
            _tell_kept(kept)
            talk("Nothing to remove." + ("" if everything else " --all looks at images with a tag too."))
        return ExitCode.OK
    return _take(settings, _PRUNE, taken, kept, yes=yes, dry_run=dry_run, as_json=as_json)


def _keeper(settings: Settings) -> Keeper:
    from gpuconsole.services.imageremoval import Keeper
    from gpuconsole.services.lockfile import all_pins

    return Keeper(settings.session().engine, all_pins())


def _take(
    settings: Settings,
    schema: str,
    found: Sequence[Removal],
    kept: Sequence[Kept],
    *,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """List, ask, remove and tell; gives the exit code."""
    from gpuconsole.services.imageremoval import Kept, Need, freed_bytes, remove

    _tell_kept(kept)
    for each in found:
        talk(f"  {_words(each)}")
    total = freed_bytes(found)
    many = f"{len(found)} images" if len(found) > 1 else found[0].name
    if dry_run:
        talk(f"Nothing was removed. It would free {size(total)} at most.")
        removed: Sequence[Removed] = ()
    else:
        confirm(f"Remove {many}, {size(total)} at most?", assume_yes=yes)
        removed = remove(settings.session().engine, found)
    if schema == _PRUNE:
        # Whatever something needs is not what a prune takes, also where that shows only now.
        held = [each for each in removed if isinstance(each.error, Conflict)]
        removed = [each for each in removed if each not in held]
        late = [Kept(each.removal.image, Need(_lower(each.error), "")) for each in held]
        _tell_kept(late)
        kept = (*kept, *late)
    failures = [each for each in removed if each.error is not None]
    if as_json:
        _document(schema, found, removed, kept, dry_run=dry_run)
    else:
        for done in removed:
            if done.error is None:
                data(done.removal.name)
    for done in failures:
        if done.error is not None:
            talk(f"gpuconsole: {done.removal.name} stays: {done.error.message}")
    return max((int(done.error.exit_code) for done in failures if done.error), default=ExitCode.OK)


def _lower(error: ConsoleError | None) -> str:
    """Its sentence as half of one."""
    text = error.message.rstrip(".") if error else ""
    return text[:1].lower() + text[1:]


def _tell_kept(kept: Sequence[Kept]) -> None:
    for each in kept:
        talk(f"  {each.image.name} stays: {each.need.text}.")


def _words(each: Removal) -> str:
    if not each.whole:
        others = len(each.image.tags) - len(each.names)
        return f"{each.name}: only this name; the image stays under {others} more"
    more = f" ({', '.join(each.names[1:])})" if len(each.names) > 1 else ""
    return f"{each.name}{more}: {size(each.image.size_bytes)}"


def _document(
    schema: str, found: Sequence[Removal], removed: Sequence[Removed], kept: Sequence[Kept], *, dry_run: bool
) -> None:
    from gpuconsole.services.imageremoval import freed_bytes

    gone = [each.removal for each in removed if each.error is None]
    json_document(
        schema,
        dry_run=dry_run,
        images=[_row(each) for each in (found if dry_run else gone)],
        failed=[
            {**_row(each.removal), "message": each.error.message, "hint": each.error.hint}
            for each in removed
            if each.error is not None
        ],
        kept=[{"id": each.image.id, "name": each.image.name, "why": each.need.text} for each in kept],
        freed_bytes_at_most=freed_bytes(found if dry_run else gone),
    )


def _row(each: Removal) -> dict[str, Any]:
    return {
        "id": each.image.id,
        "name": each.name,
        "names": each.names,
        "whole": each.whole,
        "size_bytes": each.image.size_bytes,
    }
