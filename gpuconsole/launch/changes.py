"""What mends one thing of a launch: an option that becomes another, applied to options and to nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpuconsole.launch.options import LaunchOptions


@dataclass(frozen=True, slots=True)
class Change:
    """What mends a finding at one key: a field of ``LaunchOptions``, and its new value."""

    option: str
    value: str | None
    """None leaves it out."""
    add: bool = False
    """It comes beside what the field holds, which is a list."""
    instead: str = ""
    """The item of the list, as it was written, in whose place it comes; that item alone goes when the value is None."""


def changed(options: LaunchOptions, change: Change) -> LaunchOptions:
    """``options`` with that one field changed."""
    held = getattr(options, change.option)
    new: Any = change.value
    if isinstance(held, tuple):
        new = changed_items(held, change)
    elif isinstance(held, bool):
        new = change.value is not None
    return replace(options, **{change.option: new})


def changed_items(items: Iterable[str], change: Change) -> tuple[str, ...]:
    """The items of a list with the change made; an item that is not there any more is in nobody's place."""
    items = tuple(items)
    value = () if change.value is None else (change.value,)
    if change.instead:
        return tuple(new for item in items for new in (value if item == change.instead else (item,)))
    if change.add:
        return items if set(value) <= set(items) else (*items, *value)
    return value
