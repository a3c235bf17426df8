"""When a console has done all that was set off in it, however slow the machine is.

Textual's pilot takes a process that used no processor for 20 ms for one that is done. On a machine with much to do a
process gets none for longer than that in the middle of what it does; so here those who do it are looked at.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from textual._context import active_app
from textual.app import App
from textual.message import Message
from textual.message_pump import MessagePump

_TURNS = 3
"""So often in a row everybody rests: what was begun beside them, as a worker, has had its turn by then."""
_MOST_WORK_S = 2.0
"""Of the processor's time: what draws all the time is never quiet."""
_PATIENCE_S = 30.0
"""For what waits for something else than its turn."""
_resting: set[MessagePump] = set()
"""Who waits for a message."""


def watch(monkeypatch: Any) -> None:
    """Know from here on who waits for a message: widgets, screens, the console itself."""
    get = MessagePump._get_message

    async def noted(self: MessagePump) -> Message:
        _resting.add(self)
        try:
            return await get(self)
        finally:
            _resting.discard(self)

    monkeypatch.setattr(MessagePump, "_get_message", noted)


async def quiet(app: App[Any]) -> None:
    """Wait until nothing that was set off is on its way any more: no message, nothing that is due to be drawn.

    What other threads do is not waited for, nor what a timer does later.
    """
    worked, end = time.process_time(), time.monotonic() + _PATIENCE_S
    turns = 0
    while app.is_running and turns < _TURNS:
        await asyncio.sleep(0 if turns else 0.001)
        turns = turns + 1 if app.is_running and _rests(app) else 0
        if time.process_time() - worked > _MOST_WORK_S or time.monotonic() > end:
            return


def _rests(app: App[Any]) -> bool:
    """Whether nobody does anything or has anything to do; what is due by then is drawn."""
    if any(
        pump.message_queue_size or pump._next_callbacks or (pump.is_running and pump not in _resting)
        for pump in (app, *app._registry)
    ):
        return False
    screen = app.screen
    if (
        screen._layout_required or screen._scroll_required or screen._repaint_required or screen._recompose_required
        or screen._dirty_widgets or screen._callbacks
    ):  # fmt: skip
        screen._on_timer_update()
        return bool(app._batch_count)
    return True


async def idle(min_sleep: float = 0.02, max_sleep: float = 1.0) -> None:
    """What stands in the place of Textual's own: it gives the other threads as long, and then waits for the messages.

    Args:
        min_sleep: At least so many seconds.
        max_sleep: Nothing: all that was set off is waited for.
    """
    await asyncio.sleep(max(min_sleep, 0.02))
    await quiet(active_app.get())
