"""``gpuconsole start | stop | restart | pause | rm``: what changes the state of containers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from gpuconsole.cli.context import Settings, pass_settings
from gpuconsole.cli.names import container_arguments
from gpuconsole.cli.others import ask_for_others, others_option, yes_option
from gpuconsole.cli.output import confirm, data, failure, talk
from gpuconsole.core.errors import Conflict, ConsoleError
from gpuconsole.engine.model import Container, ContainerState
from gpuconsole.services.imagenames import written_name
from gpuconsole.services.launchends import remember_ending
from gpuconsole.services.naming import find

_grace = click.option(
    "-t", "--grace", type=click.IntRange(0, 3600), default=10, show_default=True, metavar="SECONDS",
    help="Time between SIGTERM and SIGKILL.",
)  # fmt: skip


def _each(settings: Settings, names: Sequence[str], act: Callable[[Container], str | None]) -> int:
    """Do ``act`` to each container; one that fails does not keep the others from it.

    Args:
        settings: The session.
        names: As they were typed.
        act: Gives a note when there was nothing to do, None when it was done.

    Returns:
        The worst exit code.
    """
    worst = 0
    engine = settings.session().engine
    for name in dict.fromkeys(names):
        try:
            note = act(find(engine, name))
        except ConsoleError as error:
            failure(error, detail=settings.debug)
            worst = max(worst, int(error.exit_code))
        else:
            data(name)
            if note is not None:
                talk(f"{name}: {note}")
    return worst


@click.command(epilog="\b\nExamples:\n  gpuconsole start train\n  gpuconsole start train-a train-b")
@container_arguments
@yes_option
@others_option
@pass_settings
def start(settings: Settings, names: tuple[str, ...], yes: bool, others: bool) -> int:
    """Start stopped containers.

    Starting a container of another user asks for its name first.
    """
    settings.may_change("start a container")
    engine = settings.session().engine

    def act(container: Container) -> str | None:
        if container.state is ContainerState.PAUSED:
            raise Conflict(
                f"Container {container.name} is paused, not stopped.",
                hint=f"Let it go on: gpuconsole pause --resume {container.name}",
            )
        if container.state is ContainerState.RUNNING:
            return "already running"
        ask_for_others(settings, container, "start", yes=yes, others=others)
        engine.start(container.id)
        return None

    return _each(settings, names, act)


@click.command(
    epilog="\b\nExamples:\n  gpuconsole stop train\n  gpuconsole stop -t 120 train    # time for a checkpoint"
)
@container_arguments
@_grace
@yes_option
@others_option
@pass_settings
def stop(settings: Settings, names: tuple[str, ...], grace: int, yes: bool, others: bool) -> int:
    """Stop containers: SIGTERM, then SIGKILL when the grace time is over.

    Stopping a container of another user asks for its name first.
    """
    settings.may_change("stop a container")
    engine = settings.session().engine

    def act(container: Container) -> str | None:
        if not container.running and container.state is not ContainerState.RESTARTING:
            return "already stopped"
        ask_for_others(settings, container, "stop", yes=yes, others=others)
        engine.stop(container.id, grace_s=grace)
        return None

    return _each(settings, names, act)


@click.command(epilog="\b\nExamples:\n  gpuconsole restart jupyter\n  gpuconsole restart -t 60 train")
@container_arguments
@_grace
@yes_option
@others_option
@pass_settings
def restart(settings: Settings, names: tuple[str, ...], grace: int, yes: bool, others: bool) -> int:
    """Stop and start containers; one that is stopped is started.

    Restarting a container of another user asks for its name first.
    """
    settings.may_change("restart a container")
    engine = settings.session().engine

    def act(container: Container) -> str | None:
        ask_for_others(settings, container, "restart", yes=yes, others=others)
        if container.state is ContainerState.PAUSED:
            engine.unpause(container.id)
        engine.restart(container.id, grace_s=grace)
        return None if container.running else "was stopped; started"

    return _each(settings, names, act)


@click.command(epilog="\b\nExamples:\n  gpuconsole pause train\n  gpuconsole pause --resume train")
@container_arguments
@click.option("--resume", is_flag=True, help="Let paused containers go on.")
@yes_option
@others_option
@pass_settings
def pause(settings: Settings, names: tuple[str, ...], resume: bool, yes: bool, others: bool) -> int:
    """Freeze containers, or let them go on with --resume.

    A paused container computes nothing but keeps its memory, its GPU memory too. One of another user asks for its
    name first.
    """
    settings.may_change("pause a container")
    engine = settings.session().engine

    def act(container: Container) -> str | None:
        if not container.running:
            raise Conflict(
                f"Container {container.name} does not run ({container.state.value}).",
                hint=f"Start it: gpuconsole start {container.name}",
            )
        if (container.state is ContainerState.PAUSED) is not resume:
            return "is not paused" if resume else "already paused"
        ask_for_others(settings, container, "resume" if resume else "pause", yes=yes, others=others)
        (engine.unpause if resume else engine.pause)(container.id)
        return None if resume or not container.gpu_claims else "paused; its GPU memory stays held"

    return _each(settings, names, act)


def _need_force(container: Container) -> None:
    raise Conflict(
        f"Container {container.name} is {container.state.value}.",
        hint=f"Stop it first (gpuconsole stop {container.name}), or pass --force to kill and remove it.",
    )


@click.command(
    epilog="\b\nExamples:\n  gpuconsole rm train\n  gpuconsole rm --yes train-a train-b\n"
    "  gpuconsole rm --force train     # also when it runs"
)
@container_arguments
@click.option("-f", "--force", is_flag=True, help="Kill it first when it runs.")
@click.option("-v", "--volumes", is_flag=True, help="Also remove its anonymous volumes.")
@yes_option
@others_option
@pass_settings
def rm(settings: Settings, names: tuple[str, ...], force: bool, volumes: bool, yes: bool, others: bool) -> int:
    """Remove containers and what was written inside them; mounted folders and named volumes stay.

    It asks before each. Removing a container of another user asks for its name.
    """
    settings.may_change("remove a container")
    engine = settings.session().engine

    def act(container: Container) -> str | None:
        alive = container.running or container.state is ContainerState.RESTARTING
        if alive and not force:
            _need_force(container)
        if not ask_for_others(settings, container, "remove", yes=yes, others=others):
            doing = "Kill and remove" if alive else "Remove"
            confirm(f"{doing} container {container.name} ({written_name(container)})?", assume_yes=yes)
        remember_ending(engine, container)
        engine.remove(container.id, force=force, volumes=volumes)
        return None

    return _each(settings, names, act)
