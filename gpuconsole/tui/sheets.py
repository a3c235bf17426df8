"""The style sheets: those of screens that are opened later are read with them, so that the start does not wait."""

from __future__ import annotations

from pathlib import PurePath

from gpuconsole.core.paths import styles_dir

_LATER = frozenset(("bench", "images"))
"""Each of these is named by its screens as their ``CSS_PATH``."""


def at_start() -> list[str | PurePath]:
    """The sheets that the app itself reads."""
    return [str(path) for path in sorted(styles_dir().glob("*.tcss")) if path.stem not in _LATER]


def of(name: str) -> str:
    """The sheet of some screens, for their ``CSS_PATH``."""
    return str(styles_dir() / f"{name}.tcss")
