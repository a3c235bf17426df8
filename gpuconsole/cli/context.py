"""What every command is given: the options before its name, and the session they lead to."""

from __future__ import annotations

import click

from gpuconsole.cli.settings import HOST_VARIABLE, Settings, debug_by_environment

__all__ = ["HOST_VARIABLE", "Settings", "debug_by_environment", "pass_settings"]

pass_settings = click.make_pass_decorator(Settings, ensure=True)
"""Gives a command its :class:`Settings` as first argument."""
