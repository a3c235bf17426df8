"""Checks and benchmarks of one GPU one after another, whichever gpuconsoles of this machine carry them out.

Two at once would measure each other. Who comes second waits, and is told for whom.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gpuconsole.core.errors import Conflict
from gpuconsole.probes.records import AskedGpus, Record, Waiting
from gpuconsole.services.askedgpus import ELSEWHERE
from gpuconsole.services.cancelling import Cancellation, Cancelled
from gpuconsole.services.hostlock import HostLock, shared_folder
from gpuconsole.services.session import Session

PATIENCE_S = 3600.0
"""So long somebody waits at most: six full benchmarks."""
_LOOK_S = 0.2
_STRANGE = re.compile(r"[^A-Za-z0-9-]")
"""Signs that no UUID has: those of a container's label come from outside."""

_Turn = tuple[str, HostLock]
"""What a GPU is called, and its lock."""


@contextmanager
def alone_on_gpus(
    session: Session,
    what: str,
    ask: Callable[[], AskedGpus],
    on_record: Callable[[Record], None],
    *,
    cancel: Cancellation,
) -> Iterator[AskedGpus]:
    """The GPUs as they are in our turn, which is as long as the block; who has none of this machine's needs no turn.

    Args:
        session: Whose GPUs.
        what: What is about to be done, as others that wait are told: ``the check of train``.
        ask: Gives the GPUs.
        on_record: Told for whom we wait.
        cancel: Ends the waiting.

    Raises:
        Cancelled: ``cancel`` was used as it waited.
        Conflict: The turn did not come within an hour.
    """
    asked = ask()
    turns = [(name, HostLock(_path(uuid))) for uuid, name in sorted(_named(session, asked).items())]
    try:
        waited = _take(turns, what, on_record, cancel)
        yield ask() if waited else asked
    finally:
        for _, turn in turns:
            turn.release()


def _named(session: Session, asked: AskedGpus) -> dict[str, str]:
    """UUID → what the GPU is called; of a container that has some, nobody knows which, all there are."""
    if asked.gpus is not None:
        return {gpu.uuid: f"GPU {gpu.uuid if gpu.index is None else gpu.index}" for gpu in asked.gpus if gpu.uuid}
    if asked.reason == ELSEWHERE:
        return {}
    return {gpu.uuid: f"GPU {gpu.index}" for gpu in session.gpus.snapshot().gpus if gpu.uuid}


def _path(uuid: str) -> Path:
    return shared_folder() / f"gpuconsole-probe-{_STRANGE.sub('_', uuid)[:80]}.lock"


def _take(turns: Sequence[_Turn], what: str, on_record: Callable[[Record], None], cancel: Cancellation) -> bool:
    """Have them all; whether it took waiting."""
    until, told = time.monotonic() + PATIENCE_S, ""
    while (busy := _first_busy(turns)) is not None:
        name, turn = busy
        by = turn.holder() or "another gpuconsole that checks or measures it"
        words = f"waits for {name}: {by}"
        if words != told:
            told = words
            on_record(Waiting(words))
        if cancel.wait(_LOOK_S):
            raise Cancelled(f"{what[:1].upper()}{what[1:]} was cancelled as it waited for its turn: nothing was done.")
        if time.monotonic() > until:
            raise Conflict(
                f"{name} was not free to be looked at within an hour: {by}.",
                hint="Try again when that is over, or end it.",
            )
    for _, turn in turns:
        turn.note(what)
    return bool(told)


def _first_busy(turns: Sequence[_Turn]) -> _Turn | None:
    """Take all or none: who waits shall keep nobody waiting. The first that another has; None when all are ours."""
    for each in turns:
        if each[1].take() is False:
            for _, other in turns:
                other.release()
            return each
    return None
