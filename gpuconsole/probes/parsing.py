"""The payload's output read: records told from stray output, and nothing in either believed too far.

What comes out of a container is text from outside: a line may be garbage, endless, not UTF-8, or look like a record
and not be one. Every text leaves here harmless.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from gpuconsole.core.text import plain_line
from gpuconsole.probes.benchresults import BenchResult, BenchStatus
from gpuconsole.probes.records import CheckResult, CheckStatus, Environment, Note, Progress, SeenGpu

SEPARATOR = b"\x1e"
LONGEST_LINE = 256 * 1024
"""A longer one is dropped."""
_LONGEST_TEXT = 2000
_MOST_ITEMS = 200
_DEEPEST = 8

RawRecord = dict[str, Any]


class LineReader:
    """Splits output into records and stray lines, however the pieces arrive."""

    def __init__(self) -> None:
        self._rest = b""
        self._skipping = False

    def feed(self, data: bytes) -> Iterator[RawRecord | str]:
        """Take a piece; gives each record that is now whole, and each stray line as harmless text."""
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest
        for line in lines:
            if self._skipping:
                self._skipping = False
                continue
            yield from _of_line(line)
        if len(self._rest) > LONGEST_LINE:
            # The rest of this line is dropped as it comes, so that an endless one takes no memory.
            if not self._skipping:
                yield f"(a line of more than {LONGEST_LINE // 1024} KiB was left out)"
            self._rest, self._skipping = b"", True

    def close(self) -> Iterator[RawRecord | str]:
        """What is left when the output has ended in the middle of a line."""
        rest, self._rest = self._rest, b""
        if not self._skipping:
            yield from _of_line(rest)


def _of_line(line: bytes) -> Iterator[RawRecord | str]:
    """Stray text before a separator stands on the record's line when the writer did not end its own."""
    stray, *parts = line.split(SEPARATOR)
    for text in (stray, *(part for part in parts if not part.startswith(b"{"))):
        if shown := plain_line(text, limit=400):
            yield shown
    for part in parts:
        if part.startswith(b"{"):
            record = _decode(part)
            yield record if record is not None else plain_line(part, limit=400)


def _decode(text: bytes) -> RawRecord | None:
    try:
        value = json.loads(text.decode("utf-8", "replace"), parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and isinstance(value.get("t"), str) else None


def harmless(value: object, depth: int = 0) -> Any:
    """A JSON value with every text harmless, and not endlessly many or deep."""
    if isinstance(value, str):
        return plain_line(value, limit=_LONGEST_TEXT)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth >= _DEEPEST:
        return None
    if isinstance(value, Mapping):
        items = list(value.items())[:_MOST_ITEMS]
        return {plain_line(str(key), limit=200): harmless(item, depth + 1) for key, item in items}
    if isinstance(value, list):
        return [harmless(item, depth + 1) for item in value[:_MOST_ITEMS]]
    return None


def text_of(record: RawRecord, name: str) -> str:
    """The text under ``name``, harmless; empty when it is no text."""
    value = record.get(name)
    return plain_line(value, limit=_LONGEST_TEXT) if isinstance(value, str) else ""


def number_of(record: RawRecord, name: str) -> float | None:
    """The number under ``name``; None when it is none."""
    value = record.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def result_of(record: RawRecord) -> CheckResult | None:
    """The result a ``check`` record carries; None when it carries none."""
    try:
        status = CheckStatus(text_of(record, "status"))
    except ValueError:
        return None
    value = record.get("value")
    return CheckResult(
        id=text_of(record, "id"),
        code=text_of(record, "code"),
        status=status,
        why=text_of(record, "why"),
        fix=text_of(record, "fix"),
        value=harmless(value) if isinstance(value, dict) else {},
        seconds=number_of(record, "s"),
    )


def bench_of(record: RawRecord) -> BenchResult | None:
    """The measurement a ``bench`` record carries; None when it carries none."""
    try:
        status = BenchStatus(text_of(record, "status"))
    except ValueError:
        return None
    gpu, stat = record.get("gpu"), _mapping(record, "stat")
    peak = number_of(record, "peak_reserved_bytes")
    return BenchResult(
        id=text_of(record, "id"),
        code=text_of(record, "code"),
        status=status,
        rev=int(number_of(record, "rev") or 1),
        params=_mapping(record, "params"),
        device=text_of(record, "device"),
        gpu=tuple(one for one in gpu[:64] if type(one) is int) if isinstance(gpu, list) else (),
        unit=text_of(record, "unit"),
        score=number_of(record, "score"),
        stat={name: number for name, number in stat.items() if type(number) in (int, float)},
        values=_mapping(record, "values"),
        headline=record.get("headline") is True,
        noisy=record.get("noisy") is True,
        cold_s=number_of(record, "cold_s"),
        peak_reserved_bytes=None if peak is None else int(peak),
        began=number_of(record, "began"),
        ended=number_of(record, "ended"),
        why=text_of(record, "why"),
        fix=text_of(record, "fix"),
    )


def progress_of(record: RawRecord) -> Progress:
    """The step a ``progress`` record tells."""
    return Progress(
        id=text_of(record, "id"),
        step=int(number_of(record, "step") or 0),
        of=int(number_of(record, "of") or 0),
        text=text_of(record, "text"),
        elapsed_s=number_of(record, "elapsed_s"),
    )


def note_of(record: RawRecord) -> Note:
    """The line a ``note`` record carries."""
    return Note(text=text_of(record, "text"), stream=text_of(record, "stream") or "stdout", id=text_of(record, "id"))


_TEXTS = (
    "python", "python_path", "torch", "torch_git", "torch_cuda", "torch_archs", "torch_path", "cudnn", "driver",
    "driver_cuda", "os", "kernel", "architecture", "user", "workdir", "taken_at",
)  # fmt: skip
_COUNTS = ("cpus", "memory_bytes", "memory_limit_bytes", "shm_bytes")


def environment_of(facts: RawRecord, known: Environment) -> Environment:
    """``known`` completed by the facts of all ``env`` records together."""
    texts: dict[str, Any] = {name: text_of(facts, name) or None for name in _TEXTS}
    counts: dict[str, Any] = {
        name: None if (number := number_of(facts, name)) is None else int(number) for name in _COUNTS
    }
    gpus = facts.get("gpus")
    return Environment(
        suite=known.suite,
        where=known.where,
        image=known.image,
        image_id=known.image_id,
        container_id=known.container_id,
        **texts,
        **counts,
        cpu_quota=number_of(facts, "cpu_quota"),
        gpus=tuple(_gpu_of(gpu) for gpu in gpus if isinstance(gpu, dict)) if isinstance(gpus, list) else (),
        limits=_mapping(facts, "limits"),
        variables={name: str(value) for name, value in _mapping(facts, "variables").items()},
    )


def _mapping(facts: RawRecord, name: str) -> Mapping[str, Any]:
    value = facts.get(name)
    return harmless(value) if isinstance(value, dict) else {}


def _gpu_of(gpu: RawRecord) -> SeenGpu:
    total, multiprocessors = number_of(gpu, "memory_total_bytes"), number_of(gpu, "multiprocessors")
    return SeenGpu(
        position=int(number_of(gpu, "position") or 0),
        uuid=text_of(gpu, "uuid") or None,
        name=text_of(gpu, "name") or None,
        compute_capability=text_of(gpu, "compute_capability") or None,
        memory_total_bytes=None if total is None else int(total),
        multiprocessors=None if multiprocessors is None else int(multiprocessors),
    )
