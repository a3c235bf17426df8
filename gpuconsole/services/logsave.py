"""A container's whole output written to a file, harmless, without ever overwriting one that nobody gave up."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path

from gpuconsole.core.errors import Conflict, ConsoleError, Refused
from gpuconsole.engine.protocol import Engine, Stream
from gpuconsole.services.logtext import LineCleaner


def save_log(
    engine: Engine,
    container_id: str,
    path: Path,
    *,
    overwrite: bool = False,
    timestamps: bool = False,
    on_stream: Callable[[Stream[tuple[str, bytes]]], None] = lambda stream: None,
) -> int:
    """Write everything the engine has kept of its output; returns the number of lines.

    Args:
        engine: Its engine.
        container_id: The container.
        path: The file.
        overwrite: Write over a file that is there.
        timestamps: Begin each line with its time.
        on_stream: Gets the stream, so that another thread can end it; what has come till then stays in the file.

    Raises:
        Conflict: The file is there, and ``overwrite`` is off.
        Refused: It cannot be written.
        ConsoleError: The engine does not give the output.
    """
    stream = engine.logs(container_id, timestamps=timestamps)
    on_stream(stream)
    try:
        return write_lines(path, _lines(stream, timestamps=timestamps), overwrite=overwrite)
    finally:
        stream.close()


def _lines(stream: Stream[tuple[str, bytes]], *, timestamps: bool) -> Iterable[str]:
    cleaners: dict[str, LineCleaner] = {}
    for channel, data in stream:
        if channel not in cleaners:
            cleaners[channel] = LineCleaner(timestamps=timestamps)
        yield from cleaners[channel].feed(data)
    for cleaner in cleaners.values():
        yield from cleaner.finish()


def write_lines(path: Path, lines: Iterable[str], *, overwrite: bool = False) -> int:
    """Write ``lines``, each with its end; returns how many there were. A failure leaves no new file behind.

    Raises:
        Conflict: The file is there, and ``overwrite`` is off.
        Refused: It cannot be written.
    """
    count, made = 0, False
    try:
        with path.open("w" if overwrite else "x", encoding="utf-8", errors="replace") as file:
            made = not overwrite
            for line in lines:
                file.write(line)
                count += line.endswith("\n")
    except FileExistsError as error:
        raise Conflict(f"{path} is there already.", hint="Choose another name.") from error
    except OSError as error:
        _take_back(path, made=made)
        raise Refused(f"{path} cannot be written: {error.strerror}.", hint="Choose another place.") from error
    except ConsoleError:
        _take_back(path, made=made)
        raise
    return count


def _take_back(path: Path, *, made: bool) -> None:
    if made:
        with contextlib.suppress(OSError):
            path.unlink()
