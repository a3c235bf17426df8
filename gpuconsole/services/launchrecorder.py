"""Writes one launch down as it goes on; a launch goes on whether that works or not."""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING

from gpuconsole.core.errors import BadFile, ConsoleError, EngineUnavailable, NotFound
from gpuconsole.launch.labels import LAUNCH
from gpuconsole.services.cancelling import Cancelled

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuconsole.engine.model import Container
    from gpuconsole.engine.protocol import Engine
    from gpuconsole.launch.spec import LaunchSpec
    from gpuconsole.services.launchrecords import LaunchRecords
    from gpuconsole.services.planning import LaunchPlan

NOT_STARTED = "not-started"
"""The cause of a launch whose command never ran."""
_CODES = (("There is no program ", 127), ("The program ", 126))
"""How a failure begins, and the code that a shell has for it."""


class LaunchRecorder:
    """Writes down one launch.

    Args:
        spec: What was asked for; one that nobody wrote as options is not written down.
        opened: Gives the records.
    """

    def __init__(self, spec: LaunchSpec, *, opened: Callable[[], LaunchRecords] | None = None) -> None:
        self._spec = spec
        self._opened = opened or _usual
        self._records: LaunchRecords | None = None
        self._word = ""
        self._failure: ConsoleError | None = None
        self._exit_code: int | None = None
        self.problem = ""
        """Why it is not remembered; empty when it is."""

    def begin(self, plan: LaunchPlan) -> None:
        """Its container is about to be started."""
        written = self._spec.written
        if written is None:
            return
        from gpuconsole.launch.render import DockerRun
        from gpuconsole.services.shownsecrets import kept_words, references_of

        hidden = references_of(self._spec, os.environ)
        command = str(DockerRun(kept_words(plan)))
        self._word = plan.request.labels[LAUNCH]
        records = None
        try:
            records = self._opened()
            folder = self._spec.folder
            records.begin(plan, written, word=self._word, folder=folder, command=command, hidden=hidden)
        except BadFile as error:
            self.problem = error.message
            if records is not None:
                records.close()
            return
        self._records = records

    def started(self, container_id: str) -> None:
        """Its container runs."""
        if self._records is not None:
            with contextlib.suppress(BadFile):
                self._records.started(self._word, container_id)

    def failed(self, engine: Engine, container_id: str, error: BaseException, *, exit_code: int | None = None) -> None:
        """It could not be started, and is about to be taken back: why, and by which code. An interrupt is no failure.

        Args:
            engine: Its engine, which is asked for the code where there is none yet.
            container_id: Its container; empty while there is none.
            error: Why.
            exit_code: Of a container that ended without having run its command.
        """
        if self._records is None or not isinstance(error, ConsoleError) or isinstance(error, Cancelled):
            return
        self._failure, self._exit_code = error, exit_code
        if exit_code is None and container_id and not isinstance(error, EngineUnavailable):
            with contextlib.suppress(ConsoleError):
                self._exit_code = engine.container(container_id).exit_code
        if self._exit_code in (None, 0):  # one that is removed at its end leaves no code when it does not even start
            self._exit_code = next((code for words, code in _CODES if error.message.startswith(words)), None)

    def settle(self, engine: Engine) -> None:
        """Write down how it ended, if it has; what was taken back on request is forgotten."""
        if self._records is None:
            return
        from gpuconsole.services.launchends import settle_one

        with contextlib.suppress(ConsoleError):
            record = self._records.by_word(self._word)
            if record is None:  # its records were taken away meanwhile
                return
            found = self._container(engine, record.container_id)
            if found is None and self._failure is not None:
                self._records.end(
                    record.number, ended_at=time.time(), exit_code=self._exit_code, cause=NOT_STARTED,
                    reason=f"It could not be started: {self._failure.message}",
                    advice=(self._failure.hint,) if self._failure.hint else (),
                )  # fmt: skip
            elif found is None and record.container_id is None:
                self._records.forget(self._word)
            else:
                settle_one(engine, self._records, record, found)

    def _container(self, engine: Engine, container_id: str | None) -> Container | None:
        """Its container; all are looked through only where its id is not known, as when the launch broke off."""
        if container_id is None:
            containers = engine.containers(everything=True)
            return next((each for each in containers if each.labels.get(LAUNCH) == self._word), None)
        try:
            return engine.container(container_id)
        except NotFound:
            return None

    def close(self) -> None:
        """Close the records."""
        if self._records is not None:
            self._records.close()
            self._records = None


def _usual() -> LaunchRecords:
    from gpuconsole.services.launchrecords import LaunchRecords

    return LaunchRecords()
