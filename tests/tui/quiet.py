"""When a console has done all that was set off in it, however slow the machine is.

Textual's pilot takes a process that used no processor for 20 ms for one that is done. On a machine with much to do a
process gets none for longer than that in the middle of what it does; so here the messages themselves are looked at.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from textual._context import active_app
from textual.app import App
from textual.message import Message
from textual.message_pump import MessagePump
from textual.messages import Prompt

_MOST_WORK_S = 2.0
"""Of the processor's time: what draws all the time is never quiet."""
_PATIENCE_S = 30.0
"""For a message that is never done."""
_handled = 0


def count_messages(monkeypatch: Any) -> None:
    """Count every message that is handled in this process from here on."""
    dispatch: Callable[[MessagePump, Message], Awaitable[None]] = MessagePump._dispatch_message

    async def counted(self: MessagePump, message: Message) -> None:
        global _handled
        _handled += not isinstance(message, Prompt)  # which only has what is due be seen to
        await dispatch(self, message)

    monkeypatch.setattr(MessagePump, "_dispatch_message", counted)


async def quiet(app: App[Any]) -> None:
    """Wait until nothing that was set off is on its way any more: no message, nothing that is due to be drawn.

    What other threads do is not waited for, nor what a timer does later.
    """
    worked, end = time.process_time(), time.monotonic() + _PATIENCE_S
    while app.is_running and time.process_time() - worked < _MOST_WORK_S and time.monotonic() < end:
        before = _handled
        own = await _round(app, end)
        app.screen._on_timer_update()  # draws what is due
        if _handled - before == own and not _waiting(app):
            return


def _pumps(app: App[Any]) -> list[MessagePump]:
    return [app, *(node for screen in app.screen_stack for node in screen.walk_children(with_self=True))]


async def _round(app: App[Any], end: float) -> int:
    """Have everybody handle what has come so far, and a word of ours behind it; how many such words there were."""
    to_come: set[MessagePump] = set()

    def heard(pump: MessagePump) -> None:
        to_come.discard(pump)

    for pump in _pumps(app):
        if pump.is_running and pump.call_later(heard, pump):
            to_come.add(pump)
    asked = len(to_come)
    while any(pump.is_running for pump in to_come) and time.monotonic() < end:
        await asyncio.sleep(0)
        await asyncio.sleep(0.001)
    return asked


def _waiting(app: App[Any]) -> bool:
    return any(pump._next_callbacks or pump.message_queue_size for pump in _pumps(app) if pump.is_running)


async def idle(min_sleep: float = 0.02, max_sleep: float = 1.0) -> None:
    """What stands in the place of Textual's own: it gives the other threads as long, and then waits for the messages.

    Args:
        min_sleep: At least so many seconds.
        max_sleep: Nothing: all that was set off is waited for.
    """
    await asyncio.sleep(max(min_sleep, 0.02))
    await quiet(active_app.get())
