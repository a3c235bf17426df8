"""A change of one launch option, made in the text of the form's field that writes it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from gpuconsole.launch.changes import changed_items
from gpuconsole.tui.present.launchform import FIELDS, Field, Shape

if TYPE_CHECKING:
    from gpuconsole.launch.changes import Change

_EMPTY = "''"
"""How the form writes a value that is empty, where nothing written means the usual one."""


def field_writing(option: str) -> Field | None:
    """The field that writes an option of a launch; None when the form has none."""
    return next((field for field in FIELDS if field.writes == option and field.key != "profile"), None)


def text_after(field: Field, text: str, change: Change) -> str:
    """What stands in the field once the change is made; ``text`` itself where it cannot be made in it.

    Args:
        field: The one that writes the change's option.
        text: What stands in it.
        change: What becomes of it.
    """
    if field.shape is Shape.LINES:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return "\n".join(changed_items(lines, change))
    if field.shape is Shape.WORDS:
        try:
            words = shlex.split(text)
        except ValueError:  # a quote is not closed, which is told beside it
            return text
        after = changed_items(words, change)
        if after[: len(words)] == tuple(words):  # what a person wrote stays as they wrote it
            return " ".join([*([text.strip()] if words else []), *map(shlex.quote, after[len(words) :])])
        return shlex.join(after)
    if change.value is None:
        return ""
    return change.value or _EMPTY
