"""Options that take a number of seconds."""

from __future__ import annotations

import math

import click


class Seconds(click.ParamType[float]):
    """A number of seconds in a range; what Python also takes for a number, such as ``nan`` and ``inf``, is none.

    Args:
        least: The smallest that is taken.
        most: The largest.
    """

    name = "seconds"

    def __init__(self, least: float, most: float) -> None:
        self._least = least
        self._most = most

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, or a usage error that names the range."""
        try:
            seconds = float(str(value))
        except ValueError:
            seconds = math.nan
        if not math.isfinite(seconds):
            self.fail(f"{value!r} is no number of seconds.", param, ctx)
        if not self._least <= seconds <= self._most:
            self.fail(f"{value} is not between {self._least:g} and {self._most:g} seconds.", param, ctx)
        return seconds
