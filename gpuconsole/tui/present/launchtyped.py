"""The launch form's texts as launch options, and options as texts: what the fields say, to the letter.

A profile's values can be such that no line of text shows them: a secret, a line break. They stand in the fields as they
may be shown, and mean what the profile says for as long as nobody writes over them.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpuconsole.core.text import plain
from gpuconsole.launch.options import LaunchOptions
from gpuconsole.launch.references import NO_REFERENCES, References
from gpuconsole.launch.spec import FieldProblem, GpuWishKind
from gpuconsole.launch.wish import parse_gpus
from gpuconsole.services.secrets import MASK, mask_arguments, mask_value
from gpuconsole.tui.present.launchform import FIELDS, Field, Shape

_YES = ("yes", "y", "on", "true", "1")
_NO = ("no", "n", "off", "false", "0")
_EMPTY = ("''", '""')
"""How an empty value is written: ``--entrypoint ''`` takes the image's away."""
_PAIRS = ("environment", "labels")
_HIDDEN = "{} hides a value that is not known any more; write it anew"
Typed = Mapping[str, str]
"""Fields of the form by key; volumes stand in lines."""


@dataclass(frozen=True, slots=True)
class Ticks:
    """What is ticked."""

    remove: bool = False
    terminal: bool | None = None
    """None leaves it to the command: a shell gets one."""


@dataclass(frozen=True, slots=True)
class Texts:
    """A profile's options as they stand in the fields."""

    options: LaunchOptions
    typed: Typed
    meant: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    """Of a field the items that are not shown as they are: what stands there, and what it stands for; None when two
    that differ are shown alike."""


def clean(text: str) -> str:
    """``text`` as a line of input takes it: without what a terminal would obey."""
    return " ".join(plain(text).splitlines()).replace("\t", " ")


def texts_of(options: LaunchOptions, hidden: References = NO_REFERENCES) -> Texts:
    """What stands in the fields for ``options``; secrets are not shown, nor those of ``hidden`` that look like none."""
    typed: dict[str, str] = {}
    meant: dict[str, dict[str, str | None]] = {}
    for each in FIELDS:
        if each.key == "profile":
            continue
        value = getattr(options, each.writes)
        if each.shape in (Shape.WORDS, Shape.LINES):
            shown = _shown(each, value, hidden)
            meant[each.key] = _meant(shown, value)
            typed[each.key] = shlex.join(shown) if each.shape is Shape.WORDS else "\n".join(shown)
        elif each.shape is Shape.SWITCH:
            word = "yes" if value else "no"
            typed[each.key] = "" if word == each.usual else word
        elif value is not None and value != each.usual:
            shown_as = hidden.masked(value, MASK)
            typed[each.key] = clean(shown_as) if value or each.key == "image" else _EMPTY[0]
    return Texts(options, {key: text for key, text in typed.items() if text}, meant)


def _shown(each: Field, values: Sequence[str], hidden: References) -> list[str]:
    if each.key == "command":
        values = mask_arguments(values)
    elif each.key in _PAIRS:
        values = [_masked(text) for text in values]
    values = [hidden.masked(text, MASK) for text in values]
    return [clean(value).strip() if each.shape is Shape.LINES else clean(value) for value in values]


def _meant(shown: Sequence[str], values: Sequence[str]) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for one, real in zip(shown, values, strict=True):
        found[one] = real if found.get(one, real) == real else None
    return {one: real for one, real in found.items() if one != real}


def _masked(text: str) -> str:
    name, equals, value = text.partition("=")
    return f"{name}={mask_value(name, value)}" if equals else text


def options_of(
    typed: Typed, ticks: Ticks, *, uuids: Mapping[str, str], filled: Texts | None = None
) -> tuple[LaunchOptions, tuple[FieldProblem, ...]]:
    """What was typed as launch options, and what could not even be read.

    Args:
        typed: What stands in the fields.
        ticks: What is ticked.
        uuids: UUID of each GPU that is shown, by its index: the one that was seen is the one that is meant.
        filled: What the fields were filled with, from a profile.
    """
    problems: list[FieldProblem] = []
    values: dict[str, Any] = {}
    for each in FIELDS:
        if each.key == "profile":
            continue
        text = typed.get(each.key, "")
        if filled is not None and text.strip() == filled.typed.get(each.key, "").strip():
            values[each.writes] = getattr(filled.options, each.writes)
            continue
        try:
            values[each.writes] = _read(each, text, filled.meant.get(each.key, {}) if filled else {})
        except ValueError as error:
            problems.append(FieldProblem(each.options[0], str(error)))
            continue
        if each.key == "gpus":
            values["gpus"] = by_uuid(values["gpus"], uuids)
    return LaunchOptions(**values | {"auto_remove": ticks.remove, "interactive": ticks.terminal}), tuple(problems)


def _read(each: Field, text: str, meant: Mapping[str, str | None]) -> Any:
    """The value a text stands for.

    Raises:
        ValueError: It stands for none.
    """
    if each.shape is Shape.WORDS:
        return tuple(_item(word, meant) for word in _words(text))
    if each.shape is Shape.LINES:
        return tuple(_item(line.strip(), meant) for line in text.splitlines() if line.strip())
    word = text.strip()
    if MASK in word:
        raise ValueError(_HIDDEN.format(word))
    if each.shape is Shape.SWITCH:
        return _switch(word or each.usual)
    if each.key == "image":
        return word
    return "" if word in _EMPTY else word or each.usual or None


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ValueError("a quote is not closed") from error


def _item(text: str, meant: Mapping[str, str | None]) -> str:
    value = meant.get(text, text)
    if value is not None and (text in meant or MASK not in text):
        return value
    if MASK in text:
        raise ValueError(_HIDDEN.format(text))
    raise ValueError(f"{text!r} stands for two values of the profile that differ; write them anew")


def _switch(word: str) -> bool:
    if word.lower() not in (*_YES, *_NO):
        raise ValueError(f"{word!r} is neither yes nor no")
    return word.lower() in _YES


def by_uuid(text: str | None, uuids: Mapping[str, str]) -> str | None:
    """The wish for GPUs with UUIDs in place of indices; what is not known stays as it is."""
    if text is None:
        return None
    try:
        wish = parse_gpus(text)
    except ValueError:
        return text
    if wish.kind is not GpuWishKind.DEVICES:
        return text
    return f"device={','.join(uuids.get(device, device) for device in wish.devices)}"
