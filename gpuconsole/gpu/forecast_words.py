"""The one line that says who, how fast, when, and what to do."""

from __future__ import annotations

from functools import lru_cache

from gpuconsole.core.text import duration, size
from gpuconsole.gpu.forecast_model import Subject, Trend
from gpuconsole.gpu.state import MemoryState

_ADVICE = {
    Subject.GPU: "save a checkpoint, then lower the batch or length, or stop it",
    Subject.CONTAINER: "fewer workers or a smaller cache, or start it with a higher --memory",
    Subject.HOST: "find who holds it and stop it before the kernel chooses",
    Subject.SHM: "clear it, or start the container with a larger --shm-size",
}


def about(seconds: float) -> str:
    """A time ahead, no finer than it is known: to 5 s below a minute, then to minutes, hours, days."""
    if seconds < 3:
        return "a moment"
    if seconds < 60:
        return f"about {max(5, 5 * round(seconds / 5))} s"
    return f"about {duration(seconds)}" if seconds >= 90 else "about 1 min"


def growth(trend: Trend) -> str:
    """``grew 12 GiB in 45 s, 0.5 GiB a step``."""
    what = "peaks grew" if trend.cyclic else "grew"
    pace = f"{size(round(trend.steady_step_bytes))} a {'round' if trend.cyclic else 'step'}"
    bend = (
        ", ever faster"
        if trend.bend * trend.steps > 0.7
        else ", slowing down"
        if trend.bend * trend.steps < -0.7
        else ""
    )
    return f"{what} {size(round(trend.gained_bytes))} in {duration(trend.lasted_s)}, {pace}{bend}"


def outlook(
    who: str, trend: Trend, state: MemoryState, eta_s: float, room: float, where: Subject, *, may_be_load: bool = False
) -> str:
    """The line for something that grows; ``may_be_load``: perhaps it is a load that ends by itself."""
    left = f"{size(max(0, round(room)))} left"
    line = f"{who}{growth(trend)}; at this pace full in {about(eta_s)} ({left})"
    if state in (MemoryState.RISK, MemoryState.CRITICAL):
        return f"{line}: {_ADVICE[where]}"
    return f"{line}, unless it is a load that ends before" if may_be_load else line


def levels_off(who: str, trend: Trend) -> str:
    """The line for growth that will not fill it."""
    return f"{who}{growth(trend)}; it does not look like filling the memory soon"


@lru_cache(maxsize=512)
def flat(state: MemoryState, used: float, capacity: float, *, what: str) -> str:
    """The line for something that does not grow."""
    amount = f"{size(round(used))} of {size(round(capacity))}"
    if state is MemoryState.FREE:
        return "nobody uses it"
    if state is MemoryState.IDLE:
        return f"{what} holds {amount} and computes nothing"
    if state is MemoryState.LOADING:
        return f"loading: {amount} so far"
    if state is MemoryState.PACKED:
        return f"full on purpose, it seems: {amount}, and nothing grows"
    return f"{amount}, no growth to speak of"
