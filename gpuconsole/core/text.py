"""Text from outside made harmless, and sizes written and read.

Container names, labels, log lines, process commands and engine errors are written by strangers. A terminal obeys
what is in them: an escape sequence can retitle the window, clear the screen or write the clipboard; a bidirectional
mark can show a name backwards. So each adapter passes such text through :func:`plain` or :func:`plain_line` where it
enters, and nothing behind an adapter has to think of it again.
"""

from __future__ import annotations


def decode(data: bytes | str) -> str:
    """Text of ``data``; bytes that are not UTF-8 become U+FFFD."""
    if isinstance(data, bytes):
        return data.decode("utf-8", errors="replace")
    # Paths and argv carry undecodable bytes as lone surrogates, which cannot be written to a terminal.
    return data.encode("utf-8", errors="replace").decode("utf-8") if _has_surrogate(data) else data


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)


def plain(data: bytes | str) -> str:
    r"""``data`` without anything a terminal would obey: what a person would have read.

    Escape sequences, control characters (newline and tab stay), bidirectional and invisible marks go. Of a line with
    carriage returns, what was written last stays, as on a screen: a progress bar shows its last state.
    """
    text = decode(data)
    if text.isascii() and text.isprintable():
        return text
    from gpuconsole.core.escapes import without_escapes

    return without_escapes(text)


def plain_line(data: bytes | str, *, limit: int = 4096) -> str:
    """``data`` as one harmless line: :func:`plain`, white space folded, at most ``limit`` characters."""
    line = " ".join(plain(data).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def shorten(text: str, width: int) -> str:
    """``text`` in at most ``width`` characters, cut with an ellipsis."""
    if width <= 0:
        return ""
    return text if len(text) <= width else text[: width - 1] + "…"


def gib(size: int | None) -> str:
    """Bytes as GiB with one decimal, without the unit; ``–`` when unknown."""
    return "–" if size is None else f"{size / 2**30:.1f}"


def amount(count: int | None) -> str:
    """Bytes for a narrow column, binary: ``1.2 G`` from one GiB on, ``812 M`` below; ``–`` when unknown."""
    if count is None:
        return "–"
    return f"{count / 2**30:.1f} G" if count >= 2**30 else f"{count / 2**20:.0f} M"


_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def size(count: int | None) -> str:
    """Bytes with the binary unit that fits: ``64 MiB``, ``1.5 GiB``; ``–`` when unknown."""
    if count is None:
        return "–"
    value = float(count)
    for unit in _UNITS:
        if abs(value) < 1024 or unit == _UNITS[-1]:
            break
        value /= 1024
    return f"{value:.0f} {unit}" if unit == "B" or value >= 100 or value == int(value) else f"{value:.1f} {unit}"


_SIZE = r"(?i)^\s*(\d+(?:\.\d+)?)\s*([kmgtp]?)(i?b)?\s*$"

_TOO_LARGE = 2**63


def parse_size(text: str) -> int:
    """Bytes of ``8g``, ``512m``, ``1.5 GiB`` or ``1048576``, units binary as docker reads them.

    Raises:
        ValueError: It is no size, not above zero, or above what an engine can be told.
    """
    import re

    match = re.match(_SIZE, text)
    if match is None:
        raise ValueError(f"{text!r} is not a size; write it like 8g, 512m or 1073741824")
    size = float(match[1]) * 1024 ** " kmgtp".index(match[2].lower() or " ")
    if size >= _TOO_LARGE:
        raise ValueError(f"{text!r} is too large; the most that can be is {_TOO_LARGE - 1} bytes, just below 8388608t")
    count = int(size)
    if count <= 0:
        raise ValueError(f"{text!r} is not above zero")
    return count


def duration(seconds: float | None) -> str:
    """Seconds as a person says them: ``12 s``, ``4 min``, ``3 h``, ``5 d``; ``–`` when unknown."""
    if seconds is None:
        return "–"
    seconds = max(0.0, seconds)
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 172800 else f"{seconds / 86400:.0f} d"


def eta(seconds: float, *, short: bool = False) -> str:
    """A time ahead, no finer than it is known and steady enough to be read: ``~40 s``, ``~4 min``, ``~2 h``.

    Args:
        seconds: Until then.
        short: In as few cells as can be: ``~4m``.
    """
    if seconds < 57.5:
        number, unit = max(5, 5 * round(seconds / 5)), "s"
    elif seconds < 100 * 60:
        minutes = seconds / 60
        number, unit = max(1, round(minutes) if minutes < 10 else 5 * round(minutes / 5)), "min"
    elif seconds < 36 * 3600:
        number, unit = round(seconds / 3600), "h"
    else:
        number, unit = round(seconds / 86400), "d"
    return f"~{number}{unit[0]}" if short else f"~{number} {unit}"
