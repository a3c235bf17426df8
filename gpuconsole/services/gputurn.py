"""Choosing GPUs one launch after the other, so that two that begin at once do not both take the same free one.

From the choice until its container runs, and so is seen by others, a launch holds a lock that all gpuconsoles of this
machine share, whoever runs them. A lock that cannot be had in time holds up nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from gpuconsole.launch.gpus import is_free
from gpuconsole.services.cancelling import Cancellation, Cancelled
from gpuconsole.services.hostlock import HostLock, shared_folder
from gpuconsole.services.planning import LaunchPlan, chosen_freely, plan_launch, with_gpus_now

if TYPE_CHECKING:
    from gpuconsole.launch.spec import LaunchSpec
    from gpuconsole.services.session import Session

_NAME = "gpuconsole-gpus.lock"
_PATIENCE_S = 20.0
"""A launch takes a second or two from the choice to the start."""
_LOOK_S = 0.05
_WAIT_S = 2.0
"""Between two looks for a GPU that is to become free."""


class GpuTurn:
    """The turn to choose GPUs.

    Args:
        folder: Where the lock is; one that every user of the machine can read.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._lock = HostLock((folder or shared_folder()) / _NAME)

    def take(self, cancel: Cancellation) -> bool:
        """Wait for the turn; False when it could not be had in time, or there can be no lock here."""
        until = time.monotonic() + _PATIENCE_S
        while (taken := self._lock.take()) is False:
            if time.monotonic() > until or cancel.wait(_LOOK_S):
                return False
        return bool(taken)

    def release(self) -> None:
        """Let the next one choose."""
        self._lock.release()


def take_gpus(
    session: Session,
    spec: LaunchSpec,
    plan: LaunchPlan,
    turn: GpuTurn,
    *,
    cancel: Cancellation,
    when_free: bool,
    anew: bool,
    on_wait: Callable[[LaunchPlan], None],
) -> LaunchPlan:
    """The plan with the GPUs as they are in our turn.

    Args:
        session: Whose GPUs and engine.
        spec: What was asked for.
        plan: As it was planned before.
        turn: Taken here, where others could choose the same; the caller releases it once the container runs.
        cancel: Ends the waiting.
        when_free: Wait until nobody is on the GPUs.
        anew: Plan once more in any case; else only where the GPUs are others, or taken, or free by now.
        on_wait: Told at each look, while waiting, what is not free.

    Raises:
        Cancelled: The waiting was ended.
        ConsoleError: As planning.
    """
    contested = bool(plan.choice.units) and (when_free or chosen_freely(spec))
    while contested:
        turn.take(cancel)
        plan = (None if anew else with_gpus_now(session, plan)) or plan_launch(session, spec, name=plan.name)
        anew = False
        if not when_free or all(is_free(unit) for unit in plan.choice.units):
            return plan
        turn.release()
        on_wait(plan)
        if cancel.wait(_WAIT_S):
            raise Cancelled("No longer waited for a free GPU: nothing was launched.")
    return plan_launch(session, spec, name=plan.name) if anew else plan
