"""Arguments that name containers, with completion."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

Command = TypeVar("Command", bound=Callable[..., Any])


def _complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from gpuconsole.services.naming import names_for_completion

    # While completing, click runs no command, so the options before it are read from what it parsed.
    host = ctx.find_root().params.get("host") or os.environ.get("GPUCONSOLE_HOST")
    return [CompletionItem(name) for name in names_for_completion(host, incomplete)]


def container_argument(command: Command) -> Command:
    """Give a command the argument NAME, one container."""
    return click.argument("name", metavar="NAME", shell_complete=_complete)(command)


def container_arguments(command: Command) -> Command:
    """Give a command the arguments NAME…, one container or several."""
    return click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=_complete)(command)
