"""Arguments that name containers and images, with completion."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

Command = TypeVar("Command", bound=Callable[..., Any])
Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _completer(names: str) -> Completer:
    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from gpuconsole.services import completing

        # While completing, click runs no command, so the options before it are read from what it parsed.
        host = ctx.find_root().params.get("host") or os.environ.get("GPUCONSOLE_HOST")
        return [CompletionItem(name) for name in getattr(completing, names)(host, incomplete)]

    return complete


complete_container = _completer("container_names")
"""Completes a container's name."""
complete_image = _completer("image_names")
"""Completes a local image's tag."""
complete_launch = _completer("launch_names")
"""Completes the name of a launch profile, or a local image's tag."""
complete_profile = _completer("profile_names")
"""Completes the name of a launch profile."""
complete_reference = _completer("reference_names")
"""Completes the name of an image that can be pulled or is here."""
complete_pinned = _completer("pinned_names")
"""Completes the name of an image that is pinned, or can be."""


def container_argument(command: Command) -> Command:
    """Give a command the argument NAME, one container."""
    return click.argument("name", metavar="NAME", shell_complete=complete_container)(command)


def container_arguments(command: Command) -> Command:
    """Give a command the arguments NAME…, one container or several."""
    return click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=complete_container)(
        command
    )
