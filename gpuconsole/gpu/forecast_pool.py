"""The forecast of a memory that is only a number and a limit: a container's RAM, the host's, a ``/dev/shm``."""

from __future__ import annotations

from gpuconsole.gpu.forecast_alarm import Alarm
from gpuconsole.gpu.forecast_curve import Curve
from gpuconsole.gpu.forecast_haste import may_be_load
from gpuconsole.gpu.forecast_model import Assessment, PoolMemory, Settings, Subject
from gpuconsole.gpu.forecast_trend import TrendReader
from gpuconsole.gpu.forecast_words import flat, levels_off, outlook
from gpuconsole.gpu.state import MemoryState

_PATIENCE = 3
"""Samples without a reading in which what was said last still stands."""


class PoolWatch:
    """Follows one pool.

    Args:
        pool: The pool as first seen.
        settings: The forecast's numbers.
        born: Time of the last sample without it; None if it was there from the first.
    """

    def __init__(self, pool: PoolMemory, settings: Settings, *, born: float | None) -> None:
        self._settings = settings
        self._curve = Curve(pool.limit_bytes or 0, settings, born=born, rest_settles=True)
        self._reader = TrendReader(self._curve, settings)
        self._alarm = Alarm(settings)
        self._missing = 0
        self._said_last: Assessment | None = None

    def feed(self, t: float, pool: PoolMemory, pace_s: float) -> Assessment:
        """Take the next sample of the same pool; the one after comes in ``pace_s`` seconds, most likely."""
        if pool.used_bytes is None and self._said_last is not None and self._missing < _PATIENCE:
            self._missing += 1
            return self._said_last
        if pool.used_bytes is not None:
            self._missing = 0
        self._said_last = self._read(t, pool, pace_s)
        return self._said_last

    def _read(self, t: float, pool: PoolMemory, pace_s: float) -> Assessment:
        used, limit = pool.used_bytes, pool.limit_bytes
        if used is None or not limit:
            self._alarm.standing = None
            unlimited = "it has no limit of its own; see the host"
            if pool.subject is not Subject.CONTAINER:
                unlimited = "its size is not known"
            why = "its use cannot be read" if used is None else unlimited
            return _said(pool, MemoryState.UNKNOWN, None, why)
        if limit != self._curve.capacity:  # changed with docker update: what was seen stays true
            self._curve.capacity = limit
        self._curve.feed(t, used)
        trend = self._reader.trend(t)
        room = limit - used - (self._curve.unused() if self._curve.cyclic else 0.0)
        left, settings = limit - used, self._settings
        loads = trend is not None and may_be_load(self._curve, trend, pool.subject, left, pace_s, settings)
        trends, caution = {"": trend} if trend else {}, settings.pool_caution
        ahead = self._alarm.decide(trends, room, pace_s, caution=caution, may_be_load=loads)
        who = f"{pool.name} " if pool.name else ""
        if trend is not None and ahead.state is not None and ahead.eta_s is not None:
            why = outlook(who, trend, ahead.state, ahead.eta_s, room, pool.subject, may_be_load=loads)
            return _said(pool, ahead.state, ahead.eta_s, why, trend.rate_bytes_s)
        state = self._flat_state(t, used, limit, pool.subject)
        if trend is not None:
            return _said(pool, state, ahead.eta_s, levels_off(who, trend), trend.rate_bytes_s)
        return _said(pool, state, None, flat(state, used, limit, what=pool.name))

    def _flat_state(self, t: float, used: float, limit: float, subject: Subject) -> MemoryState:
        if subject is Subject.SHM and used < self._settings.free * limit:
            return MemoryState.FREE
        if subject is not Subject.HOST and self._reader.loading(t):
            return MemoryState.LOADING
        return MemoryState.PACKED if used >= self._settings.packed * limit else MemoryState.STEADY


def _said(pool: PoolMemory, state: MemoryState, eta_s: float | None, why: str, rate: float | None = None) -> Assessment:
    return Assessment(pool.subject, pool.id, None, None, state, eta_s, why, rate)
