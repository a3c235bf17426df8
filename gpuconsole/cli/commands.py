"""The ``gpuconsole`` command: its options and its commands, each imported when it is asked for."""

from __future__ import annotations

from pathlib import Path

import click

from gpuconsole import __version__
from gpuconsole.cli.context import HOST_VARIABLE, Settings, debug_by_environment
from gpuconsole.cli.lazy import LazyGroup
from gpuconsole.core.errors import UsageError
from gpuconsole.core.text import plain_line

COMMANDS = {
    "status": ("gpuconsole.cli.status:status", "Every GPU: use, memory, temperature, and who holds it."),
    "ps": ("gpuconsole.cli.containers:ps", "Containers with their GPUs and GPU memory."),
    "images": ("gpuconsole.cli.images:images", "Local images with the PyTorch and CUDA inside."),
    "catalog": ("gpuconsole.cli.catalog:catalog", "Official images, and which of them run here."),
    "pull": ("gpuconsole.cli.pull:pull", "Bring images here, with progress; --pin holds them to their digest."),
    "build": ("gpuconsole.cli.build:build", "Build an image with PyTorch, from a Dockerfile of ours."),
    "pin": ("gpuconsole.cli.pin:pin", "Hold images to their digests in this folder; see whether they moved."),
    "image": ("gpuconsole.cli.image:image", "Look into an image; remove images, or prune those not needed."),
    "launch": ("gpuconsole.cli.launch:launch", "Start a PyTorch container with the chosen GPUs and volumes."),
    "profiles": ("gpuconsole.cli.profiles:profiles", "Launches by name: listed, shown, saved from a container."),
    "runs": ("gpuconsole.cli.runs:runs", "What was launched, how it ended and why."),
    "rerun": ("gpuconsole.cli.runs:rerun", "The same launch once more, by the same digest."),
    "diff": ("gpuconsole.cli.runs:diff", "In what two launches differ."),
    "check": ("gpuconsole.cli.check:check", "Prove that torch works inside a container."),
    "bench": ("gpuconsole.cli.bench:bench", "Measure how fast it is, and grade that."),
    "inspect": ("gpuconsole.cli.containers:inspect", "All about one container; secrets masked."),
    "logs": ("gpuconsole.cli.containers:logs", "Output of a container."),
    "shell": ("gpuconsole.cli.interactive:shell", "A shell inside a container."),
    "attach": ("gpuconsole.cli.interactive:attach", "Join a container's own terminal."),
    "start": ("gpuconsole.cli.actions:start", "Start a stopped container."),
    "stop": ("gpuconsole.cli.actions:stop", "Stop a container."),
    "restart": ("gpuconsole.cli.actions:restart", "Stop and start a container."),
    "pause": ("gpuconsole.cli.actions:pause", "Freeze a container, or let it go on with --resume."),
    "rm": ("gpuconsole.cli.actions:rm", "Remove a container."),
    "doctor": ("gpuconsole.cli.doctor:doctor", "What this machine lacks, and how to get it."),
    "record": ("gpuconsole.cli.record:record", "What the console shows, written to a file to be played."),
    "demo": ("gpuconsole.cli.commands:demo", "The console on a recording of a machine with an H200."),
    "forecast": ("gpuconsole.cli.forecast:forecast", "Where memory was going in a recording, change by change."),
    "completion": ("gpuconsole.cli.completion:completion", "Shell completion for bash, zsh or fish."),
}
"""Command → where it lives and its one line of help, in the order ``--help`` lists them."""


@click.group(
    cls=LazyGroup,
    commands_at=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=True,
    epilog="Every command has examples: gpuconsole COMMAND --help",
)
@click.option("-H", "--host", metavar="URL", envvar=HOST_VARIABLE, help="Engine to talk to, as DOCKER_HOST has it.")
@click.option("--readonly", is_flag=True, help="Refuse everything that changes something.")
@click.option(
    "--replay",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Show a recording of the console instead of this machine.",
)
@click.option("--no-bell", is_flag=True, help="Never ring the terminal's bell in the console.")
@click.option("--debug", is_flag=True, help="Show the traceback of a failure, as GPUCONSOLE_DEBUG=1 does.")
@click.version_option(__version__, prog_name="gpuconsole")
@click.pass_context
def cli(ctx: click.Context, host: str | None, readonly: bool, replay: Path | None, no_bell: bool, debug: bool) -> None:
    """Watch, launch and prove PyTorch-CUDA containers on this machine's GPUs.

    Without a command it opens the console.
    """
    settings = Settings(host=host, debug=debug or debug_by_environment(), readonly=readonly)
    ctx.obj = settings
    ctx.call_on_close(settings.close)
    if ctx.invoked_subcommand is None:
        from gpuconsole.tui.start import open_console

        ctx.exit(open_console(settings.session(), readonly=readonly, bell=not no_bell, replay=replay))
    if replay is not None:
        raise UsageError(
            "--replay shows a recording in the console, so no command goes with it.",
            hint=f"Write 'gpuconsole --replay {plain_line(str(replay))}'.",
        )


@click.command(epilog="\b\nExamples:\n  gpuconsole demo")
@click.pass_obj
def demo(settings: Settings) -> int:
    """Open the console on a recording of a machine with an NVIDIA H200 while a container trains.

    Nothing of this machine is shown, and nothing can be done in it.
    """
    from gpuconsole.services.recordings import shipped
    from gpuconsole.tui.start import open_console

    return open_console(settings.session(), readonly=True, bell=False, replay=shipped())
