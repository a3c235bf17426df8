"""Containers found by the names people type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpuconsole.core.errors import Conflict, EngineRefused, NotFound
from gpuconsole.core.nearness import did_you_mean
from gpuconsole.engine.model import Container, ContainerState

if TYPE_CHECKING:
    from gpuconsole.engine.protocol import Engine


def find(engine: Engine, reference: str) -> Container:
    """The container called ``reference``: its name, its id, or the start of its id.

    Raises:
        NotFound: There is none; the hint names the nearest.
        Conflict: Several ids begin so.
    """
    try:
        return engine.container(reference)
    except (NotFound, Conflict, EngineRefused) as error:
        # Engines answer an ambiguous id with different codes, so the list decides what it was.
        listed = engine.containers()
        several = [one for one in listed if reference and one.id.startswith(reference)]
        if len(several) > 1:
            raise Conflict(
                f"{reference!r} is the start of several container ids.",
                hint=f"Say which: {', '.join(one.name for one in several[:5])}.",
            ) from error
        if not isinstance(error, NotFound):
            raise
        raise NotFound(f"There is no container {reference!r}.", hint=_nearest(reference, listed)) from error


def _nearest(reference: str, listed: Sequence[Container]) -> str:
    names = [one.name for one in listed]
    return did_you_mean(reference, names) or (
        "'gpuconsole ps' lists the containers." if names else "There are no containers; 'gpuconsole launch' makes one."
    )


def need_running(container: Container, what: str) -> None:
    """Let ``what`` go on only with a container whose processes run.

    Args:
        container: As the engine describes it now.
        what: What needs it, as a phrase: ``"a shell"``.

    Raises:
        Conflict: It is stopped or paused; the hint names the command that helps.
    """
    if container.state is ContainerState.RUNNING:
        return
    if container.state is ContainerState.PAUSED:
        raise Conflict(
            f"Container {container.name} is paused, and {what} needs it to run.",
            hint=f"Let it go on: gpuconsole pause --resume {container.name}",
        )
    raise Conflict(
        f"Container {container.name} does not run ({container.state.value}), and {what} needs it to run.",
        hint=f"Start it: gpuconsole start {container.name}",
    )
