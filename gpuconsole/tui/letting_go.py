"""Screens that were closed are let go of, so that the console is no larger after a day of opening them."""

from __future__ import annotations

import contextlib
from typing import Any

from textual.app import App


def let_go(app: App[Any]) -> None:
    """Forget who watched the app and is closed, and what was drawn of it.

    Textual does the first only when what was watched changes: some of it never does, and with a watcher stays its
    screen. Of the second it keeps what a thousand widgets looked like last, whether they are there or not.
    """
    some = False
    for watchers in getattr(app, "__watchers", {}).values():
        before = len(watchers)
        watchers[:] = [(node, told) for node, told in watchers if not node._closing]
        some = some or len(watchers) < before
    if some:
        with contextlib.suppress(ImportError, AttributeError):  # another Textual may have mended it
            from textual._styles_cache import StylesCache

            # It remembers colours by the widget they are of.
            StylesCache.get_inner_outer.cache_clear()
