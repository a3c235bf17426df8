"""Which keys do what: the usual ones, or what the user's configuration says instead; how keys are written and named."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from textual.keys import _character_to_key

from gpuconsole.tui import actions
from gpuconsole.tui.present.helping import key_name

_ALIASES = {
    "esc": "escape", "return": "enter", "pgup": "pageup", "pgdn": "pagedown", "pgdown": "pagedown", "del": "delete",
    "ins": "insert", "spacebar": "space", "bs": "backspace",
}  # fmt: skip
_MODIFIERS = {"^": "ctrl+", "c-": "ctrl+", "control+": "ctrl+", "ctrl-": "ctrl+", "s-": "shift+", "m-": "alt+"}
_PLACE = re.compile(r"\{([a-z]+\.[a-z]+)\}")
_USUAL = {action.id: tuple(action.key.split(",")) for action in actions.ALL}


def canonical(written: str) -> str:
    """A key as Textual names it, of what a person writes: ``?``, ``^x``, ``Ctrl+X``, ``esc``, ``F5``."""
    text = written if len(written) == 1 else written.strip()
    if len(text) == 1:
        return _character_to_key(text)
    lower = text.lower()
    for short, long in _MODIFIERS.items():
        if lower.startswith(short) and len(lower) > len(short):
            lower = long + lower[len(short) :]
            break
    modifier, plus, base = lower.rpartition("+")
    if plus and not base:  # ctrl++
        modifier, base = lower[:-2], "+"
    base = _ALIASES.get(base, base)
    base = _character_to_key(base) if len(base) == 1 else base
    return f"{modifier}+{base}" if modifier else base


@dataclass(frozen=True, slots=True)
class Keymap:
    """Every action's keys.

    Args:
        changed: Action id → keys, canonical, for the actions that the user gave other keys.
    """

    changed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def written(cls, keys: Mapping[str, tuple[str, ...]]) -> Keymap:
        """Of keys as a person writes them."""
        return cls({name: tuple(canonical(each) for each in written) for name, written in keys.items()})

    def textual(self) -> dict[str, str]:
        """As Textual takes it: with the usual keys of actions that share one with an action that was given others.

        Textual takes a key away from all actions of a screen when one of them gets another key.
        """
        told = dict(self.changed)
        freed = {key for name in self.changed for key in _USUAL.get(name, ())}
        while sharing := {name: keys for name, keys in _USUAL.items() if name not in told and freed & {*keys}}:
            told |= sharing
            freed |= {key for keys in sharing.values() for key in keys}
        return {name: ",".join(keys) for name, keys in told.items()}

    def of(self, action_id: str) -> tuple[str, ...]:
        """The keys that do it, as Textual names them."""
        return self.changed.get(action_id) or _USUAL[action_id]

    def name(self, action_id: str) -> str:
        """The key that does it, as it stands on the keyboard."""
        return key_name(self.of(action_id)[0])

    def fill(self, text: str) -> str:
        """``text`` with each ``{action.id}`` replaced by its key. Only for sentences of ours."""
        return _PLACE.sub(lambda match: self.name(match[1]), text)


USUAL = Keymap()
"""Nobody changed anything."""
