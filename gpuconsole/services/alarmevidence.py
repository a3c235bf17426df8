"""What the forecast read in the last half hour, kept small, to be saved beside an alarm that is said to be wrong."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import time
import zlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuconsole import __version__
from gpuconsole.core.document import jsonable
from gpuconsole.core.errors import BadFile
from gpuconsole.core.paths import state_dir
from gpuconsole.core.text import plain_line

if TYPE_CHECKING:
    from gpuconsole.gpu.forecast_model import MemorySample
    from gpuconsole.gpu.model import GpuSnapshot
    from gpuconsole.services.alarms import Alarm

    Look = tuple[GpuSnapshot, MemorySample]

FOLDER = "alarms"
"""Its name in the state folder."""
SPAN_S = 1800.0
_BLOCK = 20
"""Looks that are packed together: neighbours are alike, and hold much that is the same."""
_MOST_BYTES = 4 * 2**20
"""Of all blocks; the oldest go, also before their half hour is over."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Samples as they are kept."""

    blocks: tuple[bytes, ...] = ()
    rest: tuple[Look, ...] = ()

    def lines(self) -> list[dict[str, Any]]:
        """Each as :func:`line_of` has it, oldest first."""
        packed = [each for block in self.blocks for each in _unpacked(block)]
        return [line_of(*each) for each in (*packed, *self.rest)]


def _unpacked(block: bytes) -> list[Look]:
    looks: list[Look] = pickle.loads(zlib.decompress(block))  # noqa: S301  # of this process: it never was elsewhere
    return looks


class _Reducers(dict[type, Callable[[Any], tuple[Any, ...]]]):
    """Class → how its things are pickled: dataclasses by their fields in C, which takes a fifth of their own way."""

    def __missing__(self, kind: type) -> Callable[[Any], tuple[Any, ...]]:
        known = fields(kind) if is_dataclass(kind) else ()
        # Of one name the getter gives no tuple; what is not made by its place in the call has its own way.
        if len(known) < 2 or any(not each.init or each.kw_only for each in known):
            raise KeyError(kind)
        values = attrgetter(*(each.name for each in known))
        reduce = self[kind] = lambda one: (kind, values(one))
        return reduce


class _Pickler(pickle.Pickler):
    dispatch_table = _Reducers()


def _pickled(looks: list[Look]) -> bytes:
    file = io.BytesIO()
    _Pickler(file, pickle.HIGHEST_PROTOCOL).dump(looks)
    return file.getvalue()


class Evidence:
    """The samples of the last half hour. For one thread."""

    def __init__(self) -> None:
        self._open: list[Look] = []
        self._blocks: deque[tuple[float, bytes]] = deque()
        """Time of the last sample of each block, and the block."""
        self._bytes = 0
        self._last_t: float | None = None

    def add(self, snapshot: GpuSnapshot, memory: MemorySample) -> None:
        """Take in what the forecast just read; one that is not later than the last is left out, as it does itself."""
        t = memory.t
        if self._last_t is not None and t <= self._last_t:
            return
        self._last_t = t
        # Written out only when somebody asks: as JSON it would cost a tenth of all that a look costs.
        self._open.append((snapshot, memory))
        if len(self._open) >= _BLOCK:
            block = zlib.compress(_pickled(self._open), 1)
            self._blocks.append((t, block))
            self._bytes += len(block)
            self._open.clear()
        while self._blocks and (self._blocks[0][0] < t - SPAN_S or self._bytes > _MOST_BYTES):
            self._bytes -= len(self._blocks.popleft()[1])

    @property
    def packed_bytes(self) -> int:
        """What the packed blocks take."""
        return self._bytes

    def copy(self) -> Kept:
        """What is kept now, for another thread."""
        return Kept(tuple(block for _, block in self._blocks), tuple(self._open))


def line_of(snapshot: GpuSnapshot, memory: MemorySample) -> dict[str, Any]:
    """A look as a recording's ``sample`` line, without names: the forecast reads the same of it again."""
    from gpuconsole.host.recording import sample

    line = {"t": round(memory.t, 3)} | sample(snapshot, memory)
    containers = line.get("containers")
    for each in containers if isinstance(containers, list) else ():
        each.pop("name", None)
    return line


def save(kept: Kept, alarm: Alarm, snapshot: GpuSnapshot, *, folder: Path | None = None) -> Path:
    """Write samples and the alarm that is said to be wrong, as a recording without names.

    Args:
        kept: As :meth:`Evidence.copy` gives it.
        alarm: What is said to be wrong.
        snapshot: The GPUs there are.
        folder: Where; None takes the usual one, which is made.

    Returns:
        The file: ``gpuconsole forecast FILE`` reads it.

    Raises:
        BadFile: There is nothing to be saved, or it cannot be written.
    """
    from gpuconsole.host.recording import RecordingWriter
    from gpuconsole.services.anonymous import HOST, ME, StandIns

    samples = [jsonable(line) for line in kept.lines()]
    if not samples:
        raise BadFile("Nothing was seen of this memory yet, so nothing is saved.", hint="Try again in a moment.")
    folder = folder or state_dir() / FOLDER
    path = _fresh(folder, alarm)
    writer = RecordingWriter(path, clean=StandIns().clean)
    try:
        first, last = float(samples[0]["t"]), float(samples[-1]["t"])
        pace = (last - first) / max(1, len(samples) - 1)
        writer.header(
            snapshot, began_at=snapshot.taken_at - (last - first), interval_s=round(pace, 2), host=HOST, user=ME,
            gpuconsole=__version__,
        )  # fmt: skip
        for each in samples:
            writer.line("sample", each.pop("t") - first, each)
        for part in alarm.parts or (alarm,):
            writer.line("alarm", last - first, {"judged": "wrong"} | _said(part))
    finally:
        writer.close()
    return path


def _said(alarm: Alarm) -> dict[str, object]:
    """The alarm without the names in its line."""
    return {
        "subject": alarm.subject, "gpu": alarm.gpu, "pid": alarm.pid, "container": alarm.container_id,
        "state": alarm.state, "eta_s": alarm.eta_s, "told_at": alarm.at,
    }  # fmt: skip


def _fresh(folder: Path, alarm: Alarm) -> Path:
    """A file of this moment that is not there yet, for the user alone."""
    of = alarm.subject.value if alarm.subject is not None else "several"
    number = "" if alarm.gpu is None else str(alarm.gpu)
    stem = f"{time.strftime('%Y%m%d-%H%M%S')}-{of}{number}-{alarm.state.value}"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for count in range(1, 100):
            path = folder / (f"{stem}.jsonl.gz" if count == 1 else f"{stem}-{count}.jsonl.gz")
            with contextlib.suppress(FileExistsError):
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
                return path
    except OSError as error:
        raise BadFile(
            f"The samples cannot be saved in {plain_line(str(folder))}: {error.strerror or error}.",
            hint="Make the folder writable, or set XDG_STATE_HOME to one that is.",
        ) from error
    raise BadFile(f"{plain_line(str(folder))} holds too many files of this second.", hint="Try again in a moment.")
