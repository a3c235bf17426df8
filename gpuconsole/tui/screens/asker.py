"""A screen that asks before it does something, without standing still meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual import work
from textual.screen import Screen
from textual.worker import Worker

if TYPE_CHECKING:
    from gpuconsole.tui.app import ConsoleApp
    from gpuconsole.tui.screens.question import Question


class Asker(Screen[None]):
    """Asks questions; a fault after the answer is told and does not end the console."""

    app: ConsoleApp

    @work(group="questions", exit_on_error=False, description="A question")
    async def ask(self, question: Question, then: Callable[[], object]) -> None:
        """Ask; at yes go on with ``then``, on the app's own thread."""
        from gpuconsole.tui.screens.question import QuestionScreen

        if await self.app.push_screen_wait(QuestionScreen(question)):
            then()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Hand it on: Textual tells the end of a worker to the screen that began it alone."""
        self.app.hear_worker(event)
