"""What comes from the engine bit by bit, and can be ended from any thread."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from gpuconsole.core.errors import EngineRefused
from gpuconsole.core.text import plain_line
from gpuconsole.engine.docker.exchange import Exchange

Item = TypeVar("Item")

_HEADER_BYTES = 8
_STREAMS = {0: "stdout", 1: "stdout", 2: "stderr"}
_ENGINE_ERROR = 3
_LONGEST_OBJECT = 16 << 20


class EngineStream(Generic[Item]):
    """Items made from the answer of an exchange as it arrives.

    Args:
        exchange: The request; sent when the iteration begins, unless it was before.
        decode: Makes items of the answer's bytes.
    """

    def __init__(self, exchange: Exchange, decode: Callable[[Iterator[bytes]], Iterator[Item]]) -> None:
        self._exchange = exchange
        self._items = decode(exchange.chunks())

    def __iter__(self) -> Iterator[Item]:
        return self._items

    def close(self) -> None:
        """End it; an iteration under way stops without an error."""
        self._exchange.close()


def raw_output(chunks: Iterable[bytes]) -> Iterator[tuple[str, bytes]]:
    """Output through a terminal: one stream."""
    for chunk in chunks:
        yield "stdout", chunk


def separated_output(chunks: Iterable[bytes]) -> Iterator[tuple[str, bytes]]:
    """Output without a terminal: frames, each saying which stream it is of. Long frames come in pieces.

    Raises:
        EngineRefused: The engine put an error of its own into the stream.
    """
    header, kind, left = b"", 0, 0
    trouble = b""
    for chunk in chunks:
        position = 0
        while position < len(chunk):
            if not left:
                taken = chunk[position : position + _HEADER_BYTES - len(header)]
                header, position = header + taken, position + len(taken)
                if len(header) == _HEADER_BYTES:
                    kind, left, header = header[0], int.from_bytes(header[4:], "big"), b""
                continue
            piece = chunk[position : position + left]
            position, left = position + len(piece), left - len(piece)
            if kind == _ENGINE_ERROR:
                trouble += piece
            else:
                yield _STREAMS.get(kind, "stdout"), piece
    if trouble:
        raise EngineRefused(
            f"The engine broke the output off: {plain_line(trouble)}.", hint="Look at 'journalctl -u docker -n 20'."
        )


def json_objects(chunks: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The JSON objects in a stream, however it is cut; what is none is skipped."""
    buffer = b""
    for chunk in chunks:
        buffer += chunk
        *complete, buffer = buffer.split(b"\n")
        for text in complete:
            yield from _objects(text)
        if len(buffer) > _LONGEST_OBJECT:
            buffer = b""
    yield from _objects(buffer)


def _objects(text: bytes) -> Iterator[dict[str, Any]]:
    """Objects on one line; some engines put several there."""
    decoder, rest = json.JSONDecoder(), text.decode("utf-8", errors="replace").strip()
    while rest:
        try:
            found, end = decoder.raw_decode(rest)
        except ValueError:
            return
        if isinstance(found, dict):
            yield found
        rest = rest[end:].lstrip()
