"""A container's output: followed, searched, saved."""

from __future__ import annotations

import os
import textwrap
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.widgets import Input

from gpuconsole.engine.model import Container
from gpuconsole.services.logfollow import LogFollower, LogState, LogStatus
from gpuconsole.tui import actions, sheets
from gpuconsole.tui.leaving import leave
from gpuconsole.tui.present import logs
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.screens.asker import Asker
from gpuconsole.tui.screens.asking import about_file
from gpuconsole.tui.screens.saving import LogSaver
from gpuconsole.tui.widgets.keyline import KeyLine
from gpuconsole.tui.widgets.lines import Lines
from gpuconsole.tui.widgets.logview import LogView

if TYPE_CHECKING:
    from gpuconsole.tui.app import ConsoleApp

_PACE_S = 0.1
"""Seconds between two looks at what came."""
_TYPING = ("search", "save")
"""Actions that open a line to type in."""


class LogScreen(Asker):
    """Shows the output of one container until it is closed.

    Args:
        container: Whose; it need not run.
    """

    CSS_PATH = sheets.of("logs")
    app: ConsoleApp
    HELP = (
        "The container's output, harmless. Scrolling up stops the following, end or {logs.follow} goes on with it. "
        "In a search {logs.next} and {logs.previous} go to the next and the previous line, esc ends it."
    )
    AUTO_FOCUS = "#log"
    # What opens a line to type in is heard before the focus is asked, so that keys that come in one piece with it, as
    # over a slow connection, are typed and not obeyed.
    BINDINGS: ClassVar[list[BindingType]] = [
        *(replace(each, priority=each.action in _TYPING) for each in actions.bindings(actions.LOGS)),
        actions.BACK.binding(),
    ]

    class News(Message):
        """Output came, or the following changed."""

        def can_replace(self, message: Message) -> bool:
            """One is as good as many."""
            return isinstance(message, LogScreen.News)

    def __init__(self, container: Container) -> None:
        super().__init__()
        self.container = container
        self._began_at, self._listed = container.started_at, True
        self._status = LogStatus(LogState.OPENING)
        self._follower = LogFollower(lambda: self.app.desk.session.engine, container.id, self._tell_news)
        self._taken_at = 0.0
        self._timer_runs = False
        self._held = False
        """Output waits, so that nothing is let go of for it while somebody reads."""

    def compose(self) -> ComposeResult:
        """The parts, top to bottom."""
        yield Lines(id="top")
        yield LogView(self.app.glyphs, id="log")
        yield Lines(id="notice")
        yield Input(id="search", placeholder="words to look for; enter keeps them, esc ends the search", compact=True)
        yield Input(id="path", placeholder="the file to write; enter writes it, esc goes back", compact=True)
        yield KeyLine(id="keys")

    def on_mount(self) -> None:
        """Begin to follow."""
        for line in self.query(Input):
            line.display = False
        self._view = self.query_one(LogView)
        self._saver = LogSaver(self.app)
        self.watch(self.app, "containers", self._see_container, init=False)
        self.watch(self.app, "link", self._see_link, init=False)
        self._draw()
        self._follower.start()

    def on_unmount(self) -> None:
        """Let go of the stream, waiting for nobody."""
        self._follower.close()
        self._saver.close()

    # --- what comes ---

    def _tell_news(self) -> None:
        """On the follower's thread."""
        self.post_message(self.News())

    @on(News)
    def _see_news(self) -> None:
        """Take what came now, or as soon as the last look is long enough ago."""
        wait_s = self._taken_at + _PACE_S - time.monotonic()
        if wait_s <= 0:
            self._take()
        elif not self._timer_runs:
            self._timer_runs = True
            self.set_timer(wait_s, self._take)

    def _take(self) -> None:
        self._timer_runs = False
        self._taken_at = time.monotonic()
        lines, characters, self._status = self._follower.waiting()
        self._held = not self._view.following and not self._view.buffer.takes(lines, characters)
        if not self._held:
            batch = self._follower.take()
            self._view.add(batch.lines, batch.partial)
        self._draw()

    def _see_container(self) -> None:
        """Open the stream anew when the container was started again, and look what became of one that is not listed."""
        views = self.app.containers or ()
        container = next((each.container for each in views if each.container.id == self.container.id), None)
        if container is None:
            if self._listed and self.app.containers is not None:
                self._follower.wake()  # it may have ended before, and be removed only now
                self._listed = False
            return
        self.container, self._listed = container, True
        if container.started_at != self._began_at:
            # Not whether it runs: it may have ended again before it was looked at.
            self._began_at = container.started_at
            self._follower.wake()
        self._draw()

    def _see_link(self) -> None:
        """Ask again as soon as the engine is back."""
        link = self.app.link
        if link is not None and link.connected and self._status.state is LogState.LOST:
            self._follower.wake()
        self._draw()

    # --- what is shown ---

    @on(LogView.Changed)
    def _see_view(self) -> None:
        if self._held and self._view.following:
            self._take()
        self._draw()

    def _draw(self) -> None:
        view, buffer = self._view, self._view.buffer
        top = logs.top_line(
            self.container.name, self._status, following=view.following, news=self._news(),
            count=len(buffer.lines_kept), dropped=buffer.first, found=view.finder.summary(), width=self.size.width,
        )  # fmt: skip
        self.query_one("#top", Lines).show([top])
        message, hint = self._words()
        width = max(20, self.size.width - 2)
        lines = [(Cell(f" {part}", "watch"),) for part in textwrap.wrap(message, width)]
        lines += [(Cell(f" {part}", "dim"),) for part in textwrap.wrap(f"→ {hint}", width) if hint]
        notice = self.query_one("#notice", Lines)
        notice.display = bool(lines)
        notice.show(lines)

    def _news(self) -> str:
        """What came while somebody reads."""
        if self._held:
            return ", more waits"
        return f", {behind:,} new" if (behind := self._view.buffer.end - self._view.seen) else ""

    def _words(self) -> tuple[str, str]:
        """What is to be said below the output."""
        link = self.app.link
        if link is not None and not link.connected and self._status.state is not LogState.GONE:
            return link.message, link.hint
        if self._status.message:
            again = "The output goes on here when it is started again."
            return self._status.message, again if self._status.state is LogState.ENDED else self._status.hint
        if self._status.state is LogState.FOLLOWING and self._view.buffer.end == 0:
            return "Nothing was written yet.", ""
        return "", ""

    # --- keys ---

    def action_back(self) -> None:
        """End the typing, then the search, then the screen."""
        typing = [line for line in self.query(Input) if line.display]
        if not typing and not self._view.finder.words:
            leave(self)
            return
        for line in typing:
            line.display = False
        if not typing or typing[0].id == "search":
            self._view.search("")
        self.set_focus(self._view)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While something is typed, its keys are letters."""
        return action not in _TYPING or not any(line.display for line in self.query(Input))

    def _type(self, where: str, text: str) -> None:
        line = self.query_one(where, Input)
        line.display = True
        line.value = text
        line.cursor_position = len(text)
        self.set_focus(line)
        self.refresh_bindings()

    def action_search(self) -> None:
        """Type what to look for."""
        self._type("#search", self._view.finder.words)

    @on(Input.Changed, "#search")
    def _search_as_typed(self, event: Input.Changed) -> None:
        if event.input.display and event.value != self._view.finder.words:
            self._view.search(event.value)

    @on(Input.Submitted, "#search")
    def _keep_search(self, event: Input.Submitted) -> None:
        event.input.display = False
        self.set_focus(self._view)
        self._view.search(event.value)  # what was typed last may not have been told yet
        self._view.go_to_match(1)

    def action_next_match(self, step: int) -> None:
        """Go to the next line with the words, or the previous one."""
        self._view.go_to_match(step)

    def action_follow(self) -> None:
        """Stay at the end, or stay here."""
        self._view.following = not self._view.following

    def action_wrap(self) -> None:
        """Break long lines, or cut them."""
        self._view.wrap = not self._view.wrap

    def action_timestamps(self) -> None:
        """Show when each line was written, or not."""
        self._view.stamps = not self._view.stamps

    def action_copy(self) -> None:
        """Choose what is copied."""
        from gpuconsole.tui.screens.copying import Copy, CopyScreen

        view, stamps = self._view, self._view.stamps
        seen = view.on_screen()
        found = view.finder.found
        line = view.buffer[found] if found is not None else (seen[-1] if seen else None)
        if line is None:
            self.app.notify("There is nothing to copy yet.", markup=False, timeout=3)
            return
        kept = view.buffer.lines_kept
        what = "line found" if found is not None else "last line"
        copies = (
            Copy(what, logs.as_text([line], stamps=stamps)),
            Copy(f"screen, {len(seen)}", logs.as_text(seen, stamps=stamps)),
            Copy(f"all {len(kept):,}", logs.as_text(kept, stamps=stamps)),
        )
        self.app.push_screen(CopyScreen(copies))

    def action_save(self) -> None:
        """Ask for the file."""
        self._type("#path", f"./{self.container.name}.log")

    @on(Input.Submitted, "#path")
    def _save_there(self, event: Input.Submitted) -> None:
        event.input.display = False
        self.set_focus(self._view)
        if typed := event.value.strip():
            path = Path(os.path.expanduser(typed))  # Path's own fails at users there are not, and in closed folders
            there = os.path.exists(path)
            save = partial(self._save, path, overwrite=there)
            if there:
                self.ask(about_file(path), save)
            else:
                save()

    def _save(self, path: Path, *, overwrite: bool) -> None:
        self._saver.start(
            self.container.id, path, overwrite=overwrite, stamps=self._view.stamps,
            kept=tuple(self._view.buffer.lines_kept),
        )  # fmt: skip
