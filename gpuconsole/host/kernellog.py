"""What the NVIDIA driver wrote to the kernel log, where this user may read it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

_XID = re.compile(r"NVRM: Xid \(PCI:([0-9a-fA-F:]+)(?:\.\d)?\): (\d+)")
_MOST_BYTES = 16 << 20
_LONGEST = 8192


def xids(device: Path = Path("/dev/kmsg")) -> list[tuple[str, int]] | None:
    """Place (``0000:06:00``) and number of each Xid since the machine started, as far back as the log goes.

    Returns None where the log may not be read.
    """
    try:
        descriptor = os.open(device, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return [found for line in _lines(descriptor) for found in xids_in(line)]
    except OSError:
        return None
    finally:
        os.close(descriptor)


def xids_in(text: str) -> list[tuple[str, int]]:
    """Those in a piece of the log."""
    return [(match[1].lower(), int(match[2])) for match in _XID.finditer(text)]


def _lines(descriptor: int) -> Iterator[str]:
    """The log's records up to now; each read gives one."""
    read = 0
    while read < _MOST_BYTES:
        try:
            data = os.read(descriptor, _LONGEST)
        except BlockingIOError:
            return  # the end, for now
        except BrokenPipeError:
            continue  # older records were overwritten meanwhile: it goes on with the oldest that is left
        if not data:
            return
        read += len(data)
        yield data.decode("utf-8", "replace")
