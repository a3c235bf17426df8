"""Folders of ours, where the platform wants them."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

_NAME = "gpuconsole"
STORE = "gpuconsole.db"
"""The file of our records, in the state folder."""


def state_dir() -> Path:
    """Folder of what we remember between runs (``$XDG_STATE_HOME/gpuconsole``); not created here."""
    from pathlib import Path

    return Path(state_folder())


def state_folder() -> str:
    """The same as text: making a path of it takes longer to import than ``status --tmux`` has."""
    return _folder("XDG_STATE_HOME", "~/.local/state")


def config_dir() -> Path:
    """Folder of what the user writes for us (``$XDG_CONFIG_HOME/gpuconsole``); not created here."""
    from pathlib import Path

    return Path(_folder("XDG_CONFIG_HOME", "~/.config"))


def _folder(variable: str, usual: str) -> str:
    """Ours, in the base folder that a variable names, or in the usual one: XDG has relative paths ignored."""
    base = os.environ.get(variable, "")
    if not os.path.isabs(base):
        base = os.path.expanduser(usual)  # a Path would raise where there is no home
    return os.path.join(base, _NAME)


def styles_dir() -> Path:
    """Folder of the style sheets: beside the modules in a wheel, at the top level in a checkout.

    Raises:
        FileNotFoundError: Neither is there, so the installation is damaged.
    """
    from pathlib import Path

    package = Path(__file__).resolve().parent.parent
    for folder in (package / "styles", package.parent / "styles"):
        if (folder / "app.tcss").is_file():
            return folder
    raise FileNotFoundError("the style sheets are missing; install gpuconsole again")
