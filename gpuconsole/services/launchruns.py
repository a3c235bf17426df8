"""A launch as a run: on a thread of its own, told as it goes on, cancelled at any moment, remembered."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpuconsole.core.errors import ConsoleError
from gpuconsole.core.text import plain_line
from gpuconsole.services.cancelling import Cancellation
from gpuconsole.services.launching import Launched, LaunchStep, Phase, launch
from gpuconsole.services.runs import RunKind, RunState
from gpuconsole.services.weighing import spec_of

if TYPE_CHECKING:
    from gpuconsole.launch.options import LaunchOptions
    from gpuconsole.services.desk import Desk
    from gpuconsole.services.pulling import PullState

_WORDS = {
    Phase.PLAN: "choosing GPUs",
    Phase.IMAGE: "bringing the image",
    Phase.WAIT: "waiting for a free GPU",
    Phase.CREATE: "making the container",
    Phase.START: "starting it",
    Phase.WATCH: "watching its first second",
    Phase.FOLLOW: "following it",
}
_PULL_NEWS_S = 0.2
"""Between two pieces of news of a pull: an engine tells some hundred a second."""


@dataclass(frozen=True, slots=True)
class LaunchNews:
    """Where a launch is."""

    words: str
    share: float | None = None
    """The part of a pull that is done, 0 … 1."""
    pull: PullState | None = None


class LaunchRun:
    """One launch.

    Args:
        desk: Whose session and runs.
        options: What to launch, as typed.
        on_news: Told on the thread where it is.
        on_end: Told on the thread how it ended; SpecInvalid when it did not even begin.
        profile: Which profile the options began as; empty when none.
        taken: Variables of the shell whose values that profile has put in.
        when_free: Wait until nobody is on the GPUs it is to get.
    """

    def __init__(
        self,
        desk: Desk,
        options: LaunchOptions,
        *,
        on_news: Callable[[LaunchNews], None],
        on_end: Callable[[Launched | ConsoleError], None],
        profile: str = "",
        taken: Iterable[str] = (),
        when_free: bool = False,
    ) -> None:
        self._desk = desk
        self._options = options
        self._on_news = on_news
        self._on_end = on_end
        self._profile = profile
        self._taken = frozenset(taken)
        self._when_free = when_free
        self._cancellation = Cancellation()
        self._told_at = 0.0
        self._run_id = ""

    def start(self) -> None:
        """Begin."""
        threading.Thread(target=self._work, name="launch", daemon=True).start()

    def cancel(self) -> None:
        """Ask it to stop; what was made is taken back."""
        self._cancellation.request()

    def _work(self) -> None:
        try:
            spec = replace(spec_of(self._desk.session, self._options), profile=self._profile, taken=self._taken)
        except ConsoleError as error:
            self._on_end(error)
            return
        except Exception as error:  # noqa: BLE001 (who waits for the end must be told of it)
            self._on_end(_our_fault(error))
            return
        runs = self._desk.runs
        self._run_id = runs.begin(RunKind.LAUNCH, spec.name or spec.image, "")
        self._desk.hold(self._run_id, self._cancellation, threading.current_thread())
        outcome: Launched | ConsoleError
        try:
            outcome = launch(self._desk.session, spec, self._step, cancel=self._cancellation, when_free=self._when_free)
            state, headline = _conclusion(outcome)
            headline += f", from the profile {self._profile}" if self._profile else ""
            runs.end(self._run_id, state, headline, subject=outcome.name, subject_id=outcome.id)
        except ConsoleError as error:
            state = RunState.CANCELLED if self._cancellation.requested else RunState.FAILED
            runs.end(self._run_id, state, f"{error.message} → {error.hint}" if error.hint else error.message)
            outcome = error
        except Exception as error:  # noqa: BLE001 (the thread must not end in silence, nor the run stay open)
            outcome = _our_fault(error)
            runs.end(self._run_id, RunState.FAILED, outcome.message)
        finally:
            self._desk.let_go(self._run_id)
        self._on_end(outcome)

    def _step(self, step: LaunchStep) -> None:
        news = LaunchNews(_WORDS[step.phase])
        if step.phase is Phase.WAIT and step.plan is not None:
            taken = "; ".join(f"{unit.label}: {unit.state}" for unit in step.plan.choice.units)
            news = LaunchNews(plain_line(f"{news.words}: {taken}"))
        if step.pull is not None:
            now, pull = time.monotonic(), step.pull
            if now - self._told_at < _PULL_NEWS_S and pull.layers_done < pull.layers:
                return
            self._told_at = now
            share = pull.current_bytes / pull.total_bytes if pull.total_bytes else None
            news = LaunchNews(f"pulling: {plain_line(str(pull))}", share, pull)
        self._desk.runs.advance(self._run_id, news.words, news.share)
        self._on_news(news)


def _our_fault(error: Exception) -> ConsoleError:
    return ConsoleError(
        plain_line(f"gpuconsole itself failed at launching ({type(error).__name__}: {error})."),
        hint="Look with 'gpuconsole ps' whether a container was left.",
    )


def _conclusion(launched: Launched) -> tuple[RunState, str]:
    ending = launched.ending
    if ending is None:
        return RunState.OK, f"{launched.name} was started"
    if ending.exit_code in (0, None) and ending.restarts is None:
        return RunState.OK, f"{launched.name} is done"
    return RunState.FAILED, f"{launched.name} {ending.words}"
