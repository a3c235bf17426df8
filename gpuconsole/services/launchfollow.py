"""Keeps what the console tells of launches as it is, on a thread of its own: whenever one's container came or went."""

from __future__ import annotations

import contextlib
import threading
from functools import partial
from typing import TYPE_CHECKING

from gpuconsole.core.errors import ConsoleError
from gpuconsole.launch.labels import LAUNCH

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from gpuconsole.engine.model import Container
    from gpuconsole.services.runs import Runs
    from gpuconsole.services.session import Session

_SETTLES_S = 1.0
"""What happens at the same time is looked at once; and the first screen comes first."""


class LaunchFollower:
    """Follows the launches of this user on one engine.

    Args:
        session: Whose engine.
        runs: Where they are told.
        path: File of the launch records; None takes the usual one.
    """

    def __init__(self, session: Session, runs: Runs, *, path: Path | None = None) -> None:
        self._session = session
        self._runs = runs
        self._path = path
        self._changed = threading.Event()
        self._closed = threading.Event()
        self._seen: frozenset[tuple[str, str]] | None = None
        self._thread: threading.Thread | None = None

    def containers_listed(self, containers: Iterable[Container]) -> None:
        """The engine's containers are these; nothing is done when none of a launch came, went or ended."""
        seen = frozenset((each.id, each.state.value) for each in containers if LAUNCH in each.labels)
        if seen == self._seen:
            return
        self._seen = seen
        self._changed.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="launch-follower", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Follow no more; a look that is under way ends by itself."""
        self._closed.set()
        self._changed.set()

    def _work(self) -> None:
        while self._changed.wait() and not self._closed.wait(_SETTLES_S):
            self._changed.clear()
            with contextlib.suppress(ConsoleError):  # the engine is gone, or the records: the rows stay as they are
                self._look()

    def _look(self) -> None:
        from gpuconsole.engine.model import ContainerState
        from gpuconsole.services.launchends import settle
        from gpuconsole.services.launchrecords import LaunchRecords
        from gpuconsole.services.launchrows import with_launches

        records = LaunchRecords(path=self._path)
        try:
            containers = settle(self._session.engine, records)
            known = records.all()
        finally:
            records.close()
        over = (ContainerState.EXITED, ContainerState.DEAD)
        up = frozenset(each.id for each in containers if each.state not in over)
        if not self._closed.is_set():
            self._runs.show_by(partial(with_launches, records=known, up=up))
