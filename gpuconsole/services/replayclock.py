"""Where one is in a recording: it goes on by itself, faster or slower, stands still when asked, stops at the end."""

from __future__ import annotations

import time
from collections.abc import Callable

SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Recorded seconds a second that can be chosen."""


class Clock:
    """Where one is. To be read by any thread; changed by one at a time.

    Args:
        length_s: Seconds from the start to the end.
        began_at: Second 0, in seconds since the epoch.
        speed: Recorded seconds a second; 0 stands still.
        ticks: Seconds that never go back.
    """

    def __init__(
        self, length_s: float, began_at: float, *, speed: float = 1.0, ticks: Callable[[], float] = time.monotonic
    ) -> None:
        self._length_s = length_s
        self._began_at = began_at
        self._ticks = ticks
        self._speed = speed
        self._paused = False
        self._held = False
        # Read and written whole: since when, from where, how fast.
        self._course = (ticks(), 0.0, speed)

    @property
    def position_s(self) -> float:
        """Seconds since the start of the recording."""
        since, at, speed = self._course
        return min(self._length_s, at + (self._ticks() - since) * speed)

    @property
    def speed(self) -> float:
        """Recorded seconds a second, when it goes on."""
        return self._speed

    @property
    def paused(self) -> bool:
        """Somebody had it stand still."""
        return self._paused

    @property
    def ended(self) -> bool:
        """It has come to the end."""
        return self.position_s >= self._length_s

    def now(self) -> float:
        """Seconds since the epoch there and then."""
        return self._began_at + self.position_s

    def go_to(self, position_s: float) -> None:
        """Go on from there."""
        self._set_out(min(max(0.0, position_s), self._length_s))

    def pause(self, *, paused: bool = True) -> None:
        """Stand still, or go on."""
        self._paused = paused
        self._set_out(self.position_s)

    def hold(self, *, held: bool = True) -> None:
        """Stand still while what was there is being found out, or go on unless it is paused."""
        self._held = held
        self._set_out(self.position_s)

    def change_speed(self, step: int) -> None:
        """The next faster speed, or the next slower one; past the last it stays."""
        others = [each for each in SPEEDS if (each > self._speed if step > 0 else each < self._speed)]
        if others:
            self._speed = min(others) if step > 0 else max(others)
        self._set_out(self.position_s)

    def _set_out(self, position_s: float) -> None:
        speed = 0.0 if self._paused or self._held else self._speed
        self._course = (self._ticks(), position_s, speed)
