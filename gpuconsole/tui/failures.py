"""How failures reach the person: a toast for an action that failed, a screen for what must be read."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

from gpuconsole.core.errors import ConsoleError
from gpuconsole.core.text import plain
from gpuconsole.services.runs import RunKind, RunState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textual.app import App

    from gpuconsole.services.runs import Run
    from gpuconsole.services.shelf import Shelf
    from gpuconsole.tui.hearing import HearingApp

_TOAST_S = 8
_IN_THE_BACKGROUND = frozenset({RunKind.PULL, RunKind.BUILD, RunKind.BENCH})
"""Kinds of runs whose end is told wherever one is by then."""


def tell_failure(app: App[None], error: ConsoleError) -> None:
    """An action failed: say what happened and what to do."""
    text = f"{error.message}\n→ {error.hint}" if error.hint else error.message
    app.notify(text, title="That did not work", severity="error", timeout=_TOAST_S, markup=False)


def tell_ends(app: HearingApp, before: Iterable[Run], after: Iterable[Run]) -> None:
    """Tell what went on behind and has ended since."""
    open_before = {run.id for run in before if not run.ended}
    for run in after:
        if run.id not in open_before or not run.ended:
            continue
        if run.kind is RunKind.CHECK:
            app.desk.refresh_images()  # what it saw in an image decides the verdict on it
        if run.kind not in _IN_THE_BACKGROUND:
            continue
        words = run.headline.replace(" → ", "\n→ ", 1)
        if run.state is RunState.FAILED:
            app.notify(words, title="That did not work", severity="error", timeout=_TOAST_S, markup=False)
        else:
            app.notify(words if words.endswith(".") else f"{words}.", timeout=4, markup=False)


def tell_unread(app: App[None], before: Shelf | None, now: Shelf) -> None:
    """Tell once why catalog files or lock files are not heeded."""
    if now.problem and (before is None or before.problem != now.problem):
        app.notify(now.problem, title="Not all is known of images", severity="warning", timeout=15, markup=False)


def tell_worker_error(app: App[None], error: BaseException, *, what: str) -> None:
    """A fault of our own in the background: say so, with the traceback to read and copy."""
    from gpuconsole.tui.screens.reading import ReadingScreen

    trace = plain("".join(traceback.format_exception(error)))
    app.push_screen(
        ReadingScreen(
            "Something went wrong inside gpuconsole itself",
            f"{what}: {type(error).__name__}: {plain(str(error))}\n\nContainers are not touched by this. "
            f"y copies this text for a report.\n\n{trace}",
        )
    )
