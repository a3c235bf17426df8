"""Screens that were closed are let go of, so that the console is no larger after a day of opening them."""

from __future__ import annotations

from typing import Any

from textual.app import App


def let_go(app: App[Any]) -> None:
    """Forget who watched the app and is closed.

    Textual does that only when what was watched changes: some of it never does, and with a watcher stays its screen.
    """
    for watchers in getattr(app, "__watchers", {}).values():
        watchers[:] = [(node, told) for node, told in watchers if not node._closing]
