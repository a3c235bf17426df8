"""Containers of other users: what changes one asks for its name first, what only looks in says whose it is."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from gpuconsole.cli.output import talk
from gpuconsole.core.errors import Refused

if TYPE_CHECKING:
    from gpuconsole.cli.context import Settings
    from gpuconsole.engine.model import Container

yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask.")
others_option = click.option("--others", is_flag=True, help="With --yes: also containers of other users.")


def ask_for_others(settings: Settings, container: Container, verb: str, *, yes: bool, others: bool) -> bool:
    """Ask harder when the container is someone else's; say whether it is.

    Args:
        settings: Whose session.
        container: What is about to be changed.
        verb: What is about to be done to "it": ``stop``, ``run a check in``.
        yes: ``--yes`` was given.
        others: ``--others`` was given.

    Raises:
        Refused: It is not to be done.
    """
    owner = _owner(settings, container)
    if owner is None or (yes and others):
        return owner is not None
    if yes or not sys.stdin.isatty():
        raise Refused(
            f"Container {container.name} belongs to {owner}.",
            hint=f"Pass --yes --others to {verb} it nevertheless.",
        )
    typed = click.prompt(
        f"Container {container.name} belongs to {owner}. Type its name to {verb} it", default="", show_default=False,
        err=True,
    )  # fmt: skip
    if typed.strip() != container.name:
        raise Refused("Nothing was done.", hint=f"Type {container.name} to go on.")
    return True


def tell_owner(settings: Settings, container: Container) -> None:
    """Say whose container it is, when it is someone else's."""
    owner = _owner(settings, container)
    if owner is not None:
        talk(f"Note: container {container.name} belongs to {owner}.")


def _owner(settings: Settings, container: Container) -> str | None:
    from gpuconsole.services.ownership import someone_elses

    return someone_elses(container, local=settings.session().endpoint.local)
