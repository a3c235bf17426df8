"""Pulls as runs: several at once, each on a thread of its own, told as they go on, cancelled at any moment."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from gpuconsole.core.document import document
from gpuconsole.core.errors import ConsoleError, ExitCode
from gpuconsole.core.text import plain_line, size
from gpuconsole.images.reference import shorter
from gpuconsole.services.cancelling import Cancellation
from gpuconsole.services.pulling import PullState
from gpuconsole.services.pullruns import AT_ONCE, Pulled, Puller
from gpuconsole.services.runs import Run, RunKind, Runs, RunState

if TYPE_CHECKING:
    from gpuconsole.images.reference import Reference
    from gpuconsole.services.session import Session

_NEWS_S = 0.2
"""Between two pieces of news of a pull: an engine tells some hundred a second."""
_TURN_S = 0.1
_WAITS = "waits for its turn"


class Holder(Protocol):
    """Keeps what can be cancelled, and waits for it a moment when the program is left."""

    def hold(self, run_id: str, cancellation: Cancellation, thread: threading.Thread) -> None:
        """A run works on ``thread`` and can be cancelled until it is let go."""
        ...

    def let_go(self, run_id: str) -> None:
        """That run is over."""
        ...


class PullQueue:
    """Pulls, a few at a time. Safe from any thread.

    Args:
        session: Whose engine.
        runs: Where they are shown and remembered.
        holder: Cancels them.
        on_end: Called after each pull that brought something, on its thread.
    """

    def __init__(
        self, session: Session, runs: Runs, *, holder: Holder, on_end: Callable[[Pulled], None] = lambda pulled: None
    ) -> None:
        self._session = session
        self._runs = runs
        self._holder = holder
        self._on_end = on_end
        self._turns = threading.BoundedSemaphore(AT_ONCE)
        self._lock = threading.Lock()
        self._going: dict[str, str] = {}
        """Reference → its run."""
        self._states: dict[str, PullState] = {}

    @property
    def going(self) -> tuple[str, ...]:
        """The references that are being pulled, or wait for their turn."""
        with self._lock:
            return tuple(self._going)

    def state(self, run_id: str) -> PullState | None:
        """How far a pull is, or was when it ended; None of one that this program has not begun."""
        return self._states.get(run_id)

    def add(self, reference: Reference, *, force: bool = False) -> tuple[str, bool]:
        """Pull ``reference``; gives the run's id, and False when it is being pulled already.

        Args:
            reference: Which.
            force: Also where the disk seems too small.
        """
        name = str(reference)
        with self._lock:
            if name in self._going:
                return self._going[name], False
            self._going[name] = run_id = self._runs.begin(RunKind.PULL, shorter(name), "", _WAITS)
        cancellation = Cancellation()
        thread = threading.Thread(
            target=self._work, args=(run_id, reference, cancellation, force), name=f"pull-{name}", daemon=True
        )
        self._holder.hold(run_id, cancellation, thread)
        thread.start()
        return run_id, True

    def _work(self, run_id: str, reference: Reference, cancel: Cancellation, force: bool) -> None:
        pulled: Pulled | None = None
        try:
            pulled = self._pull(run_id, reference, cancel, force)
            words = f"{shorter(pulled.reference)} {pulled.words} ({size(pulled.image.size_bytes)} unpacked)"
            self._runs.end(run_id, RunState.OK, words, _success(pulled), subject_id=pulled.image.id)
        except ConsoleError as error:
            state = RunState.CANCELLED if cancel.requested else RunState.FAILED
            words = f"{error.message} → {error.hint}" if error.hint else error.message
            self._runs.end(run_id, state, words, _failure(reference, error))
        except Exception as error:  # noqa: BLE001 (the thread must not end in silence, nor the run stay open)
            words = plain_line(f"gpuconsole itself failed: {type(error).__name__}: {error}")
            fault = ConsoleError(words, hint="Pull again; layers that were complete are kept.")
            self._runs.end(run_id, RunState.FAILED, words, _failure(reference, fault, code=ExitCode.INTERNAL))
        finally:
            with self._lock:
                self._going.pop(str(reference), None)
            self._holder.let_go(run_id)
        if pulled is not None:
            self._on_end(pulled)

    def _pull(self, run_id: str, reference: Reference, cancel: Cancellation, force: bool) -> Pulled:
        mine = False
        try:
            while not mine and not cancel.requested:
                mine = self._turns.acquire(timeout=_TURN_S)
            puller = Puller(self._session, force=force)
            return puller.pull(reference, cancel=cancel, on_state=self._news(run_id))
        finally:
            if mine:
                self._turns.release()

    def _news(self, run_id: str) -> Callable[[PullState], None]:
        told_at = 0.0

        def tell(state: PullState) -> None:
            nonlocal told_at
            self._states[run_id] = state
            now = time.monotonic()
            if now - told_at < _NEWS_S:
                return
            told_at = now
            share = min(1.0, state.current_bytes / state.total_bytes) if state.total_bytes else None
            self._runs.advance(run_id, plain_line(state.words), share)

        return tell


def _success(pulled: Pulled) -> str:
    return document(
        "pull",
        event="pulled",
        reference=pulled.reference,
        digest=pulled.digest,
        id=pulled.image.id,
        outcome=pulled.outcome,
        size_bytes=pulled.image.size_bytes,
        download_bytes=pulled.download_bytes,
    )


def _failure(reference: Reference, error: ConsoleError, *, code: ExitCode | None = None) -> str:
    return document(
        "pull",
        event="failed",
        reference=str(reference),
        message=error.message,
        hint=error.hint,
        exit_code=int(code or error.exit_code),
    )


def to_pull_again(run: Run) -> str | None:
    """The reference of a pull that brought nothing; None of any other run."""
    if run.kind is not RunKind.PULL or not run.ended or run.state is RunState.OK:
        return None
    if run.document is None:
        # Its program was killed before it told anything; a digest stands in its name cut, and cannot be asked for.
        return None if "@" in run.subject else run.subject
    try:
        told = json.loads(run.document)
    except ValueError:
        return None
    reference = told.get("reference") if isinstance(told, dict) else None
    return reference if isinstance(reference, str) else None
