"""A long file of lines, plain or compressed, read at any place without holding it: for recordings of hours."""

from __future__ import annotations

import io
import zlib
from bisect import bisect_right
from collections.abc import Iterator
from typing import IO, Any

_PIECE = 32 * 2**10
"""Bytes read at once."""
_BLOCK = 4 * 2**20
"""Uncompressed bytes from one place that can be gone to, to the next."""
GZIP_MAGIC = b"\x1f\x8b"


class LongFile:
    """Reads a file front to back once, and any part of it afterwards. For one thread.

    Args:
        file: Opened for reading bytes; closed with this.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._compressed = file.read(2) == GZIP_MAGIC
        self._places: list[tuple[int, int, Any]] = []
        """Uncompressed and compressed offset, and what decompresses from there."""
        self._block = (0, b"")
        """Offset of the block that was read last, and its bytes."""

    def pieces(self) -> Iterator[bytes]:
        """All of it; must be gone through before :meth:`read`.

        Raises:
            EOFError: A compressed file ends in the middle.
            zlib.error, OSError: It is damaged or cannot be read.
        """
        self._file.seek(0)
        if not self._compressed:
            while piece := self._file.read(_PIECE):
                yield piece
            return
        out, last, unpack = 0, -_BLOCK, zlib.decompressobj(31)
        while True:
            at = self._file.tell()
            if out - last >= _BLOCK:
                self._places.append((out, at, unpack.copy()))
                last = out
            piece = self._file.read(_PIECE)
            if not piece:
                if not unpack.eof:
                    raise EOFError
                return
            text = unpack.decompress(piece)
            while unpack.eof and unpack.unused_data.strip(b"\0"):  # another file behind it, as cat makes them
                rest, unpack = unpack.unused_data, zlib.decompressobj(31)
                text += unpack.decompress(rest)
            out += len(text)
            yield text

    def read(self, offset: int, length: int) -> bytes:
        """Bytes of it, uncompressed."""
        if not self._compressed:
            self._file.seek(offset)
            return self._file.read(length)
        begin, block = self._block
        if not begin <= offset <= offset + length <= begin + len(block):
            begin, block = self._block = self._unpacked(offset, offset + length)
        return block[offset - begin : offset - begin + length]

    def _unpacked(self, first: int, until: int) -> tuple[int, bytes]:
        """The block that holds these bytes, to its end or theirs."""
        place = bisect_right(self._places, first, key=lambda each: each[0]) - 1
        out, at, kept = self._places[place]
        until = max(until, self._places[place + 1][0] if place + 1 < len(self._places) else until)
        unpack, text = kept.copy(), io.BytesIO()
        self._file.seek(at)
        while out + text.tell() < until and (piece := self._file.read(_PIECE)):
            text.write(unpack.decompress(piece))
            while unpack.eof and unpack.unused_data.strip(b"\0"):
                rest, unpack = unpack.unused_data, zlib.decompressobj(31)
                text.write(unpack.decompress(rest))
        return out, text.getvalue()

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()
