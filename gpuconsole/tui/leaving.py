"""Leaving a screen, whatever lies over it: what ends a screen may come while help or a question is in front."""

from __future__ import annotations

from typing import Any

from textual.screen import Screen


def leave(screen: Screen[Any], result: object = None) -> None:
    """Take ``screen`` away and give ``result``; screens over it stay, but for the questions that it asked.

    Textual's own ``dismiss`` takes away whatever screen is in front. A screen that was left already stays left: two
    keys in one piece leave one screen, not two.
    """
    app = screen.app
    stack = app._screen_stack
    if screen not in stack:
        return
    withdraw(screen)  # answers would be for nobody
    if app.screen is screen:
        screen.dismiss(result)
        return
    if screen._result_callbacks:
        screen._result_callbacks[-1](result)
        screen._pop_result_callback()
    stack.remove(screen)
    app.call_next(screen.remove)
    app.screen.refresh()  # it may have shone through


def withdraw(screen: Screen[Any]) -> None:
    """Take away the questions that ``screen`` asked: what they are about is no more."""
    for over in list(screen.app._screen_stack):
        if getattr(over, "asked_by", None) is screen:
            leave(over)
