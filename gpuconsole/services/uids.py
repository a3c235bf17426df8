"""Whose the main processes of containers are, remembered for a while."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpuconsole.engine.model import Container

_FIRST_S, _LAST_S = 2.0, 60.0
"""A process may become another's as it starts, seldom later: a look is believed twice as long as the one before."""


class Uids:
    """User ids of containers' main processes, looked up anew only now and then."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int | None, float, float, int | None]] = {}
        """Id of a container → its main process, until when and for how long its user is believed, its user."""

    def of(self, container: Container) -> int | None:
        """The user id; None when it cannot be seen."""
        from gpuconsole.services.ownership import main_process_uid

        now = time.monotonic()
        pid, until, lasts, uid = self._known.get(container.id, (None, 0.0, 0.0, None))
        if pid is None or pid != container.pid or now >= until:
            lasts = _FIRST_S if pid != container.pid else min(2 * lasts, _LAST_S)
            uid = main_process_uid(container)
            self._known[container.id] = (container.pid, now + lasts, lasts, uid)
        return uid

    def keep(self, container_ids: Iterable[str]) -> None:
        """Forget all others."""
        for gone in self._known.keys() - frozenset(container_ids):
            self._known.pop(gone, None)
