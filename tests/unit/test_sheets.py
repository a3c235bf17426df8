"""Style sheets that are read with their screens: each screen names the sheets that speak of it."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import PurePath
from typing import Any

import pytest
from textual.screen import Screen

from gpuconsole.core.paths import styles_dir
from gpuconsole.tui import screens, sheets

_AT_START = {PurePath(path).stem for path in sheets.at_start()}
_LATER = sorted({path.stem for path in styles_dir().glob("*.tcss")} - _AT_START)


def _screens() -> dict[str, type[Screen[Any]]]:
    for module in pkgutil.iter_modules(screens.__path__):
        importlib.import_module(f"{screens.__name__}.{module.name}")
    found: dict[str, type[Screen[Any]]] = {}
    below: list[type[Screen[Any]]] = [Screen]
    while below:
        each = below.pop()
        below += each.__subclasses__()
        if each.__module__.startswith("gpuconsole."):
            found[each.__name__] = each
    return found


def _named(each: type[Screen[Any]]) -> set[str]:
    paths = each.CSS_PATH or ()
    return {PurePath(path).stem for path in ([paths] if isinstance(paths, str | PurePath) else paths)}


@pytest.mark.parametrize("sheet", _LATER)
def test_the_screens_that_a_sheet_speaks_of_read_it_and_so_do_those_made_from_them(sheet: str) -> None:
    known = _screens()
    text = (styles_dir() / f"{sheet}.tcss").read_text()
    spoken_of = [known[name] for name in set(re.findall(r"\b[A-Z]\w+\b", text)) if name in known]
    assert spoken_of, "it speaks of no screen"
    for each in spoken_of:
        for made in (other for other in known.values() if issubclass(other, each)):
            assert sheet in _named(made), f"{made.__name__} does not read {sheet}.tcss"


def test_what_is_read_at_the_start_speaks_of_no_other_screen_than_the_first() -> None:
    text = "\n".join((styles_dir() / f"{name}.tcss").read_text() for name in sorted(_AT_START))
    assert set(re.findall(r"\b\w+Screen\b", text)) == {"MainScreen"}
