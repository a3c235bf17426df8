"""Taking back what a launch made before it failed or was interrupted."""

from __future__ import annotations

from gpuconsole.core.errors import ConsoleError, NotFound, tell_also
from gpuconsole.engine.protocol import Engine
from gpuconsole.launch.labels import LAUNCH
from gpuconsole.services.notebooks import drop_token, needs_token
from gpuconsole.services.planning import LaunchPlan


class Made:
    """What a launch makes on the engine, told apart from all that others make there meanwhile.

    The container is known by its id, never by a name, which may pass to another one; its new volumes by the random word
    that the plan puts on them.

    Args:
        engine: Where it is made.
        plan: What will be made.
    """

    def __init__(self, engine: Engine, plan: LaunchPlan) -> None:
        self._engine = engine
        self._word = plan.request.volume_labels.get(LAUNCH)
        self._has_token = needs_token(plan.spec)
        self._may_make_volumes = any(mount.kind == "volume" for mount in plan.request.mounts)
        self.container_id = ""
        """Set when the container was made, as is the next."""
        self.name = plan.name

    def undo(self, error: BaseException) -> None:
        """Remove the container, and the volumes that came with it.

        Args:
            error: Why. What could not be removed is added to what it says; the caller raises it again.
        """
        if self._has_token and self._word is not None:
            drop_token(self._word)
        left = [said for said in (self._left_container(), self._left_volumes()) if said]
        if not left:
            return
        remedy = "When the engine answers again, look at 'docker volume ls'."
        if self.container_id:
            remedy = f"When the engine answers again, remove it by 'gpuconsole rm --force {self.container_id[:12]}'."
        tell_also(error, " ".join(left), hint=remedy)

    def _left_container(self) -> str | None:
        """What to say when the container could not be removed."""
        if not self.container_id:
            return None
        try:
            self._engine.remove(self.container_id, force=True, volumes=True)
        except NotFound:
            return None
        except ConsoleError as failure:
            return f"The container {self.name} ({self.container_id[:12]}) is left behind: {failure.message}"
        return None

    def _left_volumes(self) -> str | None:
        """What to say when it cannot be known which volumes it made."""
        if not self._may_make_volumes or self._word is None:
            return None
        try:
            names = self._engine.volumes(label=f"{LAUNCH}={self._word}")
        except ConsoleError as failure:
            return f"A volume may be left behind: {failure.message}"
        for name in names:
            try:
                self._engine.remove_volume(name)
            except ConsoleError:
                # Another container took it into use meanwhile: then it is no longer ours.
                continue
        return None
