"""What is checked or measured: a container that runs and may be entered, or an image with its GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuconsole.cli.others import ask_for_others

if TYPE_CHECKING:
    from gpuconsole.cli.context import Settings
    from gpuconsole.engine.model import Container
    from gpuconsole.launch.spec import LaunchSpec
    from gpuconsole.services.session import Session


def container_to_enter(settings: Settings, name: str, what: str, *, verb: str, yes: bool, others: bool) -> Container:
    """The container ``name``, which runs, and which its owner or whoever typed its name wants entered.

    Args:
        settings: Whose session.
        name: Its name or id.
        what: What needs it to run: ``a check``.
        verb: What is about to be done to it: ``check``.
        yes: ``--yes`` was given.
        others: ``--others`` was given.
    """
    from gpuconsole.services.naming import find, need_running

    container = find(settings.session().engine, name)
    need_running(container, what)
    ask_for_others(settings, container, verb, yes=yes, others=others)
    return container


def image_spec(session: Session, image: str, gpus: str | None) -> LaunchSpec:
    """The launch of ``image`` with the GPUs that ``--gpus`` names."""
    from gpuconsole.launch.fields import Surroundings
    from gpuconsole.launch.options import LaunchOptions, read_options

    return read_options(
        LaunchOptions(image=image, gpus=gpus), Surroundings.current(engine_is_local=session.endpoint.local)
    )
