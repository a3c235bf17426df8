"""Benchmark runs given away and taken in: without what names a machine and its people, and never trusted."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import stat
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpuconsole.core.errors import BadFile, Conflict, NotFound
from gpuconsole.core.text import plain_line, size
from gpuconsole.probes.benchrecords import BenchRun, Origin
from gpuconsole.services.anonymous import StandIns
from gpuconsole.services.benchstore import BenchStore, document_of, run_of

SCHEMA = "gpuconsole.bench/1"
LARGEST_BYTES = 16 << 20
_MOST_RESULTS = 5000
_DEEPEST = 12
_LONGEST = 4000
_TOO_LARGE = 1e300
_TOO_LARGE_WHOLE = 2**63
_LAST_SECOND = 4e9
_ID = re.compile(r"[0-9a-f]{8}")
_PCI = re.compile(r"\b[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]\b")
_ENVIRONMENT = (
    "suite", "image", "python", "torch", "torch_git", "torch_cuda", "cudnn", "driver", "driver_cuda", "os", "kernel",
    "architecture", "cpus", "cpu_quota", "memory_bytes", "memory_limit_bytes", "shm_bytes", "limits", "variables",
    "gpus", "taken_at",
)  # fmt: skip
"""What is told of where it ran: all that bears on speed, and nothing that names a container, a user or a folder."""
_ANOTHER = "another process"
_HIDDEN = "…"
_WORD = re.compile(r"[\w.+:-]{1,40}")
_QUAD = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b")
_TOLD = frozenset({"why", "fix", "unknown", "words", "sentence", "because"})
"""What is told in sentences, where four numbers with dots are an address and no version."""


def shared_document(run: BenchRun, *, stand_ins: StandIns | None = None, salt: bytes | None = None) -> dict[str, Any]:
    """``run`` as it may be given away: its figures, and of the machine what bears on them.

    Host, user, container, image of one's own, paths, addresses and notes are not in it; the UUIDs of GPUs are hashes
    that are different in each document, so that they tell siblings apart and nothing else.
    """
    names, salt = stand_ins or StandIns(), salt or secrets.token_bytes(16)
    body = document_of(run)
    environment = body["environment"]
    body["environment"] = {name: environment[name] for name in _ENVIRONMENT}
    body["environment"]["where"] = run.environment.where.partition(" ")[0] if run.subject_id else "this machine"
    body["environment"]["kernel"] = ".".join((run.environment.kernel or "").split(".")[:2]) or None
    for gpu in (*body["environment"]["gpus"], *body["machine"]["gpus"]):
        gpu["uuid"] = _hashed(gpu["uuid"], salt)
    for record in body["benchmarks"]:
        record["contended_by"] = [_ANOTHER for _ in record["contended_by"]]
        if record["contended"]:
            said, told = record["verdict"]["words"], f"not judged: {_ANOTHER} used the GPU"
            record["verdict"]["words"] = told
            if said and body["headline"]:  # which may repeat it as its reason
                body["headline"]["because"] = [text.replace(said, told) for text in body["headline"]["because"]]
        record |= {name: _words_alone(record[name]) for name in ("values", "params")}
    body |= {"subject": body["environment"]["where"], "subject_id": "", "notes": [], "shared": True}
    named = [name for name in (run.subject, run.environment.where.partition(" ")[2]) if run.subject_id and name]
    cleaned: dict[str, Any] = _without(names.clean(body), named)
    return cleaned


def _words_alone(data: Any) -> Any:
    """Figures and single words; what a sentence of strangers may say is left out."""
    if isinstance(data, dict):
        return {name: _words_alone(value) for name, value in data.items()}
    if isinstance(data, list):
        return [_words_alone(item) for item in data]
    return data if not isinstance(data, str) or _WORD.fullmatch(data) else _HIDDEN


def _hashed(uuid: str | None, salt: bytes) -> str | None:
    """Of the bare UUID: torch leaves ``GPU-`` out."""
    if uuid is None:
        return None
    return f"gpu-{hashlib.sha256(salt + uuid.lower().removeprefix('gpu-').encode()).hexdigest()[:16]}"


def _without(data: Any, named: list[str], key: str = "") -> Any:
    """Names of the subject and addresses that no stand-in knows taken out of every text."""
    if isinstance(data, dict):
        return {name: _without(value, named, name) for name, value in data.items()}
    if isinstance(data, list):
        return [_without(item, named, key) for item in data]
    if not isinstance(data, str):
        return data
    data = _PCI.sub(_HIDDEN, data)
    if key not in _TOLD:
        return data
    for name in named:
        data = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", _HIDDEN, data)
    return _QUAD.sub(_HIDDEN, data)


def read_run(path: Path | None) -> BenchRun:
    """The run in a file that ``bench --json`` or ``bench export`` wrote; None reads standard input.

    Raises:
        NotFound: There is no such file.
        BadFile: It cannot be read, is too large, or holds no benchmark run; the words name the place.
    """
    name = "standard input" if path is None else plain_line(str(path))
    data = _parsed(_read(path, name), name)
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != SCHEMA:
        told = f"its schema is {plain_line(str(schema), limit=60)!r}" if schema is not None else "it has no schema"
        raise _bad(name, f"it holds no benchmark run: {told} instead of {SCHEMA!r}")
    try:
        _bounded(data)
        run = run_of(data)
        _sensible(run)
    except ValueError as error:
        raise _bad(name, plain_line(str(error), limit=300)) from error
    return replace(run, origin=Origin.IMPORTED)


def _bad(name: str, why: str) -> BadFile:
    return BadFile(
        f"{name} cannot be read as a benchmark run: {why}.",
        hint="Take a file that 'gpuconsole bench export' or 'gpuconsole bench --json' wrote.",
    )


def _read(path: Path | None, name: str) -> bytes:
    try:
        if path is None:
            data = sys.stdin.buffer.read(LARGEST_BYTES + 1)
        else:
            if not stat.S_ISREG(path.stat().st_mode):
                raise _bad(name, "it is no regular file")
            with path.open("rb") as file:
                data = file.read(LARGEST_BYTES + 1)
    except FileNotFoundError as error:
        raise NotFound(f"There is no file {name}.", hint="'gpuconsole bench export -o FILE' writes one.") from error
    except (OSError, ValueError) as error:
        why = plain_line(getattr(error, "strerror", None) or str(error))
        raise BadFile(f"{name} cannot be read: {why}.", hint="Choose another file.") from error
    if len(data) > LARGEST_BYTES:
        raise _bad(name, f"it is larger than {size(LARGEST_BYTES)}")
    return data


def _parsed(data: bytes, name: str) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no number")

    try:
        return json.loads(data.decode(), parse_constant=refuse)
    except json.JSONDecodeError as error:
        raise _bad(name, f"it is no JSON (line {error.lineno}: {error.msg})") from error
    except UnicodeDecodeError as error:
        raise _bad(name, "it is no text in UTF-8") from error
    except RecursionError as error:
        raise _bad(name, "it is nested too deep") from error
    except ValueError as error:
        raise _bad(name, plain_line(str(error), limit=200)) from error


def _bounded(data: Any, where: str = "", depth: int = 0) -> None:
    """See that nothing in it is beyond what any run has.

    Raises:
        ValueError: Something is.
    """
    if depth > _DEEPEST:
        raise ValueError(f"{where} is nested too deep")
    if isinstance(data, dict):
        for name, value in data.items():
            _bounded(name, f"a name in {where or 'it'}", depth)
            _bounded(value, f"{where}.{plain_line(name, limit=60)}".lstrip("."), depth + 1)
    elif isinstance(data, list):
        if len(data) > _MOST_RESULTS:
            raise ValueError(f"{where} has more than {_MOST_RESULTS} items")
        for place, value in enumerate(data):
            _bounded(value, f"{where}[{place}]", depth + 1)
    elif isinstance(data, str) and len(data) > _LONGEST:
        raise ValueError(f"{where} is longer than {_LONGEST} characters")
    elif isinstance(data, int | float) and not abs(data) < (_TOO_LARGE_WHOLE if isinstance(data, int) else _TOO_LARGE):
        raise ValueError(f"{where} is too large a number")


def _sensible(run: BenchRun) -> None:
    """See that what is calculated with can be.

    Raises:
        ValueError: Something cannot.
    """
    if not _ID.fullmatch(run.run):
        raise ValueError("run is no id of eight hexadecimal digits")
    if run.mode not in ("quick", "full"):
        raise ValueError("mode is neither quick nor full")
    if not 0 <= run.taken_at < _LAST_SECOND:
        raise ValueError("taken_at is no time of this age")
    for place, record in enumerate(run.benchmarks):
        if not record.id.startswith("bench."):
            raise ValueError(f"benchmarks[{place}].id is no benchmark's name")
        if record.better not in ("higher", "lower"):
            raise ValueError(f"benchmarks[{place}].better is neither higher nor lower")
        if record.score is not None and record.score < 0:
            raise ValueError(f"benchmarks[{place}].score is below zero")


def take_in(store: BenchStore, run: BenchRun) -> bool:
    """Keep an imported run; False when it was there already.

    Raises:
        Conflict: It is one of this machine's own, or another run has its id.
        BadFile: The records cannot be written.
    """
    try:
        known = store.find(run.run)
    except NotFound:
        store.keep(run)
        return True
    if known.origin is Origin.HERE:
        raise Conflict(
            f"The run {run.run} was made here: it is remembered as it was measured.",
            hint=f"Compare it by its id: gpuconsole bench compare {run.run} last.",
        )
    if known == run:
        return False
    raise Conflict(
        f"Another imported run has the id {run.run}.", hint="Compare the file itself: gpuconsole bench compare FILE."
    )
