"""``gpuconsole pin``: images of a project held to their digests."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from gpuconsole.cli.context import Settings, pass_settings
from gpuconsole.cli.names import complete_pinned
from gpuconsole.cli.output import data, failure, json_document, result, talk
from gpuconsole.core.errors import ConsoleError, ExitCode, NotFound

if TYPE_CHECKING:
    from gpuconsole.images.pins import Pin
    from gpuconsole.images.reference import Reference
    from gpuconsole.services.lockfile import LockFile
    from gpuconsole.services.pins import PinCheck, Pinner, Resolved

_UNKNOWN = "–"


@click.command(
    epilog="\b\nExamples:\n  gpuconsole pin pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime\n"
    "  gpuconsole pin                # what is pinned in this folder\n"
    "  gpuconsole pin --check        # has a tag moved? is an image gone?\n"
    "  gpuconsole pin --update       # take what the tags lead to now\n"
    "\b\nThe lock file is gpuconsole.lock in the nearest folder upward that has one, else in this one.\n"
    "'gpuconsole launch' starts what it says. Exit codes of --check: 0 all is as pinned; 1 a tag\n"
    "moved, an image is gone, or a registry gave no answer."
)
@click.argument("references", metavar="[REF]...", nargs=-1, shell_complete=complete_pinned)
@click.option("--check", is_flag=True, help="Ask whether the tags still lead to the pinned images.")
@click.option("--update", is_flag=True, help="Pin what the tags lead to now; without REF all.")
@click.option("--remove", is_flag=True, help="Take pins away.")
@click.option("--json", "as_json", is_flag=True, help="A JSON document.")
@pass_settings
def pin(settings: Settings, references: tuple[str, ...], check: bool, update: bool, remove: bool, as_json: bool) -> int:
    """Pin images by digest in the project's lock file; without REF list its pins.

    An image that is here is pinned as it is here; for one that is not, the registry is asked. One that no registry
    gave is pinned by its id, which is good for this machine only.
    """
    from gpuconsole.services.lockfile import lock_file
    from gpuconsole.services.pullruns import read_reference

    doing = [name for name, given in (("--check", check), ("--update", update), ("--remove", remove)) if given]
    if len(doing) > 1:
        raise click.UsageError(f"{' and '.join(doing)} do not go together; do one after the other.")
    wanted = list(dict.fromkeys(read_reference(text) for text in references))
    if remove and not wanted:
        raise click.UsageError("--remove needs the images whose pins are to go.")
    lock = lock_file()
    if lock.note:
        talk(f"Note: {lock.note}")
    if check or not (doing or wanted):
        return _look(settings, lock, wanted, check=check, as_json=as_json)
    settings.may_change("change pins")
    if remove:
        return _remove(lock, wanted, as_json=as_json)
    return _pin(settings, lock, wanted, update=update, as_json=as_json)


def _chosen(lock: LockFile, wanted: Sequence[Reference]) -> list[Pin]:
    """The pins that are meant, all without a choice.

    Raises:
        NotFound: One is not pinned.
        BadFile: The lock file has mistakes.
    """
    pins = lock.pins()
    missing = [str(reference) for reference in wanted if str(reference) not in pins]
    if missing:
        raise NotFound(
            f"{lock.shown} does not pin {', '.join(missing)}.",
            hint=f"'gpuconsole pin' lists what it pins; 'gpuconsole pin {missing[0]}' pins that.",
        )
    return [pins[str(reference)] for reference in wanted] if wanted else list(pins.values())


def _pinner(settings: Settings) -> Pinner:
    from gpuconsole.services.pins import Pinner
    from gpuconsole.services.pullobstacles import registries

    return Pinner(settings.session(), registries())


def _look(settings: Settings, lock: LockFile, wanted: Sequence[Reference], *, check: bool, as_json: bool) -> int:
    """List pins, with what their registries say of them if asked."""
    from gpuconsole.services.pins import PinState

    pins = _chosen(lock, wanted)
    pinner = _pinner(settings) if pins else None
    checks: Sequence[PinCheck | None] = pinner.check(pins) if pinner and check else [None] * len(pins)
    here = [said.here if said else pinner.here(each) for each, said in zip(pins, checks, strict=True)] if pinner else []
    good = all(each is None or each.state is PinState.SAME for each in checks)
    code = ExitCode.OK if good else ExitCode.FAILED
    if as_json:
        rows = [_row(each, is_here, said) for each, is_here, said in zip(pins, here, checks, strict=True)]
        json_document("pins", lock_file=lock.path, pins=rows)
        return code
    if not pins:
        talk(f"Nothing is pinned here: there is no {lock.shown}, or it is empty.")
        talk("  → Pin an image: gpuconsole pin REF")
        return code
    _table(pins, here, checks)
    talk(f"Pinned in {lock.shown}.")
    for said in checks:
        if said is not None and said.state is not PinState.SAME:
            talk(f"{said.pin.reference}: {said.text}.")
    if any(said is not None and said.state is PinState.MOVED for said in checks):
        talk("  → gpuconsole pin --update REF takes the new one; until then launches start the pinned one.")
    return code


def _table(pins: Sequence[Pin], here: Sequence[bool | None], checks: Sequence[PinCheck | None]) -> None:
    from gpuconsole.cli.glyphs import glyphs_of_stdout
    from gpuconsole.cli.tables import Column, table
    from gpuconsole.core.text import size

    columns = [Column("IMAGE", flexible=True), Column("PINNED TO"), Column("PLATFORM"), Column("SIZE", align="right")]
    columns += [Column("SINCE"), Column("HERE")]
    checked = any(each is not None for each in checks)
    if checked:
        columns.append(Column("NOW"))
    rows = []
    for each, is_here, said in zip(pins, here, checks, strict=True):
        row = [
            each.reference,
            _content(each),
            each.platform or _UNKNOWN,
            size(each.size_bytes),
            each.pinned.isoformat() if each.pinned else _UNKNOWN,
            _UNKNOWN if is_here is None else "yes" if is_here else "no",
        ]
        rows.append([*row, said.state.value if said else _UNKNOWN] if checked else row)
    data(glyphs_of_stdout().text(table(columns, rows)))


def _content(pin: Pin) -> str:
    digits = pin.content.removeprefix("sha256:")[:12]
    return f"@{digits}" if pin.digest else f"id {digits}"


def _row(pin: Pin, here: bool | None, said: PinCheck | None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "reference": pin.reference,
        "digest": pin.digest,
        "id": pin.image_id,
        "platform": pin.platform,
        "size_bytes": pin.size_bytes,
        "download_bytes": pin.download_bytes,
        "pinned": pin.pinned.isoformat() if pin.pinned else None,
        "here": here,
    }
    if said is not None:
        row |= {"state": said.state, "text": said.text, "now": said.now, "checked_at": time.time()}
    return row


def _remove(lock: LockFile, wanted: Sequence[Reference], *, as_json: bool) -> int:
    gone = _chosen(lock, wanted)
    names = {each.reference for each in gone}
    lock.change(lambda pins: {name: each for name, each in pins.items() if name not in names})
    if as_json:
        json_document("pins", lock_file=lock.path, removed=[_row(each, None, None) for each in gone])
    else:
        for each in gone:
            data(each.reference)
        talk(f"Pinned no more in {lock.shown}.")
    return ExitCode.OK


def _pin(settings: Settings, lock: LockFile, wanted: Sequence[Reference], *, update: bool, as_json: bool) -> int:
    """Pin what is named; with ``update`` what its tag leads to now."""
    from gpuconsole.images.reference import parse

    before = lock.pins()
    if update:
        chosen = _chosen(lock, wanted)
        # A pin whose name has the digest in it cannot move.
        wanted = [reference for each in chosen if (reference := parse(each.reference)).digest is None]
    pinner = _pinner(settings)
    found, worst = _resolved(settings, pinner, wanted, update=update)
    fresh = {name: each.pin for name, each in found.items() if _differs(before.get(name), each.pin)}
    if fresh:
        lock.change(lambda pins: {**pins, **fresh})
        for new in fresh.values():
            pinner.hold(new)
    for each in found.values():
        for note in each.notes:
            talk(f"Note: {note}")
    if as_json:
        rows = [
            _row(each.pin, pinner.here(each.pin), None)
            | {"before": _before(before.get(name)), "changed": name in fresh}
            for name, each in found.items()
        ]
        json_document("pins", lock_file=lock.path, pins=rows)
        return worst
    for name, each in found.items():
        _tell(each.pin, before.get(name), pinner, changed=name in fresh)
    if found:
        talk(f"Pinned in {lock.shown}.")
    elif update and not worst:
        talk(f"{lock.shown} pins nothing that could move.")
    return worst


def _resolved(
    settings: Settings, pinner: Pinner, wanted: Sequence[Reference], *, update: bool
) -> tuple[dict[str, Resolved], int]:
    """What each means; one that cannot be resolved is told, and its exit code given."""
    found: dict[str, Resolved] = {}
    worst = 0
    for reference in wanted:
        try:
            found[str(reference)] = pinner.newest(reference) if update else pinner.meaning(reference)
        except ConsoleError as error:
            failure(error, detail=settings.debug)
            worst = max(worst, int(error.exit_code))
    return found, worst


def _differs(before: Pin | None, now: Pin) -> bool:
    """It is another image, or more is known of it; the day alone changes nothing."""
    if before is None or before.content != now.content:
        return True
    return now.size_bytes is not None and before.size_bytes is None


def _before(pin: Pin | None) -> str | None:
    return None if pin is None else pin.content


def _tell(pin: Pin, before: Pin | None, pinner: Pinner, *, changed: bool) -> None:
    if pin.digest is None or "@" in pin.reference:
        result(pin.image)
    else:
        result(f"{pin.reference}@{pin.digest}")
    if before is not None and before.content != pin.content:
        talk(f"{pin.reference}: {_content(before)} before, {_content(pin)} now.")
    elif before is not None:
        talk(f"{pin.reference}: as before.")
    if changed and pinner.here(pin) is False:
        talk(f"  It is not here yet: gpuconsole pull {pin.reference if '@' in pin.reference else pin.image}")
