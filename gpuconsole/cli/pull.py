"""``gpuconsole pull``: images brought here, with progress, and pinned if asked."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from gpuconsole.cli.context import Settings, pass_settings
from gpuconsole.cli.names import complete_reference
from gpuconsole.cli.output import failure, json_event, result, talk
from gpuconsole.core.errors import ConsoleError, ExitCode
from gpuconsole.core.text import size
from gpuconsole.images.reference import shorter

if TYPE_CHECKING:
    from gpuconsole.cli.pull_progress import Teller
    from gpuconsole.engine.protocol import Engine
    from gpuconsole.images.reference import Reference
    from gpuconsole.services.cancelling import Cancellation
    from gpuconsole.services.pullruns import Pulled, Puller
    from gpuconsole.services.session import Session


@click.command(
    epilog="\b\nExamples:\n  gpuconsole pull pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime\n"
    "  gpuconsole pull --pin nvcr.io/nvidia/pytorch:25.10-py3\n"
    "  gpuconsole pull IMAGE-A IMAGE-B --json | jq -r 'select(.event == \"pulled\") | .digest'\n"
    "\b\nCtrl+c ends it in the engine too and leaves nothing half made. Logins are Docker's own\n"
    "('docker login'); nvcr.io takes the user $oauthtoken and an NGC API key."
)
@click.argument("references", metavar="[REF]...", nargs=-1, shell_complete=complete_reference)
@click.option("--pin", "pin_too", is_flag=True, help="Write the digests into the folder's gpuconsole.lock.")
@click.option("--force", is_flag=True, help="Also when the engine's disk seems too small.")
@click.option("--json", "as_json", is_flag=True, help="JSON Lines, the schema first.")
@pass_settings
def pull(settings: Settings, references: tuple[str, ...], pin_too: bool, force: bool, as_json: bool) -> int:
    """Pull images, several at once, and print the name with the digest that brings each back.

    What the folder's gpuconsole.lock pins is pulled as it is pinned; without REF all of it is.

    Before it, the registry is asked for the sizes, and the engine's disk is looked at: an image lies there compressed
    and unpacked. An image that will not run on this machine is told before it is pulled.
    """
    from gpuconsole.cli.interrupts import left_at_once, run_interruptible
    from gpuconsole.cli.pull_progress import teller
    from gpuconsole.services.pullruns import Puller

    settings.may_change("pull an image")
    wanted = _wanted(references)
    session = settings.session()
    puller = Puller(session, force=force)
    for reference in wanted:
        _warn(session, reference)
    told = teller(as_json=as_json)
    told.begin([str(reference) for reference in wanted])
    try:
        outcomes = run_interruptible(
            lambda cancel: _pull_all(puller, wanted, told, cancel),
            tell=lambda: told.say("Interrupted: ending the pull. Again to leave at once."),
            left=lambda: left_at_once(
                "the engine may go on for a moment", hint="See what there is by 'gpuconsole images'."
            ),
        )
    finally:
        told.close()
    codes = [_tell(reference, outcomes[str(reference)], settings, as_json=as_json) for reference in wanted]
    if pin_too:
        _pin(session.engine, [outcome for outcome in outcomes.values() if not isinstance(outcome, ConsoleError)])
    return max(codes)


def _wanted(texts: Sequence[str]) -> list[Reference]:
    """What to pull: what was named, by its digest where the folder's lock file pins it; without a name all its pins.

    Raises:
        UsageError: Nothing is named and nothing is pinned, or a name is none.
        NotFound: It is pinned by an id, which no registry knows.
        BadFile: The lock file has mistakes.
    """
    from gpuconsole.images.reference import parse
    from gpuconsole.services.lockfile import lock_file
    from gpuconsole.services.pullruns import read_reference
    from gpuconsole.services.pullwish import as_pinned

    lock = lock_file()
    if lock.note:
        talk(f"Note: {lock.note}")
    pins = lock.pins()
    named = list(dict.fromkeys(read_reference(text) for text in texts))
    if not texts:
        named = [parse(name) for name, pin in pins.items() if pin.digest]
        if not named:
            raise click.UsageError(f"Name an image, or pin some: {lock.shown} pins none that can be pulled.")
    wishes = [as_pinned(reference, lock, pins) for reference in named]
    for wish in wishes:
        if wish.note:
            talk(wish.note)
    return [wish.reference for wish in wishes]


def _warn(session: Session, reference: Reference) -> None:
    """Say before the download what is known against it."""
    from gpuconsole.services.suitability import unsuitable_by_catalog
    from gpuconsole.services.tagadvice import latest_note

    latest = latest_note(session, str(reference))
    for note in (*([latest] if latest else []), *unsuitable_by_catalog(session, str(reference))):
        talk(f"Note: {note}")


def _pull_all(
    puller: Puller, wanted: Sequence[Reference], told: Teller, cancel: Cancellation
) -> dict[str, Pulled | ConsoleError]:
    """Pull them side by side; what became of each."""
    from gpuconsole.services.pullruns import AT_ONCE

    outcomes: dict[str, Pulled | ConsoleError] = {}
    crashes: list[BaseException] = []
    turns = threading.BoundedSemaphore(AT_ONCE)

    def work(reference: Reference) -> None:
        name = str(reference)
        try:
            with turns:
                outcomes[name] = puller.pull(reference, cancel=cancel, on_state=told.state)
        except ConsoleError as error:
            outcomes[name] = error
        except BaseException as error:  # noqa: BLE001  # raised again below, by the thread that waits
            crashes.append(error)
        finally:
            told.end(name)

    threads = [threading.Thread(target=work, args=(one,), name=f"pull-{one}", daemon=True) for one in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if crashes:
        raise crashes[0]
    return outcomes


def _tell(reference: Reference, outcome: Pulled | ConsoleError, settings: Settings, *, as_json: bool) -> int:
    """Tell what became of one, and give its exit code."""
    if isinstance(outcome, ConsoleError):
        if as_json:
            json_event(
                {
                    "event": "failed",
                    "reference": str(reference),
                    "message": outcome.message,
                    "hint": outcome.hint,
                    "exit_code": int(outcome.exit_code),
                }
            )
        failure(outcome, detail=settings.debug)
        return int(outcome.exit_code)
    if as_json:
        json_event(_document(outcome))
    else:
        talk(f"{shorter(outcome.reference)} {outcome.words} ({size(outcome.image.size_bytes)} unpacked).")
        result(outcome.pinned_name)
    return ExitCode.OK


def _document(pulled: Pulled) -> dict[str, Any]:
    return {
        "event": "pulled",
        "reference": pulled.reference,
        "digest": pulled.digest,
        "id": pulled.image.id,
        "outcome": pulled.outcome.value,
        "size_bytes": pulled.image.size_bytes,
        "download_bytes": pulled.download_bytes,
    }


def _pin(engine: Engine, pulled: Sequence[Pulled]) -> None:
    from gpuconsole.images.reference import parse
    from gpuconsole.services.lockfile import lock_file
    from gpuconsole.services.pins import hold, pin_of_pulled

    lock = lock_file()
    # With both a tag and a digest it came from a pin.
    fresh = [one for one in pulled if "@" not in one.reference or parse(one.reference).tag is None]
    pins = {one.reference: pin_of_pulled(one) for one in fresh}
    if not pins:
        return
    lock.change(lambda before: {**before, **pins})
    for reference, pin in pins.items():
        hold(engine, pin)
        talk(f"Pinned {reference} in {lock.shown}.")
