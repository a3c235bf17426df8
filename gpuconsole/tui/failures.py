"""How failures reach the person: a toast for an action that failed, a screen for what must be read."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

from gpuconsole.core.errors import ConsoleError
from gpuconsole.core.text import plain

if TYPE_CHECKING:
    from textual.app import App

_TOAST_S = 8


def tell_failure(app: App[None], error: ConsoleError) -> None:
    """An action failed: say what happened and what to do."""
    text = f"{error.message}\n→ {error.hint}" if error.hint else error.message
    app.notify(text, title="That did not work", severity="error", timeout=_TOAST_S, markup=False)


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
