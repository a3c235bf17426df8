"""Builds that the console begins: what an order comes to, and the builds under way."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from gpuconsole.core.errors import ConsoleError
from gpuconsole.services.building import chosen_for
from gpuconsole.services.buildorders import BuildOrder, Chosen
from gpuconsole.services.buildruns import start_build

if TYPE_CHECKING:
    from gpuconsole.services.building import Built
    from gpuconsole.services.buildmeter import BuildState
    from gpuconsole.services.pullqueue import Holder
    from gpuconsole.services.runs import Runs
    from gpuconsole.services.session import Session

_VARIABLES = {
    "base": "GPUCONSOLE_BUILD_BASE",
    "index_url": "GPUCONSOLE_BUILD_INDEX_URL",
    "torch_index_url": "GPUCONSOLE_BUILD_TORCH_INDEX_URL",
    "network": "GPUCONSOLE_BUILD_NETWORK",
}
"""What is not asked for is as 'gpuconsole build' would take it."""


class ImageBuilds:
    """Builds, each on a thread of its own. Safe from any thread.

    Args:
        session: Whose engine.
        runs: Where they are shown.
        holder: Cancels them.
        on_built: Called after each that brought an image, on its thread.
    """

    def __init__(self, session: Session, runs: Runs, *, holder: Holder, on_built: Callable[[Built], None]) -> None:
        self._session = session
        self._runs = runs
        self._holder = holder
        self._on_built = on_built
        self._states: dict[str, BuildState] = {}
        """Name of the new image → how far it is; only of those under way."""

    @property
    def going(self) -> tuple[str, ...]:
        """The names of the images that are being built."""
        return tuple(self._states)

    def state(self, name: str) -> BuildState | None:
        """How far the build of that name is; None when none is under way."""
        return self._states.get(name)

    def chosen(self, order: BuildOrder) -> Chosen:
        """What an order comes to on this machine.

        Raises:
            UsageError: PyTorch was never published in that combination; the hint names those there are.
            EngineUnavailable: Nothing answers there.
        """
        return chosen_for(self._session, order)

    def begin(self, order: BuildOrder, chosen: Chosen) -> bool:
        """Build in the background; False when that name is being built already."""
        from gpuconsole.services.buildmeter import BuildState

        name = chosen.name
        if name in self._states:
            return False
        self._states[name] = BuildState(name)

        def went_on(state: BuildState) -> None:
            self._states[name] = state

        def ended(outcome: Built | ConsoleError) -> None:
            self._states.pop(name, None)
            if not isinstance(outcome, ConsoleError):
                self._on_built(outcome)

        start_build(
            self._session, order, self._runs, chosen=chosen, holder=self._holder, on_end=ended, on_state=went_on
        )
        return True


def ordered(typed: Mapping[str, str], environ: Mapping[str, str] | None = None) -> BuildOrder:
    """The order for what was typed: ``torch``, ``cuda``, ``base`` and ``tag``, each left out where it is empty."""
    environ = os.environ if environ is None else environ
    given = {key: environ[name] for key, name in _VARIABLES.items() if environ.get(name)}
    given |= {key: value.strip() for key, value in typed.items() if value.strip()}
    return BuildOrder(**given)  # type: ignore[arg-type]  # only texts are among them
