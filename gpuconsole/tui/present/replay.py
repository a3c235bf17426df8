"""The line of a recording that is played: where one is in it, how fast it goes, and the keys that go elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len

from gpuconsole.tui.keymap import Keymap
from gpuconsole.tui.present.cell import Cell, Tone
from gpuconsole.tui.theme import ASCII, Glyphs

Line = tuple[Cell, ...]
_BAR = (8, 40)
"""Cells of the bar: fewer tell nothing, more are no use."""


@dataclass(frozen=True, slots=True)
class Playing:
    """How the playing is."""

    position_s: float
    length_s: float
    speed: float
    paused: bool
    ended: bool
    wanted_s: float | None = None
    """Where it is on the way to."""
    share: float = 0.0
    """How much of that way is gone, from 0 to 1."""


def span(seconds: float) -> str:
    """Seconds as ``0:01:15``; without hours ``1:15``."""
    whole = int(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


def line(playing: Playing, keys: Keymap, width: int, glyphs: Glyphs) -> Line:
    """One line of ``width`` cells; the keys that fit less well are left out, never cut."""
    length = span(playing.length_s)
    sign, word, tone = _state(playing, glyphs)
    at = playing.position_s if playing.wanted_s is None else playing.wanted_s
    head = (
        Cell(f" {sign} {word}", tone),
        Cell(f"  {span(at):>{len(length)}} / {length}", "strong"),
        Cell(f"  {playing.speed:g}×" if glyphs is not ASCII else f"  {playing.speed:g}x", "dim"),
    )
    used = sum(cell_len(cell.text) for cell in head)
    told, room = [], width - used - 2 - _BAR[0] - 2
    for key, words in _keys(playing, keys):
        if (needed := len(key) + len(words) + 3) > room:
            break
        room -= needed
        told += [Cell(f"  {key}", "accent"), Cell(f" {words}", "dim")]
    cells = min(_BAR[1], _BAR[0] + max(0, room))
    if width - used - 2 < _BAR[0]:
        return head
    return (*head, Cell("  "), *_bar(at / playing.length_s if playing.length_s else 1.0, cells, glyphs), *told)


def _state(playing: Playing, glyphs: Glyphs) -> tuple[str, str, Tone]:
    if playing.wanted_s is not None:
        return glyphs.ellipsis, f"going {playing.share * 100:.0f} %" if playing.share else "going", "accent"
    if playing.ended:
        return ("■" if glyphs is not ASCII else "#"), "end", "watch"
    if playing.paused:
        return ("‖" if glyphs is not ASCII else "="), "paused", "watch"
    return glyphs.pointer, "plays", "ok"


def _keys(playing: Playing, keys: Keymap) -> list[tuple[str, str]]:
    """Keys and what they do, the most wanted first."""

    def both(one: str, other: str) -> str:
        return f"{keys.name(one)} {keys.name(other)}"

    again = "from the start" if playing.ended else "go on" if playing.paused else "pause"
    return [
        (keys.name("replay.pause"), again),
        (both("replay.back", "replay.ahead"), "10 s"),
        (both("replay.event", "replay.event_before"), "event"),
        (both("replay.slower", "replay.faster"), "speed"),
        (both("replay.minute_back", "replay.minute_ahead"), "1 min"),
        (both("replay.start", "replay.end"), "ends"),
    ]


def _bar(share: float, cells: int, glyphs: Glyphs) -> Line:
    full = round(min(1.0, max(0.0, share)) * cells)
    done, rest = ("━", "─") if glyphs is not ASCII else ("=", "-")
    return (Cell(done * full, "accent"), Cell(rest * (cells - full), "dim"))
