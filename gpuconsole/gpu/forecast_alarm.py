"""When growth is worth watching, a risk, or critical: one decision for one memory and all that grows in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpuconsole.gpu.forecast_ahead import full_in
from gpuconsole.gpu.forecast_model import Settings, Trend
from gpuconsole.gpu.state import MemoryState

_CULPRIT = 0.2
"""Share of the growth from which on a holder is named for it."""
_PAUSED = 0.5
"""Of the growth time: growth that comes back after less had only paused, and its alarm was not wrong."""
_MOST_WARY = 2
"""Alarms withdrawn that count: it never goes deaf."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is ahead of one memory."""

    state: MemoryState | None = None
    """WATCH, RISK or CRITICAL; None for none of them."""
    eta_s: float | None = None
    """Seconds until it is full as growth goes on; None without growth, or when growth slows down before."""
    culprits: tuple[str, ...] = ()
    """Who grows, the fastest first."""


class Alarm:
    """Decides sample by sample, and remembers what it said.

    Args:
        settings: The forecast's numbers.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.standing: MemoryState | None = None
        """RISK or CRITICAL while an alarm stands."""
        self._withdrawn = 0
        self._caution = 1.0
        self._seen_s = 0.0
        """The longest growth time seen while this alarm stands."""
        self._ended_s: float | None = None
        """The same when the growth of the last alarm ended; None where it fell for another reason, or came back."""
        self._rested_s = 0.0
        """Time since an alarm fell, while somebody looked."""

    def decide(
        self,
        trends: Mapping[str, Trend],
        room: float,
        sampling_s: float,
        *,
        caution: float = 1.0,
        may_be_load: bool = False,
    ) -> Outlook:
        """The outlook now.

        Args:
            trends: Who grows, and how.
            room: Bytes left for all growth together.
            sampling_s: Seconds to the next sample, most likely: an alarm that would be due then is raised now.
            caution: A risk must be nearer by this factor, where growth is something harmless more often than a leak.
            may_be_load: It may be loading: worth watching, and no alarm unless one stands already.
        """
        self._rested_s += sampling_s
        if not trends:
            self._withdraw(ended=True)
            return Outlook()
        rates = {name: trend.rate_bytes_s for name, trend in trends.items()}
        whole = sum(rates.values()) or 1.0
        culprits = [name for name in sorted(rates, key=lambda name: -rates[name]) if rates[name] >= _CULPRIT * whole]
        self._caution = caution
        seen = sum(rates[name] * trend.seen_s for name, trend in trends.items()) / whole
        if self._ended_s is not None and seen > self._ended_s:  # the same growth
            self._withdrawn -= self._rested_s <= _PAUSED * self._ended_s
            self._ended_s = None
        if self.standing is not None:  # the same growth read otherwise, as a pace that changed, is no end of it
            seen = self._seen_s = max(seen, self._seen_s)
        eta = full_in(list(trends.values()), room)
        straight = full_in(list(trends.values()), room, straight=True)
        if self.standing is not None and straight is not None and straight <= self._settings.clear * seen:
            eta = straight if eta is None else min(eta, self._settings.watch * seen)  # one late step ends no alarm
        elif eta is None or eta > self._settings.watch * seen:
            self._withdraw()
            return Outlook(eta_s=eta, culprits=tuple(culprits))
        if self.standing is not None or not may_be_load:
            self._set(trends, eta, straight, seen, sampling_s)
        return Outlook(self.standing or MemoryState.WATCH, eta, tuple(culprits))

    def _set(
        self, trends: Mapping[str, Trend], eta: float, straight: float | None, seen: float, sampling_s: float
    ) -> None:
        settings = self._settings
        if self.standing is None:
            if seen < settings.looks * sampling_s:
                return
            then = None if straight is None else straight - sampling_s
            if not self._is_risk(trends, eta - sampling_s, then, seen + sampling_s):
                return
            self.standing, self._seen_s = MemoryState.RISK, seen
        elif min(eta, straight if straight is not None else eta) > settings.clear * seen:
            self._withdraw()
            return
        soonest = min(trend.interval_s for trend in trends.values())
        near = eta <= settings.critical * seen or eta <= soonest
        if near:
            self.standing = MemoryState.CRITICAL
        elif eta > 2 * settings.critical * seen and eta > 2 * soonest:
            self.standing = MemoryState.RISK

    def _is_risk(self, trends: Mapping[str, Trend], eta: float, straight: float | None, seen: float) -> bool:
        settings = self._settings
        if all(trend.overdue for trend in trends.values()):
            return False
        steps = max(trend.steps for trend in trends.values())
        wary = self._caution * settings.wary**self._withdrawn * seen * steps / (steps + settings.doubt)
        if straight is not None and eta > 1.3 * straight:
            return eta <= settings.risk_slowing * wary
        if straight is not None and straight <= settings.risk * wary:
            return True
        speeding = [trend.steps for trend in trends.values() if trend.bend > 0]
        if not speeding:
            return eta <= settings.risk * wary
        surer = min(max(min(speeding) - settings.steps - 1, 0), 2) / 2  # with each step it is less of a chance
        return eta <= (settings.risk_speeding + surer * settings.risk_speeding_surely) * wary

    def forget(self) -> None:
        """Begin anew: whoever was to blame has gone, and says nothing of who comes next."""
        self.standing, self._withdrawn, self._ended_s = None, 0, None

    def _withdraw(self, *, ended: bool = False) -> None:
        if self.standing is not None:
            self._ended_s = self._seen_s if ended and self._withdrawn < _MOST_WARY else None
            self._rested_s = 0.0
            self._withdrawn = min(self._withdrawn + 1, _MOST_WARY)
        self.standing = None
