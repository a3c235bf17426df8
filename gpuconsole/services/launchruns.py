"""A launch as a run: on a thread of its own, told as it goes on, cancelled at any moment, remembered."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from gpuconsole.core.errors import ConsoleError
from gpuconsole.services.cancelling import Cancellation
from gpuconsole.services.endings import describe_exit
from gpuconsole.services.launching import Launched, LaunchStep, Phase, launch
from gpuconsole.services.runs import RunKind, RunState

if TYPE_CHECKING:
    from gpuconsole.launch.spec import LaunchSpec
    from gpuconsole.services.desk import Desk

_WORDS = {
    Phase.PLAN: "chooses GPUs",
    Phase.IMAGE: "brings the image",
    Phase.CREATE: "makes the container",
    Phase.START: "starts it",
    Phase.WATCH: "watches its first second",
    Phase.FOLLOW: "follows it",
}


class LaunchRun:
    """One launch.

    Args:
        desk: Whose session and runs.
        spec: What to launch.
        on_words: Told on the thread where it is, and the share of a pull that is done.
        on_end: Told on the thread how it ended.
    """

    def __init__(
        self,
        desk: Desk,
        spec: LaunchSpec,
        *,
        on_words: Callable[[str, float | None], None],
        on_end: Callable[[Launched | ConsoleError], None],
    ) -> None:
        self._desk = desk
        self._spec = spec
        self._on_words = on_words
        self._on_end = on_end
        self._cancellation = Cancellation()
        self._run_id = ""

    def start(self) -> None:
        """Begin."""
        self._run_id = self._desk.runs.begin(RunKind.LAUNCH, self._spec.name or self._spec.image, "")
        threading.Thread(target=self._work, name="launch", daemon=True).start()

    def cancel(self) -> None:
        """Ask it to stop; what was made is taken back."""
        self._cancellation.request()

    def _work(self) -> None:
        runs = self._desk.runs
        try:
            launched = launch(self._desk.session, self._spec, self._step, cancel=self._cancellation)
        except ConsoleError as error:
            state = RunState.CANCELLED if self._cancellation.requested else RunState.FAILED
            runs.end(self._run_id, state, f"{error.message} → {error.hint}" if error.hint else error.message)
            self._on_end(error)
            return
        except Exception as error:  # noqa: BLE001 (the thread must not end in silence, nor the run stay open)
            failure = ConsoleError(
                f"gpuconsole itself failed at launching ({type(error).__name__}: {error}).",
                hint="Look with 'gpuconsole ps' whether a container was left.",
            )
            runs.end(self._run_id, RunState.FAILED, failure.message)
            self._on_end(failure)
            return
        ending = launched.ending
        if ending is not None and ending.exit_code not in (0, None):
            runs.end(self._run_id, RunState.FAILED, f"{launched.name} ended at once, {describe_exit(ending.exit_code)}")
        else:
            runs.end(
                self._run_id, RunState.OK, f"{launched.name} runs" if ending is None else f"{launched.name} is done"
            )
        self._on_end(launched)

    def _step(self, step: LaunchStep) -> None:
        words, share = _WORDS[step.phase], None
        if step.pull is not None:
            words = str(step.pull)
            share = step.pull.current_bytes / step.pull.total_bytes if step.pull.total_bytes else None
        self._desk.runs.advance(self._run_id, words, share)
        self._on_words(words, share)
