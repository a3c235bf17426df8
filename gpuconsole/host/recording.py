"""Recordings of a machine: JSON lines, the first a header, each other one with its seconds since the start.

``sample`` lines hold what a forecaster reads of the GPUs and the host. The console adds lines of its own beside them
(``host``, ``container``, ``containers``, ``images``, ``engine``, ``link``, ``runs``, ``log``, ``facts``); a reader
skips the types and fields it does not know. Under a name that ends in ``.gz`` it is written compressed; read it is by
what the file holds.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import psutil

from gpuconsole.core.document import jsonable
from gpuconsole.core.errors import BadFile, NotFound
from gpuconsole.core.text import plain_line
from gpuconsole.gpu.forecast_model import HOST_ID, SHM_OF, GpuMemory, MemorySample, Subject
from gpuconsole.gpu.model import Gpu, GpuSnapshot
from gpuconsole.host.longfile import GZIP_MAGIC
from gpuconsole.host.memories import ram_of_host, shm_of_host

FORMAT = "gpuconsole-recording"
VERSION = 1
"""Of the format; raised only when an older reader would misunderstand a newer file."""
STANDARD_OUTPUT = Path("-")
"""Where a recording may be written to."""
_COMPRESSED = ".gz"
_MAGIC = 6
_OTHER_PACKERS = {b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zXZ\0": "xz", b"BZh": "bzip2"}
"""By the bytes that such files begin with."""
LONGEST_LINE = 16 * 2**20
"""Characters; longer ones are no line of ours, and would fill the memory."""


class RecordingWriter:
    """Writes one recording. Safe from any thread.

    Args:
        path: The file; what was there goes. :data:`STANDARD_OUTPUT` is no file.
        clean: Makes anonymous what is written; is given JSON data and gives JSON data.

    Raises:
        BadFile: The file cannot be written.
    """

    def __init__(self, path: Path, *, clean: Callable[[Any], Any] = lambda data: data) -> None:
        self._path = path
        self._clean = clean
        self._lock = threading.Lock()
        self._last: dict[str, str] = {}
        self._failed = False
        try:
            self._file: IO[str] = _opened(path, "w")
        except OSError as error:
            raise self._unwritable(error) from error

    def header(self, snapshot: GpuSnapshot, *, began_at: float, interval_s: float, **parts: object) -> None:
        """Write the first line.

        Args:
            snapshot: The GPUs there are.
            began_at: Second 0, in seconds since the epoch.
            interval_s: Seconds between samples.
            parts: What else is to be known of the whole.
        """
        gpus = [
            {"index": gpu.index, "uuid": gpu.uuid, "name": gpu.name, "memory_total_bytes": gpu.memory_total_bytes}
            for gpu in snapshot.gpus
        ]
        head = {"type": "header", "format": FORMAT, "version": VERSION, "interval_s": interval_s}
        self._write(head | {"driver": snapshot.driver_version, "began_at": began_at, "gpus": gpus} | parts)

    def line(self, kind: str, t: float, body: dict[str, object]) -> None:
        """Write one line of what happened at second ``t``."""
        self._write({"type": kind, "t": round(t, 3)} | body)

    def news(self, kind: str, t: float, body: dict[str, object], *, of: str = "") -> None:
        """Write a line unless the last one of this kind, and of this thing, said the same."""
        text = json.dumps(jsonable(body))
        with self._lock:
            known = self._last.get(f"{kind} {of}") == text
            self._last[f"{kind} {of}"] = text
        if not known:
            self.line(kind, t, body)

    def _write(self, data: dict[str, object]) -> None:
        text = json.dumps(self._clean(jsonable(data)), ensure_ascii=False, separators=(",", ":"))
        try:
            with self._lock:
                if not self._file.closed:
                    self._file.write(f"{text}\n")
                    if self._path.suffix != _COMPRESSED:  # there each flush would begin a new block
                        self._file.flush()
        except OSError as error:
            raise self._unwritable(error) from error

    def close(self) -> None:
        """End the file.

        Raises:
            BadFile: The rest could not be written, and nothing was told of it before.
        """
        with self._lock:
            try:
                self._file.close()
            except OSError as error:
                if not self._failed:
                    raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> BadFile:
        self._failed = True
        name = "standard output" if self._path == STANDARD_OUTPUT else plain_line(str(self._path))
        return BadFile(
            f"The recording cannot be written to {name}: {error.strerror or error}.",
            hint="Choose a place that can be written and has room; what was written until then can be played.",
        )


def sample(snapshot: GpuSnapshot, memory: MemorySample | None = None) -> dict[str, object]:
    """What a forecaster reads of one moment; what could not be read is None.

    Args:
        snapshot: The GPUs.
        memory: What the live forecaster read at that moment, which the recording then repeats; the host's memories
            are read now where there is none.
    """
    host: dict[str, object] = {"cpu_pct": psutil.cpu_percent(None)}
    if memory is None:
        (used, total), (shm, size) = ram_of_host(), shm_of_host()
        host |= {"memory_used_bytes": used, "memory_total_bytes": total, "shm_used_bytes": shm, "shm_total_bytes": size}
        return {"gpus": [_gpu_sample(gpu) for gpu in snapshot.gpus], "host": host}
    containers: dict[str, dict[str, object]] = {}
    for pool in memory.pools:
        what = "shm" if pool.subject is Subject.SHM else "memory"
        figures = {f"{what}_used_bytes": pool.used_bytes}
        if pool.id == HOST_ID:
            host |= figures | {f"{what}_total_bytes": pool.limit_bytes}
            continue
        limit = "shm_total_bytes" if pool.subject is Subject.SHM else "memory_limit_bytes"
        known = containers.setdefault(pool.id, {"id": pool.id, "name": pool.name.removeprefix(SHM_OF)})
        known |= figures | {limit: pool.limit_bytes}
    read = {gpu.index: gpu for gpu in memory.gpus}
    gpus = [_gpu_sample(gpu, read.pop(gpu.index, None)) for gpu in snapshot.gpus]
    away: dict[str, object] = {"memory_used_bytes": None, "memory_free_bytes": None, "processes": None}
    gpus += [away | {"index": index} for index in read]  # the driver is away, and may come back
    return {"gpus": gpus, "host": host, "containers": list(containers.values())}


def _gpu_sample(gpu: Gpu, read: GpuMemory | None = None) -> dict[str, object]:
    """One GPU; of its processes those that the live forecaster read, where it did."""
    processes = gpu.processes if read is None else read.processes
    listed = None
    if processes is not None:
        listed = [{"pid": process.pid, "memory_bytes": process.memory_bytes} for process in processes]
    body: dict[str, object] = {
        "index": gpu.index,
        "memory_used_bytes": gpu.memory_used_bytes,
        "memory_free_bytes": gpu.memory_free_bytes,
        "gpu_util_pct": gpu.utilization_pct,
        "memory_util_pct": gpu.memory_utilization_pct,
        "power_w": gpu.power_w,
        "temperature_c": gpu.temperature_c,
        "sm_clock_mhz": gpu.sm_clock_mhz,
        "throttle_reasons": gpu.throttle_reasons,
        "processes": listed,
    }
    return body | {"divided": True} if gpu.migs else body


def read_recording(path: Path, *, on_cut: Callable[[], object] = lambda: None) -> Iterator[tuple[int, dict[str, Any]]]:
    """The lines of a recording with their numbers, the header first.

    A last line that was cut off in the middle, as when the recorder was killed, is left out.

    Args:
        path: The file.
        on_cut: Told that it ends in the middle of a line, or of what is compressed.

    Raises:
        NotFound: There is no such file.
        BadFile: It cannot be read, or is no recording, or one of a newer kind.
    """
    name = plain_line(str(path))
    number = 0
    try:
        with _opened(path, "r") as file:
            for number, data in _objects(file, name, on_cut):
                if number == 1:
                    _refuse_stranger(data, name)
                yield number, data
    except FileNotFoundError as error:
        raise NotFound(f"There is no file {name}.", hint="Give the path of a recording.") from error
    except EOFError:
        on_cut()  # the compressed file ends in the middle
    except (OSError, zlib.error) as error:
        words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise BadFile(f"{name} cannot be read: {words}.", hint="Give a recording.") from error
    if number == 0:
        raise BadFile(f"{name} holds no recording: it is empty.", hint="Record it again.")


def _objects(file: IO[str], name: str, on_cut: Callable[[], object]) -> Iterator[tuple[int, dict[str, Any]]]:
    number = 0
    while text := file.readline(LONGEST_LINE):
        number += 1
        try:
            data = json.loads(text, parse_constant=_no_number)
        except (ValueError, RecursionError) as error:
            if number > 1 and not text.endswith("\n") and len(text) < LONGEST_LINE:
                on_cut()
                return
            raise _malformed(name, number, "it is no JSON") from error
        if not isinstance(data, dict) or not isinstance(data.get("type"), str):
            raise _malformed(name, number, "it has no type")
        yield number, data


def line_of_text(text: str) -> dict[str, Any]:
    """One line of a recording.

    Raises:
        ValueError, RecursionError: It is none.
    """
    try:
        data = json.loads(text, parse_constant=_no_number)
    except ValueError:
        raise ValueError("it is no JSON") from None
    if not isinstance(data, dict) or not isinstance(data.get("type"), str):
        raise ValueError("it has no type")
    return data


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no number of JSON")


def _refuse_stranger(header: dict[str, Any], name: str) -> None:
    if header["type"] != "header" or header.get("format") != FORMAT:
        raise _malformed(name, 1, f"its format is not {FORMAT}")
    if header.get("version") != VERSION:
        raise BadFile(
            f"{name} is a recording of version {plain_line(str(header.get('version')))}, and this gpuconsole reads "
            f"version {VERSION}.",
            hint="Open it with the gpuconsole that wrote it, or a newer one.",
        )


def _malformed(name: str, number: int, why: str) -> BadFile:
    return BadFile(f"{name} is no recording: line {number} cannot be understood, {why}.", hint="Give a recording.")


def malformed(path: Path, number: int, why: str) -> BadFile:
    """The failure of a line that is JSON but not what it must be."""
    return _malformed(plain_line(str(path)), number, plain_line(why, limit=200))


def _opened(path: Path, mode: str) -> IO[str]:
    if mode == "r":
        # What it holds counts, not what it is called: files are renamed, and unpacked by whoever sends them on.
        raw = path.open("rb")
        begins = raw.peek(_MAGIC)[:_MAGIC]
        for magic, program in _OTHER_PACKERS.items():
            if begins.startswith(magic):
                raw.close()
                raise BadFile(
                    f"{plain_line(str(path))} is compressed by {program}, which gpuconsole does not read.",
                    hint=f"Unpack it with {program} -d, or compress it with gzip.",
                )
        packed = begins.startswith(GZIP_MAGIC)
        return io.TextIOWrapper(gzip.GzipFile(fileobj=raw) if packed else raw, encoding="utf-8", errors="replace")
    if path == STANDARD_OUTPUT:
        return open(os.dup(1), mode, encoding="utf-8", errors="replace")
    if path.suffix != _COMPRESSED:
        return path.open(mode, encoding="utf-8", errors="replace")
    return io.TextIOWrapper(gzip.GzipFile(path, "wb", mtime=0), encoding="utf-8", write_through=True)
