"""Taking back what a launch made before it failed or was interrupted."""

from __future__ import annotations

from gpuconsole.core.errors import ConsoleError, NotFound
from gpuconsole.engine.protocol import Engine
from gpuconsole.services.planning import LaunchPlan


class Made:
    """What a launch makes on the engine. Made before the first of it, to know which volumes were there.

    Args:
        engine: Where it is made.
        plan: What will be made.
    """

    def __init__(self, engine: Engine, plan: LaunchPlan) -> None:
        self._engine = engine
        self._name = plan.name
        named = {mount.source for mount in plan.request.mounts if mount.kind == "volume"}
        self._volumes = sorted(named - engine.volumes()) if named else []
        self.container_id = ""
        """Set when the container was made."""

    def undo(self, error: BaseException) -> None:
        """Remove the container, and the volumes that came with it.

        Args:
            error: Why; the errors here are told with it.

        Raises:
            ConsoleError: Of the kind of ``error``: something could not be removed and is left behind.
        """
        try:
            self._remove()
        except ConsoleError as failure:
            left = f"The container {self._name} is left behind: {failure.message}"
            remedy = f"Remove it by 'gpuconsole rm --force {self._name}' when the engine answers again."
            if isinstance(error, ConsoleError):
                raise type(error)(f"{error.message} {left}", hint=remedy, detail=error.detail) from error
            raise ConsoleError(left, hint=remedy) from error

    def _remove(self) -> None:
        if self.container_id:
            try:
                self._engine.remove(self.container_id, force=True, volumes=True)
            except NotFound:
                pass
        for name in self._volumes:
            try:
                self._engine.remove_volume(name)
            except ConsoleError:
                # It was never made, or another container took it into use meanwhile: then it is no longer ours.
                continue
