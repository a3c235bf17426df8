"""The fields of the launch form: filled in, read as text, and what is wrong shown under each row."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import Input

from gpuconsole.tui.present import launchfindings, launchform, launchgpus
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.present.launchform import Shape
from gpuconsole.tui.screens.launchcompleting import Completing
from gpuconsole.tui.widgets.completer import CompletingInput
from gpuconsole.tui.widgets.gpupicker import GpuPicker
from gpuconsole.tui.widgets.lines import Lines
from gpuconsole.tui.widgets.tick import Snug

if TYPE_CHECKING:
    from gpuconsole.tui.present.launchfindings import Remark, Rest
    from gpuconsole.tui.present.launchform import Field, Group

_VOLUMES = launchform.field_named("volumes")
_OF_KINDS = tuple(field for field in launchform.FIELDS if field.kinds)
_LITTLE_ROOM = 4
"""Lines under all rows together on a small screen, where the fields must stay in sight."""
_HIGH = 30
"""Lines of a screen from which on there is more."""


class LaunchFields(Completing, can_focus=False, inherit_bindings=False):
    """Rows of fields; they scroll as the focus goes."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._volumes: list[CompletingInput] = []
        self._put_away: dict[str, str] = {}
        """What stood in a field of a kind of work that was left, till that kind is chosen again."""

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
            parts += [Horizontal(label, line, id=f"only-{field.key}", classes="only")] if field.kinds else [label, line]
        if group[0].key == "image":
            parts.append(Snug(id="facts"))
        if group[0].key == "kind":
            parts.append(Lines(id="kind-words"))
        return Horizontal(*parts, classes=f"row {classes}".strip())

    def _input(self, field: Field, id: str) -> CompletingInput:
        completes = bool(field.choices) or field.key in ("image", "profile") or field.key in launchform.PATHS
        return CompletingInput(id=id, placeholder=field.hint, completes=completes, name=field.key, shape=field.shape)

    def on_mount(self) -> None:
        """Write the labels."""
        for field in launchform.FIELDS:
            if field.key != "volumes":
                self.query_one(f"#label-{field.key}", Lines).show([(Cell(f" {field.label}", "dim"),)])
        self._add_volume("")
        self._fit_kind()

    # --- what stands in the fields ---

    def _add_volume(self, text: str) -> None:
        number = len(self._volumes)
        label = Lines(classes="label")
        line = self._input(_VOLUMES, f"field-volume-{number}")
        line.settle(text)
        self._volumes.append(line)
        self.query_one("#volumes").mount(Horizontal(label, line, classes="row"))
        label.show([(Cell(" Volumes" if number == 0 else "", "dim"),)])

    @on(CompletingInput.PastedMore)
    def _take_more(self, event: CompletingInput.PastedMore) -> None:
        """Several volumes were pasted: each gets a line, before those that stood below."""
        event.stop()
        texts, place = [line.value for line in self._volumes], self._volumes.index(event.field) + 1
        room = max(0, launchform.MOST_VOLUMES - sum(1 for text in texts if text.strip()))
        more, rest = event.lines[:room], event.lines[room:]
        self._set_volumes([text for text in (*texts[:place], *more, *texts[place:]) if text.strip()])
        if rest:
            words = f"{len(rest)} of the pasted lines were left out: there are {launchform.MOST_VOLUMES} for volumes."
            self.app.notify(words, severity="warning", markup=False)

    def typed(self) -> dict[str, str]:
        """Everything that stands in the fields, by key; volumes in lines."""
        found = {field.key: self.value(field.key) for field in launchform.FIELDS}
        return {key: value for key, value in found.items() if value.strip()}

    def fill(self, values: Mapping[str, str]) -> None:
        """Write ``values``; fields that are not in it become empty."""
        self._put_away = {}
        for field in launchform.FIELDS:
            self.set(field.key, values.get(field.key, ""))

    def set(self, key: str, value: str) -> None:
        """Write one field; of one that takes several values they may stand in lines."""
        if key == "volumes":
            self._set_volumes([line for line in value.splitlines() if line.strip()])
            return
        if "\n" in value and launchform.field_named(key).shape is Shape.WORDS:
            value = shlex.join(line for line in value.splitlines() if line.strip())
        self.query_one(f"#field-{key}", CompletingInput).settle(value)

    def _set_volumes(self, volumes: list[str]) -> None:
        lines = list(self._volumes)
        for line, text in zip(lines, [*volumes, *[""] * len(lines)], strict=False):
            line.settle(text)
        for text in [*volumes, ""][len(lines) :]:
            self._add_volume(text)

    def value(self, key: str) -> str:
        """What stands in one field; volumes in lines."""
        if key == "volumes":
            return "\n".join(line.value.strip() for line in self._volumes if line.value.strip())
        return self.query_one(f"#field-{key}", Input).value

    def go_to(self, key: str) -> None:
        """Put the focus on a field."""
        (self._volumes[0] if key == "volumes" else self.query_one(f"#field-{key}", Input)).focus()

    # --- what is wrong, what is chosen ---

    def show_remarks(self, remarks: Sequence[Remark], *, more: bool, here: str | None = None) -> tuple[Rest, ...]:
        """Say under each row what is wrong in it and likely to fail; returns what is to be told elsewhere in full.

        Args:
            remarks: Most important first.
            more: The rows that are rarely needed are open.
            here: The field in focus.
        """
        rows = (*launchform.ROWS, *launchform.MORE)
        height = self.screen.size.height
        room, each = (_LITTLE_ROOM, 2) if height < _HIGH else (height - _HIGH + 2 * _LITTLE_ROOM, 3)
        keys, width = self.app.keys, self.size.width - 12
        said = launchfindings.arranged(
            remarks, rows, glyphs=self.app.glyphs, keys=keys, width=width, room=room, each=each, more=more, here=here
        )
        before = [len(self.query_one(f"#problem-{group[0].key}", Lines).lines) for group in rows]
        for group in rows:
            self.query_one(f"#problem-{group[0].key}", Lines).show(said.beside.get(group[0].key, []))
        if before != [len(said.beside.get(group[0].key, ())) for group in rows]:
            self.call_after_refresh(self._keep_in_sight)
        self.lifts = tuple(dict.fromkeys(remark.slug for remark in remarks if remark.forceable))
        return said.below

    def _keep_in_sight(self) -> None:
        """Lines that came or went move the rows: the one that is written in stays seen, with what is said of it."""
        focused = self.screen.focused if self.is_attached else None
        if focused is None or self not in focused.ancestors:
            return
        group = next(
            (group for group in (*launchform.ROWS, *launchform.MORE) for each in group if each.key == focused.name),
            None,
        )
        if group is not None:
            self.scroll_to_widget(self.query_one(f"#problem-{group[0].key}"), animate=False)
        self.scroll_to_widget(focused, animate=False)

    def show_gpus(self, *, rows_at_most: int) -> None:
        """The GPUs, with those ticked that the wish would get now."""
        picker = self.query_one(GpuPicker)
        picker.rows_at_most = rows_at_most
        view = self.app.host_view
        claims = launchgpus.claims(view, self.app.containers)
        wish = self.value("gpus").strip() or ("none" if self.value("kind").strip() == "tensorboard" else "")
        rows = launchgpus.gpu_rows(view, wish, self.app.glyphs, claims)
        picker.show_gpus(rows, instead=launchgpus.no_gpus(view))

    def show_facts(self, words: str) -> None:
        """What is known of the image."""
        self.query_one("#facts", Lines).show([(Cell(f" {words}" if words else "", "dim"),)])

    @on(GpuPicker.Asked)
    def _take_wish(self, event: GpuPicker.Asked) -> None:
        self.set("gpus", event.wish)

    # --- what depends on what else is written ---

    def changed(self, line: CompletingInput) -> None:
        """Open a line for one more volume; show what belongs to the kind of work."""
        lines = self._volumes
        if lines and line is lines[-1] and line.value and len(lines) < launchform.MOST_VOLUMES:
            self._add_volume("")
        if line.name == "kind" and line.has_focus:
            self._take_kind(line.value.strip())
        if line.name == "kind" or any(line.name == field.key for field in _OF_KINDS):
            self._fit_kind()

    def _take_kind(self, kind: str) -> None:
        """The person chose a kind: what belongs to another one is put away, and comes back with that."""
        if kind and kind not in launchform.field_named("kind").choices:
            return  # it is still being written
        for field in _OF_KINDS:
            text = self.value(field.key).strip()
            if text and kind not in field.kinds:
                self._put_away[field.key] = text
                self.set(field.key, "")
            elif not text and kind in field.kinds and field.key in self._put_away:
                self.set(field.key, self._put_away.pop(field.key))
        needs_none, gpus = kind == "tensorboard", self.value("gpus").strip()
        if needs_none and gpus == "auto":
            self._put_away["gpus"] = gpus
            self.set("gpus", "none")
        elif not needs_none and gpus == "none" and "gpus" in self._put_away:
            self.set("gpus", self._put_away.pop("gpus"))

    def _fit_kind(self) -> None:
        kind = self.value("kind").strip()
        shown = [field for field in _OF_KINDS if kind in field.kinds or self.value(field.key).strip()]
        for field in _OF_KINDS:
            self.query_one(f"#only-{field.key}").set_class(field not in shown, "-off")
        words = self.query_one("#kind-words", Lines)
        words.set_class(bool(shown), "-off")
        words.show([(Cell(f" {launchform.kind_words(kind)}", "dim"),)])
        self.query_one("#field-command", Input).placeholder = launchform.command_hint(kind)
