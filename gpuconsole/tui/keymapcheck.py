"""Whether the keys and the theme of a configuration can be: actions and keys that exist, no key twice on a screen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain

from textual.binding import Binding
from textual.dom import DOMNode
from textual.keys import KEY_NAME_REPLACEMENTS, Keys, _character_to_key

from gpuconsole.core.config import Config, Mistake, nearest
from gpuconsole.core.text import plain_line
from gpuconsole.tui import actions, theme
from gpuconsole.tui.keymap import Keymap
from gpuconsole.tui.present.helping import key_name

_SAME = {
    "ctrl+i": "tab",
    "ctrl+m": "enter",
    "ctrl+j": "enter",
    "ctrl+h": "backspace",
    "ctrl+left_square_bracket": "esc",
}
"""Keys that a terminal sends as another one."""
_PRINTABLE = frozenset(_character_to_key(chr(code)) for code in range(0x20, 0x7F))
_NAMES = frozenset(
    {key.value for key in Keys if "<" not in key.value}
    | set(_PRINTABLE)
    | set(KEY_NAME_REPLACEMENTS.values())
    | {f"{modifier}+{key}" for modifier in ("ctrl", "alt", "shift", "ctrl+shift") for key in _PRINTABLE}
)


def check(config: Config) -> list[Mistake]:
    """What in ``config`` names something that is not there, or takes a key that is taken."""
    mistakes = []
    if config.theme is not None and config.theme not in theme.names():
        mistakes.append(Mistake("theme", f"there is no {_quoted(config.theme)}{nearest(config.theme, theme.names())}"))
    known = _ids() if config.keys else ()
    good: dict[str, tuple[str, ...]] = {}
    for name, written in config.keys.items():
        told = [words for key in written if (words := _wrong_key(key, name))]
        if name not in known:
            told = [f"there is no such action{nearest(name, known)}"]
        elif not written:
            told = ["must name a key at least"]
        if told:
            mistakes.append(Mistake(f"keys.{plain_line(name, limit=60)}", "; ".join(told)))
        else:
            good[name] = written
    return [*mistakes, *_taken(Keymap.written(good))] if good else mistakes


def _quoted(text: str) -> str:
    return f"'{plain_line(text, limit=40)}'"


def _wrong_key(written: str, action_id: str) -> str:
    """Why a key cannot be taken; empty when it can."""
    key = Keymap.written({"": (written,)}).changed[""][0]
    if key in actions.FORBIDDEN_KEYS:
        whose = "tmux's" if key == "ctrl+b" else "screen's, and many people's tmux's"
        return f"{key} is {whose} prefix key, and would never reach the console"
    if key in _SAME:
        return f"a terminal sends {_SAME[key]} for {key}"
    if key not in _NAMES or (not written.strip(" ") and written != " "):
        return f"there is no key {_quoted(written)}{nearest(key, _NAMES)}"
    if action_id.startswith("launch.") and action_id != "launch.new" and key in _PRINTABLE:
        return f"{_quoted(written)} is typed into the form's fields; take one like f5 or ctrl+s"
    return ""


# --- keys that are taken ---


@cache
def _places() -> dict[str, tuple[type[DOMNode], ...]]:
    """Screen → the classes that hear a key on it, with the widget that has the focus first."""
    from gpuconsole.tui.app import ConsoleApp
    from gpuconsole.tui.replaying import ReplayApp
    from gpuconsole.tui.screens import alarms, bench, benchcompare, benchpast, copying, details, gpu, help, launch, logs
    from gpuconsole.tui.screens import main as mainscreen
    from gpuconsole.tui.widgets.gpupicker import GpuPicker
    from gpuconsole.tui.widgets.grid import Grid
    from gpuconsole.tui.widgets.logview import LogView
    from gpuconsole.tui.widgets.strip import GpuStrip

    return {
        "the list": (Grid, mainscreen.MainScreen, ConsoleApp),
        "the GPUs": (GpuStrip, mainscreen.MainScreen, ConsoleApp),
        "a container's screen": (details.ContainerDetails, ConsoleApp),
        "an image's screen": (details.ImageDetails, ConsoleApp),
        "a process's screen": (details.ProcessDetails, ConsoleApp),
        "a run's screen": (details.RunDetails, ConsoleApp),
        "a benchmark's screen": (bench.BenchScreen, ConsoleApp),
        "two benchmarks beside each other": (benchcompare.CompareScreen, ConsoleApp),
        "benchmarks over time": (benchpast.PastScreen, ConsoleApp),
        "a GPU's screen": (Grid, gpu.GpuScreen, ConsoleApp),
        "the output": (LogView, logs.LogScreen, ConsoleApp),
        "the launch form": (launch.LaunchScreen, ConsoleApp),
        "the launch form's GPUs": (GpuPicker, launch.LaunchScreen, ConsoleApp),
        "the list to copy from": (Grid, copying.CopyScreen),
        "the alarms": (Grid, alarms.AlarmsScreen, ConsoleApp),
        "a text to read": (help.HelpScreen, ConsoleApp),
        "a recording's list": (Grid, mainscreen.MainScreen, ReplayApp),
        "a recording's GPU": (Grid, gpu.GpuScreen, ReplayApp),
    }


def _bindings(classes: Iterable[type[DOMNode]]) -> Iterator[Binding]:
    for each in classes:
        for bindings in each._merge_bindings().key_to_bindings.values():
            yield from bindings


@cache
def _ids() -> tuple[str, ...]:
    """Every action that a key can be given to."""
    return tuple(dict.fromkeys(each.id for each in _bindings(chain(*_places().values())) if each.id))


def _what(binding: Binding) -> str:
    return binding.id or binding.action


def _held(classes: Iterable[type[DOMNode]], keymap: Keymap) -> dict[str, dict[str, Binding]]:
    """Key → what it does there."""
    found: dict[str, dict[str, Binding]] = {}
    for binding in _bindings(classes):
        for key in keymap.changed.get(binding.id or "", (binding.key,)):
            found.setdefault(key, {})[_what(binding)] = binding
    return found


def _taken(keymap: Keymap) -> list[Mistake]:
    """Keys that would do two things on one screen."""
    mistakes: dict[str, Mistake] = {}
    for place, classes in _places().items():
        usual = _held(classes, Keymap())
        for key, found in _held(classes, keymap).items():
            mine = [name for name in found if key in keymap.changed.get(name, ())]
            if len(found) < 2 or not mine or found.keys() <= usual.get(key, {}).keys():
                continue
            for name in mine:
                other = next(each for what, each in found.items() if what != name)
                words = f"{key_name(key)} is {other.id or other.description or other.action} on {place} already"
                mistakes.setdefault(name, Mistake(f"keys.{name}", words))
    return list(mistakes.values())
