"""The style sheets: those of screens that are opened later are read with them, so that the start does not wait."""

from __future__ import annotations

from pathlib import PurePath

from gpuconsole.core.paths import styles_dir

_AT_START = ("app", "main")
"""The frame, and the first screen. Every other sheet is named by its screens as their ``CSS_PATH``."""


def at_start() -> list[str | PurePath]:
    """The sheets that the app itself reads."""
    return [path for name in _AT_START for path in of(name)]


def of(*names: str) -> list[str | PurePath]:
    """The sheets of a screen, for its ``CSS_PATH``; a screen made from another names that one's too."""
    return [str(styles_dir() / f"{name}.tcss") for name in names]
