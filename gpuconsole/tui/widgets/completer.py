"""An input that can be completed, and the list of what it can become."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Offset
from textual.message import Message
from textual.widgets import Input

from gpuconsole.core.text import plain, shorten
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.present.launchform import Shape
from gpuconsole.tui.present.pasted import taken
from gpuconsole.tui.widgets.lines import Lines

Choice = tuple[str, str]
"""What the input becomes, and what is known of it."""
_ROWS = 7
_LEAST = 8
"""Cells that a value has at least, before what is known of it."""


class Choices(Lines):
    """What the input in focus can become, above the rest of the screen. It never has the focus itself."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._choices: tuple[Choice, ...] = ()
        self._place = 0

    @property
    def is_open(self) -> bool:
        """Whether it is shown."""
        return bool(self._choices)

    @property
    def choice(self) -> str:
        """What the cursor is on."""
        return self._choices[self._place][0] if self._choices else ""

    def on_mount(self) -> None:
        """Nothing to choose yet."""
        self.display = False

    def offer(self, choices: Sequence[Choice], at: Input) -> None:
        """Show ``choices`` under ``at``, or above it where there is no room."""
        self._choices, self._place = tuple(choices), 0
        self.display = bool(choices)
        if not choices:
            return
        screen, field = self.screen.size, at.region
        rows = min(_ROWS, len(choices))
        wanted = max(max(_LEAST, cell_len(value)) + cell_len(told) + 4 for value, told in self._choices)
        x = max(0, min(field.x, screen.width - 20))
        width = min(max(wanted, 20), screen.width - x)
        below = field.bottom + rows < screen.height
        self.styles.offset = Offset(x, field.bottom if below else max(0, field.y - rows))
        self.styles.width = width
        self.styles.height = rows
        self._draw()

    def shut(self) -> None:
        """Hide it."""
        self._choices = ()
        self.display = False

    def move(self, step: int) -> None:
        """The next choice, round and round."""
        if self._choices:
            self._place = (self._place + step) % len(self._choices)
            self._draw()

    def _draw(self) -> None:
        rows, width = min(_ROWS, len(self._choices)), int(self.styles.width.value if self.styles.width else 20)
        top = max(0, min(self._place - rows // 2, len(self._choices) - rows))
        lines = []
        for place in range(top, top + rows):
            value, told = self._choices[place]
            room = max(_LEAST, width - 2 - (cell_len(told) + 2 if told else 0))
            text = f" {_end_of(value, room):<{room}}{f'  {told}' if told else ''} "
            lines.append((Cell(shorten(text, width), "cursor" if place == self._place else ""),))
        self.show(lines)


def _end_of(value: str, width: int) -> str:
    """A path is told by its end."""
    return value if len(value) <= width else f"~{value[len(value) - width + 1 :]}"


class CompletingInput(Input):
    """An input whose choices open as one types, and with down; tab or enter takes one, esc takes none."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "take", "Take it", show=False),
        Binding("escape", "shut", "Close", show=False),
        Binding("down", "lower(1)", "Next", show=False),
        Binding("up", "lower(-1)", "Before", show=False),
    ]

    class Wanted(Message):
        """What can it become?"""

        def __init__(self, field: CompletingInput, *, everything: bool) -> None:
            super().__init__()
            self.field = field
            self.everything = everything
            """Not only what fits the words that stand there."""

    class PastedMore(Message):
        """Lines were pasted that have no place in it; the first one stands there."""

        def __init__(self, field: CompletingInput, lines: tuple[str, ...]) -> None:
            super().__init__()
            self.field = field
            self.lines = lines

    def __init__(self, *, id: str, name: str, placeholder: str, completes: bool, shape: Shape = Shape.ONE) -> None:
        super().__init__(id=id, name=name, placeholder=placeholder, compact=True, select_on_focus=False)
        self.completes = completes
        """Whether there is anything it can be completed to."""
        self.shape = shape
        """How its text is read: what of several pasted lines it takes."""
        self.settled = ""
        """Text that needs no completion: it was there at first, or was chosen."""

    def validate_value(self, value: str) -> str:
        """Take away what a terminal would obey: a paste can hold it."""
        return " ".join(plain(value).splitlines()).replace("\t", " ")

    def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()  # Textual takes the first line, and says nothing of the others
        line, more = taken(event.text, self.shape)
        self.replace(line, *self.selection)
        if more and self.shape is Shape.LINES:
            self.post_message(self.PastedMore(self, more))
        elif more:
            words = f"Only the first of {1 + len(more)} pasted lines was taken: this is one value."
            self.app.notify(words, severity="warning", markup=False)

    def settle(self, value: str) -> None:
        """Write ``value``, which needs no completion."""
        self.settled = value
        self.value = value
        self.cursor_position = len(value)

    @property
    def _choices(self) -> Choices:
        return self.screen.query_one(Choices)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Tab and esc are the form's while there is nothing to choose."""
        if action in ("take", "shut"):
            return self._choices.is_open
        return True

    def action_take(self) -> None:
        """Become what the cursor is on; where the list was shut just now, stay what it is."""
        if choice := self._choices.choice:
            self.settle(choice)
        self._choices.shut()

    def action_shut(self) -> None:
        """Take none."""
        self.settled = self.value
        self._choices.shut()

    def action_lower(self, step: int) -> None:
        """Move among the choices; with none open, open them, or go to the next field."""
        if self._choices.is_open:
            self._choices.move(step)
        elif step > 0 and self.completes:
            self.post_message(self.Wanted(self, everything=True))
        elif step > 0:
            self.screen.focus_next()
        else:
            self.screen.focus_previous()

    async def action_submit(self) -> None:
        """Take the choice, else go on."""
        if self._choices.is_open:
            self.action_take()
        else:
            await super().action_submit()

    def on_blur(self) -> None:
        """Choices belong to the input in focus."""
        if self.screen.is_attached:
            for choices in self.screen.query(Choices):
                choices.shut()
