"""Whose the main processes of containers are, remembered for a while."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpuconsole.engine.model import Container

_UIDS_LAST_S = 10.0


class Uids:
    """User ids of containers' main processes, looked up anew only now and then: a process seldom becomes another's."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int | None, float, int | None]] = {}

    def of(self, container: Container) -> int | None:
        """The user id; None when it cannot be seen."""
        from gpuconsole.services.ownership import main_process_uid

        now = time.monotonic()
        pid, looked_at, uid = self._known.get(container.id, (None, 0.0, None))
        if pid is None or pid != container.pid or now - looked_at >= _UIDS_LAST_S:
            uid = main_process_uid(container)
            self._known[container.id] = (container.pid, now, uid)
        return uid

    def keep(self, container_ids: Iterable[str]) -> None:
        """Forget all others."""
        for gone in self._known.keys() - frozenset(container_ids):
            self._known.pop(gone, None)
