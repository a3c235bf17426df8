"""Output written to a file in the background."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpuconsole.core.errors import ConsoleError, EngineUnavailable, NotFound
from gpuconsole.engine.protocol import Stream
from gpuconsole.services.logfollow import LogLine
from gpuconsole.services.logsave import save_log, write_lines
from gpuconsole.tui.messages import ActionDone, ActionFailed
from gpuconsole.tui.present import logs

if TYPE_CHECKING:
    from gpuconsole.tui.app import ConsoleApp


class LogSaver:
    """Writes everything the engine has of an output; where it gives none, what the console kept of it.

    Args:
        app: Is told how it went.
    """

    def __init__(self, app: ConsoleApp) -> None:
        self._app = app
        self._stream: Stream[tuple[str, bytes]] | None = None
        self._closed = False

    def start(self, container_id: str, path: Path, *, overwrite: bool, stamps: bool, kept: Sequence[LogLine]) -> None:
        """Write it on a thread of its own."""

        def save() -> None:
            try:
                text = self._save(container_id, path, overwrite, stamps, kept)
                self._app.post_message(ActionDone(text))
            except ConsoleError as error:
                self._app.post_message(ActionFailed(error))

        threading.Thread(target=save, name="log-saver", daemon=True).start()

    def _save(self, container_id: str, path: Path, overwrite: bool, stamps: bool, kept: Sequence[LogLine]) -> str:
        try:
            count = save_log(
                self._app.desk.session.engine, container_id, path, overwrite=overwrite, timestamps=stamps,
                on_stream=self._remember,
            )  # fmt: skip
        except (EngineUnavailable, NotFound):
            lines = [f"{logs.as_text([line], stamps=stamps)}\n" for line in kept]
            count = write_lines(path, lines, overwrite=overwrite)
            return f"Wrote to {path} the {count:,} lines that are kept here; the engine does not give more."
        return f"Wrote {count:,} lines to {path}."

    def _remember(self, stream: Stream[tuple[str, bytes]]) -> None:
        self._stream = stream
        if self._closed:
            stream.close()

    def close(self) -> None:
        """End it; what is written till now stays."""
        self._closed = True
        if self._stream is not None:
            self._stream.close()
