"""The past of a GPU, a process, a container: charts with what happened below, and where memory is going."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpuconsole.core.text import duration, gib
from gpuconsole.gpu.forecast_words import about
from gpuconsole.host.model import GpuView, Holder
from gpuconsole.services.containers import ContainerView
from gpuconsole.services.pasts import CPU, DAY_S, GPU_MEMORY, MEMORY, PROCESS, RAM, USE, Pasts
from gpuconsole.services.ringing import gpu_key, process_key
from gpuconsole.services.series import Peak
from gpuconsole.services.track import Column
from gpuconsole.tui.present import chart, chartaxis, pastevents
from gpuconsole.tui.present.cell import Cell, Tone
from gpuconsole.tui.present.chart import Ahead, Line, Scale, Times
from gpuconsole.tui.present.details import Field
from gpuconsole.tui.present.gpu import STATE_TONES, sparkline
from gpuconsole.tui.theme import Glyphs

SPANS_S = (60.0, 300.0, 1800.0, 7200.0, 21_600.0, DAY_S)
"""How far back a chart can go."""
_SPAN_WORDS = ("1 min", "5 min", "30 min", "2 h", "6 h", "24 h")
_FITTED_S = 1800.0
"""A span that is chosen by itself is not longer, unless the forecast needs it."""
_BESIDE = 70
"""From so many cells on, the two charts stand beside each other."""
_SHORTEST, _TALLEST = 2, 12
_AHEAD = 4
"""The part of a chart that is for what is to come, when something is: one of so many."""
_SPARK_S = 1800.0
_OFTEN_S, _SELDOM_S = 0.5, 10.0
GIB = 2**30


@dataclass(frozen=True, slots=True)
class Look:
    """How the past is to be shown."""

    now: float
    span_s: float
    width: int
    height: int
    """Of the whole screen."""
    glyphs: Glyphs
    key: str = ""
    """What shows another span."""


def fitting_span(remembered_s: float, eta_s: float | None) -> float:
    """The shortest span that holds what is remembered, half an hour of it at most, and half the way of the forecast."""
    wanted = max(min(remembered_s, _FITTED_S), min(DAY_S, (eta_s or 0.0) * (_AHEAD - 1) / 2))
    return next((span for span in SPANS_S if span >= wanted), SPANS_S[-1])


def pace_s(span_s: float, width: int) -> float:
    """How often charts of so many cells are worth drawing anew: some times a column, and every ten seconds."""
    cells = width / (2 if width >= _BESIDE else 1)
    return min(_SELDOM_S, max(_OFTEN_S, span_s / cells / 4))


def charts(view: GpuView, pasts: Pasts, look: Look) -> list[Line]:
    """Utilization and memory beside or below each other, their time, and what happened."""
    beside = look.width >= _BESIDE
    cells = max(8, ((look.width - 2) // 2 if beside else look.width) - chart.LEFT)
    height = min(_TALLEST, max(_SHORTEST, (look.height - 16) // (2 if beside else 4)))
    use = Times(look.now, look.span_s, cells)
    eta_s = _eta_s(view)
    ahead = 0 if eta_s is None else max(3, cells // _AHEAD)
    memory = Times(look.now, look.span_s, cells - ahead - 1 if ahead else cells, ahead)
    events = pasts.events(gpu_key(view), use.begins)
    told = pastevents.told(events, look.width, rows=1 if look.height < 20 else 2 if look.height < 30 else 4,
                           seconds=look.span_s <= SPANS_S[2])  # fmt: skip
    # Marks come and go: below the axis they move nothing, and charts below each other are parted by their row.
    marked = bool(events) or not beside
    below = [
        [chartaxis.axis(times), *([chartaxis.marks(told.spans(look.now, look.glyphs), times)] if marked else [])]
        for times in (use, memory)
    ]
    left = [*_use(view, pasts, use, height, look), *below[0]]
    right = [*_memory(view, pasts, memory, height, look), *below[1]]
    both = chart.side_by_side(left, right) if beside else [*left, *right]
    return [*both, *told.legend]


def _use(view: GpuView, pasts: Pasts, times: Times, height: int, look: Look) -> list[Line]:
    found = _columns(pasts, USE, gpu_key(view), times)
    known = [column for column in found if column is not None]
    if known:
        mean = sum(column.mean for column in known) / len(known)
        words = [Cell(f"  mean {mean:.0f}", "dim"), Cell(f", most {max(column.high for column in known):.0f}", "dim")]
    else:
        words = [_nothing(view, "utilization_pct")]
    span = f"{_span(times)}{f'  {look.key} other span' if look.key and look.width >= 2 * _BESIDE else ''}"
    return chart.chart(
        _title(f" USE % · {span}", words, times.width + chart.LEFT),
        [None if column is None else column.mean for column in found],
        times=times,
        height=height,
        scale=Scale(100.0, "{:.0f}"),
        tone="accent",
        glyphs=look.glyphs,
    )


def _memory(view: GpuView, pasts: Pasts, times: Times, height: int, look: Look) -> list[Line]:
    key = gpu_key(view)
    found = _columns(pasts, MEMORY, key, times)
    peak = _peak(pasts, key, times)
    words = []
    if (eta_s := _eta_s(view)) is not None and view.outlook is not None:
        words.append(Cell(f"  full in {about(eta_s)}", STATE_TONES[view.outlook.state] or "watch"))
    if peak is not None:
        at = chartaxis.clock(peak.at, seconds=times.span_s <= SPANS_S[2])
        words.append(Cell(f"  most {peak.value / GIB:.1f} at {at}", "watch"))
    else:
        words.append(_nothing(view, "memory_used_bytes"))
    width = times.width + chart.LEFT
    total = (view.gpu.memory_total_bytes or 0) / GIB
    return chart.chart(
        _title(f" {'MEMORY ' if width >= 48 else ''}GiB · {_span(times)}", words, width),
        [None if column is None else column.high / GIB for column in found],
        times=times,
        height=height,
        scale=Scale(total or (peak.value / GIB if peak else 0) or 1.0, "{:.1f}", limit=bool(total)),
        tone="info",
        glyphs=look.glyphs,
        high=None if peak is None else peak.value / GIB,
        ahead=_ahead(view, times),
    )


def _nothing(view: GpuView, name: str) -> Cell:
    return Cell(f"  – {view.gpu.unknown.get(name) or 'nothing known'}", "dim")


def _columns(pasts: Pasts, measure: str, key: str, times: Times) -> list[Column | None]:
    return pasts.columns(measure, key, times.begins, times.each_s, times.past)


def _peak(pasts: Pasts, key: str, times: Times) -> Peak | None:
    """The highest in a time: when it was is known exactly where that is the highest of all."""
    ever = pasts.peak(MEMORY, key)
    return ever if ever is not None and ever.at >= times.begins else pasts.highest(MEMORY, key, times.begins, times.end)


def _eta_s(view: GpuView) -> float | None:
    """Seconds until the memory is full; None without a trend, or where the figures to draw it are unknown."""
    gpu = view.gpu
    if view.outlook is None or gpu.memory_used_bytes is None or not gpu.memory_total_bytes:
        return None
    return view.outlook.eta_s


def _ahead(view: GpuView, times: Times) -> Ahead | None:
    """A line from what is used now to all there is, which it reaches at the end of the forecast."""
    eta_s, used, total = _eta_s(view), view.gpu.memory_used_bytes, view.gpu.memory_total_bytes
    if eta_s is None or used is None or total is None or view.outlook is None:
        return None
    values: list[float | None] = []
    for column in range(times.ahead):
        after_s = (column + 1) * times.each_s
        over = column > 0 and after_s - times.each_s >= eta_s  # the column in which it is full is the last
        share = min(1.0, after_s / eta_s) if eta_s > 0 else 1.0
        values.append(None if over else (used + (total - used) * share) / GIB)
    return Ahead(tuple(values), STATE_TONES[view.outlook.state] or "watch")


def _span(times: Times) -> str:
    return _SPAN_WORDS[SPANS_S.index(times.span_s)] if times.span_s in SPANS_S else duration(times.span_s)


def _title(head: str, words: Sequence[Cell], width: int) -> Line:
    """``head``, and of ``words`` those that fit whole; the first is cut rather than left out."""
    cells, used = [Cell(head, "strong")], len(head)
    for place, cell in enumerate(words):
        if place and used + len(cell.text) > width:
            break
        cells.append(cell)
        used += len(cell.text)
    return tuple(cells)


def highest_field(view: GpuView, pasts: Pasts, *, now: float) -> Field:
    """The most memory that was in use since it is watched."""
    peak = pasts.peak(MEMORY, gpu_key(view))
    if peak is None:
        return Field("highest", ())
    words = f"{gib(round(peak.value))} GiB in use  "
    return Field("highest", ((Cell(words), Cell(_when(peak.at, now), "dim")),))


def _when(at: float, now: float) -> str:
    return f"{duration(now - at)} ago, at {chartaxis.clock(at, seconds=True)}"


# --- a process, a container ---


def process_field(holder: Holder, pasts: Pasts, look: Look) -> Field:
    """GPU memory of a process in the last half an hour; empty while little is known."""
    line = _spark("", pasts, PROCESS, process_key(holder), look)
    return Field("last 30 min", () if line is None else (line,))


def container_field(view: ContainerView, pasts: Pasts, look: Look) -> Field:
    """GPU memory, RAM and CPU of a container in the last half an hour; empty while little is known."""
    lines = [
        _spark(f"{word}  ", pasts, measure, view.container.id, look)
        for word, measure in (("GPU", GPU_MEMORY), ("RAM", RAM), ("CPU", CPU))
    ]
    return Field("last 30 min", tuple(line for line in lines if line is not None))


def _spark(name: str, pasts: Pasts, measure: str, key: str, look: Look) -> Line | None:
    """One measure in one line; None where there is no room, or nothing to be seen yet."""
    room = min(30, look.width - 48)
    if room < 8:
        return None
    found = _columns(pasts, measure, key, Times(look.now, _SPARK_S, room))
    known = [column for column in found if column is not None]
    top = max((column.high for column in known), default=0.0)
    if len(known) < 3 or not top:
        return None
    unit, word = (1.0, "%") if measure == CPU else (GIB, "GiB")
    form = "{:.0f}" if measure == CPU else "{:.1f}"
    ends = dict.fromkeys(form.format(value / unit) for value in (min(column.low for column in known), top))
    picture = sparkline([None if each is None else each.high for each in found], room, look.glyphs, top=top)
    peak, more = pasts.peak(measure, key), ""
    if peak is not None and peak.value > top * 1.001:  # what is thinned is rounded
        more = f"  most ever {form.format(peak.value / unit)}, {_when(peak.at, look.now)}"
    tone: Tone = "accent" if measure == CPU else "info"
    return (Cell(name), Cell(picture, tone), Cell(f"  {' … '.join(ends)} {word}"), Cell(more, "dim"))
