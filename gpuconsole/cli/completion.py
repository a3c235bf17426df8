"""``gpuconsole completion``: the line a shell needs to complete our commands."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from gpuconsole.cli.output import data


@click.command(
    epilog='\b\nExamples:\n  eval "$(gpuconsole completion bash)"      # in ~/.bashrc\n'
    '  eval "$(gpuconsole completion zsh)"       # in ~/.zshrc\n'
    "  gpuconsole completion fish > ~/.config/fish/completions/gpuconsole.fish"
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for SHELL; container and image names are completed too."""
    from gpuconsole.cli.commands import cli

    make = get_completion_class(shell)
    if make is None:  # click knows all three; another shell cannot get past the choice above
        raise click.UsageError(f"No completion for {shell}.")
    data(make(cli, {}, "gpuconsole", "_GPUCONSOLE_COMPLETE").source())
