"""The command palette: every action of the screen, and the app's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from textual.app import SystemCommand

from gpuconsole.tui import theme
from gpuconsole.tui.present.helping import key_name

if TYPE_CHECKING:
    from textual.screen import Screen

    from gpuconsole.tui.app import ConsoleApp


def commands_of(app: ConsoleApp, screen: Screen[object]) -> Iterator[SystemCommand]:
    """What can be done now, each with its key and what it does, and the themes."""

    def act(action: str) -> None:
        app.call_later(app.screen.run_action, action)

    seen = set()
    for _, binding, enabled, tooltip in screen.active_bindings.values():
        if enabled and binding.id and binding.id not in seen and binding.description:
            seen.add(binding.id)
            told = f"{key_name(binding.key)}  {tooltip or binding.description}"
            yield SystemCommand(binding.description, told, lambda action=binding.action: act(action))
    for each in theme.THEMES:
        name = each.name
        yield SystemCommand(
            f"Theme {name.removeprefix('gpuconsole-')}",
            "Change the colours",
            lambda name=name: setattr(app, "theme", name),
        )
