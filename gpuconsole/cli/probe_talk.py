"""What ``check`` and ``bench`` both say while they run: the launch before, for whom they wait, where they are."""

from __future__ import annotations

import sys
from typing import ClassVar

import click

from gpuconsole.cli.launch_talk import LaunchTalk
from gpuconsole.cli.output import talk, terminal_width
from gpuconsole.core.text import shorten
from gpuconsole.probes.records import Record, Waiting
from gpuconsole.services.launching import LaunchStep


class ProbeTalk:
    """Tells on stderr how it goes on; in a terminal on one line that is written again and again."""

    WHAT: ClassVar[str]
    """What is going on, as ``the check``."""

    def __init__(self) -> None:
        self._launch = LaunchTalk(as_json=False)
        self._live = sys.stderr.isatty()
        self._shown = False

    def step(self, step: LaunchStep) -> None:
        """Tell of a step of the launch before."""
        self._launch.step(step)

    def record(self, record: Record) -> None:
        """Tell for whom it waits, and where it is."""
        if isinstance(record, Waiting):
            talk(f"{record.text[:1].upper()}{record.text[1:]}.")
        elif (text := self._where(record)) and self._live:
            click.echo(f"\r\x1b[K{shorten(text, terminal_width(80) - 1)}", nl=False, err=True)
            self._shown = True

    def _where(self, record: Record) -> str:
        """Where it is after ``record``, in a line; empty where nothing is to be said of it."""
        raise NotImplementedError

    def finish(self) -> None:
        """Take the line of progress away."""
        if self._shown:
            click.echo("\r\x1b[K", nl=False, err=True)
            self._shown = False

    def interrupted(self) -> None:
        """Tell that a signal was seen."""
        self.finish()
        talk(f"Interrupted: ending {self.WHAT} where it runs. Again to leave at once.")
