"""A click group whose commands are imported when they are asked for: ``status`` must not pay for ``launch``."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from importlib import import_module

import click
from click.shell_completion import CompletionItem


class LazyGroup(click.Group):
    """A group that knows its commands by ``module:attribute`` and one line of help, and imports them on use."""

    def __init__(self, *args: object, commands_at: Mapping[str, tuple[str, str]], **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.commands_at = commands_at
        """Command name → (``module:attribute``, one line of help)."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order they were given."""
        return [*self.commands_at, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command."""
        entry = self.commands_at.get(cmd_name)
        if entry is None:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = entry[0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the one-line helps, importing none."""
        rows = [(name, text) for name, (_, text) in self.commands_at.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a command's name without importing any; options as click does."""
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        return [
            CompletionItem(name, help=text)
            for name, (_, text) in self.commands_at.items()
            if name.startswith(incomplete)
        ]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or name the nearest one."""
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in self.list_commands(ctx) and not ctx.resilient_parsing:
            near = difflib.get_close_matches(name, self.commands_at, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else " See 'gpuconsole --help'."
            ctx.fail(f"No such command {name!r}.{hint}")
        return super().resolve_command(ctx, args)
