"""A screen that asks before it does something, and does it without standing still meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from textual import on, work
from textual.message import Message
from textual.screen import Screen
from textual.worker import Worker

from gpuconsole.core.errors import ConsoleError
from gpuconsole.tui.messages import ActionBroke, ActionDone, ActionFailed

if TYPE_CHECKING:
    from gpuconsole.tui.app import ConsoleApp
    from gpuconsole.tui.screens.question import Question

T = TypeVar("T")


class Asker(Screen[None]):
    """Asks questions; a fault after the answer is told and does not end the console."""

    app: ConsoleApp

    class Prepared(Message):
        """What is to be known before a question is known now."""

        def __init__(self, then: Callable[[], object]) -> None:
            super().__init__()
            self.then = then

    @work(group="questions", exit_on_error=False, description="A question")
    async def ask(self, question: Question, then: Callable[[], object]) -> None:
        """Ask; at yes go on with ``then``, on the app's own thread."""
        from gpuconsole.tui.screens.question import QuestionScreen

        if await self.app.push_screen_wait(QuestionScreen(question, asked_by=self)):
            then()

    def do(self, act: Callable[..., str], *arguments: Any) -> None:
        """Do it in the background; what it returns is told when it is done."""
        app = self.app

        def carry_out() -> None:
            app.post_message(ActionDone(act(*arguments)))
            app.desk.refresh()

        self._behind(carry_out, lambda: app.desk.refresh())

    def prepare(self, look: Callable[[], T], then: Callable[[T], object]) -> None:
        """Find something out in the background; go on with ``then`` on the app's own thread, unless it failed."""

        def find_out() -> None:
            found = look()
            self.post_message(self.Prepared(lambda: then(found)))

        self._behind(find_out, lambda: None)

    def _behind(self, act: Callable[[], object], at_failure: Callable[[], object]) -> None:
        """On a daemon thread: an engine that hangs must not keep anybody from leaving, as a worker's thread would."""
        app = self.app

        def work() -> None:
            try:
                act()
            except ConsoleError as error:
                app.post_message(ActionFailed(error))
                at_failure()
            except Exception as error:  # noqa: BLE001 (no fault of our own stays silent)
                app.post_message(ActionBroke(error))
                at_failure()

        threading.Thread(target=work, name="action", daemon=True).start()

    @on(Prepared)
    def _go_on(self, prepared: Prepared) -> None:
        prepared.then()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Hand it on: Textual tells the end of a worker to the screen that began it alone."""
        self.app.hear_worker(event)
