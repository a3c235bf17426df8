"""The ways in that are taken most have no options to parse, and start without click, which would take a third of it.

They are the console without arguments, and ``status`` as prompts, bars and scripts call it again and again. Every other
command line, their help and their mistakes too, is click's.
"""

from __future__ import annotations

import os

from gpuconsole.cli.settings import HOST_VARIABLE, Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_COMPLETING = "_GPUCONSOLE_COMPLETE"
"""Set by the shell while it completes: the program is then asked for words, with or without arguments."""
_STATUS = {
    ("status",): {},
    ("status", "--json"): {"as_json": True},
    ("status", "--tmux"): {"tmux": True},
}


def needs_parser(argv: Sequence[str]) -> bool:
    """Whether such a command line is click's."""
    return (bool(argv) and tuple(argv) not in _STATUS) or _COMPLETING in os.environ


def is_single_look(argv: Sequence[str]) -> bool:
    """Whether such a command line looks once, writes, and is over."""
    return tuple(argv) in _STATUS and _COMPLETING not in os.environ


def run_quick(argv: Sequence[str]) -> int | None:
    """Run a command line that needs no parser, and return its exit code; None when it does."""
    if needs_parser(argv):
        return None
    options = _STATUS.get(tuple(argv))
    settings = Settings(host=os.environ.get(HOST_VARIABLE) or None)
    try:
        if options is None:
            from gpuconsole.tui.start import open_console

            return open_console(settings.session(), readonly=False)
        from gpuconsole.cli.status_show import show_status

        return show_status(settings, **options)
    finally:
        settings.close()
