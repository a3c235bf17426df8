"""The launch form's keys that mend what is said beside a field, lift a refusal, and take either back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from gpuconsole.core.text import plain_line, shorten
from gpuconsole.launch.changes import Change
from gpuconsole.tui import actions
from gpuconsole.tui.present import launchfindings
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.present.launchform import MORE_KEYS, Shape
from gpuconsole.tui.present.launchmending import field_writing, text_after
from gpuconsole.tui.screens.asker import Asker
from gpuconsole.tui.screens.launchfields import LaunchFields

if TYPE_CHECKING:
    from gpuconsole.services.launchruns import LaunchRun
    from gpuconsole.tui.present.launchfindings import Remark
    from gpuconsole.tui.present.launchform import Field

_LONGEST_TEXT = 40
"""Characters of a field's text in the sentence that says what was changed."""


@dataclass(frozen=True, slots=True)
class Made:
    """A change that was made in a field."""

    field: Field
    before: str
    after: str


class Mending(Asker):
    """A screen with the form's fields and remarks beside them."""

    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings(actions.MENDING)]

    def __init__(self) -> None:
        super().__init__()
        self._run: LaunchRun | None = None
        self._remarks: tuple[Remark, ...] = ()
        """What is said beside the fields now, most important first."""
        self._mended: set[Remark] = set()
        """What was mended since they were found."""
        self._made: list[Made] = []
        self._told: list[tuple[Cell, ...]] = []
        """What a key changed just now."""
        self._told_of: dict[str, str] = {}
        """What stood in the fields then: the sentence goes once something else does."""

    @property
    def fields(self) -> LaunchFields:
        """The fields."""
        return self.query_one(LaunchFields)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A key is there while there is something for it to do."""
        if action == "mend":
            return self._run is None and launchfindings.to_mend(self._remarks, None) is not None
        if action == "force":
            return self._run is None and launchfindings.to_force(self._remarks, None) is not None
        if action == "undo":
            return self._run is None and bool(self._made)
        return super().check_action(action, parameters)

    def action_mend(self) -> None:
        """Change what is said to be wrong at the field in focus, else the first that a key can mend."""
        remark = launchfindings.to_mend(self._remarks, self._field_in_focus())
        if remark is not None and remark.change is not None:
            self._make(remark, remark.change)

    def action_force(self) -> None:
        """Lift the refusal at the field in focus, else the first that can be lifted."""
        remark = launchfindings.to_force(self._remarks, self._field_in_focus())
        if remark is not None:
            self._make(remark, Change("force", remark.slug, add=True))

    def action_undo(self) -> None:
        """Take the last change back; what was written since stays."""
        if not self._made:
            return
        made = self._made.pop()
        label, now = made.field.label, self._text(made.field)
        if now != made.after:
            self._tell(f"{label} was changed since; it stays as it is.")
        else:
            self.fields.set(made.field.key, made.before)
            again = f"{_shown(made.before)} again" if made.field.shape is Shape.ONE else "as it was"
            self._tell(f"Taken back: {label} is {again}.")
        self.refresh_bindings()

    def _make(self, remark: Remark, change: Change) -> None:
        field = field_writing(change.option)
        before = self._text(field) if field is not None else ""
        after = text_after(field, before, change) if field is not None else ""
        if field is None or after == before:
            self._tell("Nothing was changed: what this was about does not stand in the field any more.")
            return
        forces = change.option == "force"
        if field.key in MORE_KEYS and not forces:
            self.add_class("-more")  # what a key changes is seen
        self.fields.set(field.key, after)
        self._made.append(Made(field, before, after))
        self._mended.add(remark)  # until it is weighed anew the next key is for what is left
        what = f"Forced: {remark.slug}" if forces else f"{field.label}: {_difference(field, change, before, after)}"
        self._tell(f"{what}. {self.app.keys.name('launch.undo')} takes it back.")
        self.refresh_bindings()

    def _tell(self, sentence: str) -> None:
        width = max(20, self.size.width - 2)
        self._told = [(Cell(f" {shorten(plain_line(sentence), width)}", "accent"),)]
        self._told_of = self.fields.typed()
        self._show_weight()

    def _forget_told(self) -> None:
        """Somebody wrote on."""
        if self._told and self.fields.typed() != self._told_of:
            self._told = []

    def _show_weight(self) -> None:
        """Show what stands in the fields and what it amounts to."""
        raise NotImplementedError

    def _text(self, field: Field) -> str:
        return self.fields.typed().get(field.key, "")

    def _field_in_focus(self) -> str | None:
        """The key of the field in focus; None while none has it."""
        name = self.focused.name if self.focused is not None else None
        return name if name is not None else "gpus" if self._picks_gpus() else None

    def _picks_gpus(self) -> bool:
        return self.focused is not None and self.focused.id == "picker"


def _difference(field: Field, change: Change, before: str, after: str) -> str:
    """What became of what; of a list only the item, since others may be secrets."""
    if field.shape is Shape.ONE:
        return f"{_shown(before)} → {_shown(after)}"
    if change.instead:
        was = _shown(change.instead)
        return f"{was} → {_shown(change.value)}" if change.value else f"without {was}"
    return f"+ {_shown(change.value)}" if change.value else "→ empty"


def _shown(text: str) -> str:
    """What stood in a field, for a sentence."""
    return shorten(" ".join(text.splitlines()), _LONGEST_TEXT) or "empty"
