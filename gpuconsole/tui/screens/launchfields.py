"""The fields of the launch form: filled in, completed, read as text, and what is wrong shown under each row."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input

from gpuconsole.tui.present import launchform, launchgpus, launchtext
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.widgets.completer import Choice, Choices, CompletingInput
from gpuconsole.tui.widgets.gpupicker import GpuPicker
from gpuconsole.tui.widgets.lines import Lines
from gpuconsole.tui.widgets.tick import Snug

if TYPE_CHECKING:
    from gpuconsole.launch.spec import FieldProblem
    from gpuconsole.tui.app import ConsoleApp
    from gpuconsole.tui.present.launchform import Field, Group

_VOLUMES = next(field for field in launchform.FIELDS if field.key == "volumes")
_PROBLEM_ROWS = 2
"""Rows that a problem takes beside its field at most; the fields must stay in sight."""


class LaunchFields(VerticalScroll, can_focus=False, inherit_bindings=False):
    """Rows of fields; they scroll as the focus goes."""

    app: ConsoleApp

    class Edited(Message):
        """The person wrote something."""

    class Found(Message):
        """Paths that begin with what was typed."""

        def __init__(self, field: CompletingInput, text: str, paths: tuple[str, ...], *, asked: bool) -> None:
            super().__init__()
            self.field = field
            self.text = text
            self.paths = paths
            self.asked = asked
            """They were asked for by a key: with none, that key goes on to the next field."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._volumes: list[CompletingInput] = []

    def compose(self) -> ComposeResult:
        """The rows, then those that are rarely needed."""
        for group in launchform.ROWS:
            if group[0].key == "volumes":
                yield Vertical(id="volumes")
            else:
                yield self._row(group)
            yield Lines(id=f"problem-{group[0].key}", classes="problem")
            if group[0].key == "gpus":
                yield GpuPicker(id="picker")
        for group in launchform.MORE:
            yield self._row(group, classes="more")
            yield Lines(id=f"problem-{group[0].key}", classes="problem")

    def _row(self, group: Group, *, classes: str = "") -> Horizontal:
        parts: list[Widget] = []
        for place, field in enumerate(group):
            label = Lines(id=f"label-{field.key}", classes="label" if place == 0 else "label -inner")
            line = self._input(field, f"field-{field.key}")
            line.set_class(bool(field.width), f"-w{field.width}")
            parts += [label, line]
        if group[0].key == "image":
            parts.append(Snug(id="facts"))
        return Horizontal(*parts, classes=f"row {classes}".strip())

    def _input(self, field: Field, id: str) -> CompletingInput:
        completes = bool(field.choices) or field.key == "image" or field.key in launchform.PATHS
        return CompletingInput(id=id, placeholder=field.hint, completes=completes, name=field.key)

    def on_mount(self) -> None:
        """Write the labels."""
        for field in launchform.FIELDS:
            if field.key != "volumes":
                self.query_one(f"#label-{field.key}", Lines).show([(Cell(f" {field.label}", "dim"),)])
        self._add_volume("")

    # --- what stands in the fields ---

    def _add_volume(self, text: str) -> None:
        number = len(self._volumes)
        label = Lines(classes="label")
        line = self._input(_VOLUMES, f"field-volume-{number}")
        line.settle(text)
        self._volumes.append(line)
        self.query_one("#volumes").mount(Horizontal(label, line, classes="row"))
        label.show([(Cell(" Volumes" if number == 0 else "", "dim"),)])

    def typed(self) -> dict[str, str]:
        """Everything that stands in the fields, by key; volumes in lines."""
        found = {
            field.key: self.query_one(f"#field-{field.key}", Input).value
            for field in launchform.FIELDS
            if field.key != "volumes"
        }
        found["volumes"] = "\n".join(line.value.strip() for line in self._volumes if line.value.strip())
        return {key: value for key, value in found.items() if value.strip()}

    def fill(self, values: Mapping[str, str]) -> None:
        """Write ``values``; fields that are not in it become empty."""
        for field in launchform.FIELDS:
            if field.key != "volumes":
                self.query_one(f"#field-{field.key}", CompletingInput).settle(values.get(field.key, ""))
        volumes = [line for line in values.get("volumes", "").splitlines() if line.strip()][: launchform.MOST_VOLUMES]
        lines = list(self._volumes)
        for line, text in zip(lines, [*volumes, *[""] * len(lines)], strict=False):
            line.settle(text)
        for text in [*volumes, ""][len(lines) :]:
            self._add_volume(text)

    def set(self, key: str, value: str) -> None:
        """Write one field."""
        self.query_one(f"#field-{key}", CompletingInput).settle(value)

    def value(self, key: str) -> str:
        """What stands in one field."""
        return self.query_one(f"#field-{key}", Input).value

    def go_to(self, key: str) -> None:
        """Put the focus on a field."""
        (self._volumes[0] if key == "volumes" else self.query_one(f"#field-{key}", Input)).focus()

    # --- what is wrong, what is chosen ---

    def show_problems(self, problems: Iterable[FieldProblem]) -> tuple[str, ...]:
        """Say under each row what is wrong in it; returns what is too long to be said there in full."""
        problems, cut = tuple(problems), []
        sign = self.app.glyphs.critical
        for group in (*launchform.ROWS, *launchform.MORE):
            lines: list[tuple[Cell, ...]] = []
            for text in launchform.problems_of(group, problems):
                rows = launchtext.wrapped(f"{sign} {text}", self.size.width - 12, "critical")
                if len(rows) > _PROBLEM_ROWS:
                    cut.append(text)
                    last = rows[_PROBLEM_ROWS - 1][0].text.rstrip(".,; ")
                    rows = [*rows[: _PROBLEM_ROWS - 1], (Cell(f"{last} {self.app.glyphs.ellipsis}", "critical"),)]
                lines += rows
            self.query_one(f"#problem-{group[0].key}", Lines).show(lines)
        return tuple(cut)

    def show_gpus(self, *, rows_at_most: int) -> None:
        """The GPUs, with those ticked that the wish would get now."""
        picker = self.query_one(GpuPicker)
        picker.rows_at_most = rows_at_most
        view = self.app.host_view
        claims = launchgpus.claims(view, self.app.containers)
        rows = launchgpus.gpu_rows(view, self.value("gpus"), self.app.glyphs, claims)
        picker.show_gpus(rows, instead=launchgpus.no_gpus(view))

    def show_facts(self, words: str) -> None:
        """What is known of the image."""
        self.query_one("#facts", Lines).show([(Cell(f" {words}" if words else "", "dim"),)])

    @on(GpuPicker.Asked)
    def _take_wish(self, event: GpuPicker.Asked) -> None:
        self.set("gpus", event.wish)

    # --- completion ---

    @on(Input.Changed)
    def _hear(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Edited())
        line = event.input
        if not isinstance(line, CompletingInput):
            return
        lines = self._volumes
        if lines and line is lines[-1] and line.value and len(lines) < launchform.MOST_VOLUMES:
            self._add_volume("")
        if line.completes and line.has_focus and line.value != line.settled:
            self._complete(line, everything=False)
        elif line.has_focus:
            self.screen.query_one(Choices).shut()

    @on(Input.Submitted)
    def _go_on(self, event: Input.Submitted) -> None:
        event.stop()
        self.screen.focus_next()

    @on(CompletingInput.Wanted)
    def _open(self, event: CompletingInput.Wanted) -> None:
        self._complete(event.field, everything=event.everything)

    def _complete(self, line: CompletingInput, *, everything: bool) -> None:
        key, text = line.name or "", line.value
        if key in launchform.PATHS:
            self._complete_path(line, text, asked=everything)
            return
        if key == "image":
            wanted = "" if everything else text
            app = self.app
            found = list(
                launchtext.image_choices(app.images or (), wanted, now=app.now(), shelf=app.shelf, glyphs=app.glyphs)
            )
        else:
            field = next(each for each in launchform.FIELDS if each.key == key)
            found = [(choice, "") for choice in field.choices if everything or choice.startswith(text)]
        self._offer(line, found, asked=everything)

    def _offer(self, line: CompletingInput, found: list[Choice], *, asked: bool) -> None:
        if not line.has_focus:
            return
        if len(found) == 1 and found[0][0] == line.value:
            found = []  # it is that already
        if asked and not found:
            self.screen.focus_next()
        self.screen.query_one(Choices).offer(found, line)

    def _complete_path(self, line: CompletingInput, text: str, *, asked: bool) -> None:
        """A folder is read on a thread of its own: one on a dead network drive never answers."""
        from gpuconsole.launch.fields import Surroundings
        from gpuconsole.services.folders import complete_path

        before, _, start = text.rpartition(" ") if line.name == "env_files" else ("", "", text)
        if ":" in start:
            self._offer(line, [], asked=asked)
            return

        def look() -> None:
            try:
                paths = complete_path(start, Surroundings.current())
            except OSError:
                paths = ()
            whole = tuple(f"{before} {shlex.quote(path)}" if before else path for path in paths)
            self.post_message(self.Found(line, text, whole, asked=asked))

        threading.Thread(target=look, name="path-completion", daemon=True).start()

    @on(Found)
    def _offer_paths(self, found: Found) -> None:
        if found.field.value == found.text:
            self._offer(found.field, [(path, "") for path in found.paths], asked=found.asked)
