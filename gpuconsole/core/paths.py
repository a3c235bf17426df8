"""Folders of ours, where the platform wants them."""

from __future__ import annotations

import os
from pathlib import Path

_NAME = "gpuconsole"


def state_dir() -> Path:
    """Folder of what we remember between runs (``$XDG_STATE_HOME/gpuconsole``); not created here."""
    return _folder("XDG_STATE_HOME", "~/.local/state")


def config_dir() -> Path:
    """Folder of what the user writes for us (``$XDG_CONFIG_HOME/gpuconsole``); not created here."""
    return _folder("XDG_CONFIG_HOME", "~/.config")


def _folder(variable: str, usual: str) -> Path:
    """Ours, in the base folder that a variable names, or in the usual one: XDG has relative paths ignored."""
    base = os.environ.get(variable, "")
    if not os.path.isabs(base):
        base = os.path.expanduser(usual)  # a Path would raise where there is no home
    return Path(base, _NAME)


def styles_dir() -> Path:
    """Folder of the style sheets: beside the modules in a wheel, at the top level in a checkout.

    Raises:
        FileNotFoundError: Neither is there, so the installation is damaged.
    """
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "styles", package.parent / "styles"):
        if (folder / "app.tcss").is_file():
            return folder
    raise FileNotFoundError("the style sheets are missing; install gpuconsole again")
