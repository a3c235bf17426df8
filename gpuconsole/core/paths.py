"""Folders of ours, where the platform wants them."""

from __future__ import annotations

from pathlib import Path

import platformdirs

_NAME = "gpuconsole"


def state_dir() -> Path:
    """Folder of what we remember between runs (``$XDG_STATE_HOME/gpuconsole``); not created here."""
    return Path(platformdirs.user_state_path(_NAME, appauthor=False))


def config_dir() -> Path:
    """Folder of what the user writes for us (``$XDG_CONFIG_HOME/gpuconsole``); not created here."""
    return Path(platformdirs.user_config_path(_NAME, appauthor=False))


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
