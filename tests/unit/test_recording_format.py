"""Recordings as files: what is written is read again, what is no recording is said to be none."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuconsole.core.document import jsonable
from gpuconsole.core.errors import BadFile, ConsoleError, ExitCode, NotFound, UsageError
from gpuconsole.core.revive import revive, written_types
from gpuconsole.engine.model import Container, EngineInfo, Image
from gpuconsole.gpu.model import Gpu, GpuProcess, GpuSnapshot
from gpuconsole.host.facts import LaunchFacts
from gpuconsole.host.model import HostView
from gpuconsole.host.recording import RecordingWriter, read_recording, sample
from gpuconsole.services.containers import ContainerView
from gpuconsole.services.feed import EngineLink
from gpuconsole.services.images import ImageView
from gpuconsole.services.replayfile import load
from gpuconsole.services.runs import Run, RunKind

KINDS = [HostView, ContainerView, ImageView, EngineInfo, EngineLink, Run, LaunchFacts, Container, Image, Gpu]
HEADER: dict[str, Any] = {"type": "header", "format": "gpuconsole-recording", "version": 1, "began_at": 1.0, "gpus": []}


SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(st.characters(codec="ascii", categories=("L", "N", "P")), max_size=8),
    float: st.floats(allow_nan=False, allow_infinity=False, min_value=-1e15, max_value=1e15),
    int: st.integers(-(2**60), 2**60),
    bool: st.booleans(),
    type(None): st.none(),
}
SIMPLE[Any] = st.recursive(
    st.one_of(*SIMPLE.values()), lambda items: st.lists(items) | st.dictionaries(SIMPLE[str], items), max_leaves=4
)


def any_of(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of a kind; fields with a default now have it and now do not, derived ones always."""
    parts = [part for part in get_args(kind) if part is not ...]
    if kind in SIMPLE:
        return SIMPLE[kind]
    if is_dataclass(kind):
        hints = written_types(kind)  # type: ignore[arg-type]  # mypy knows no class to be hashable here
        every = {name: any_of(hint) for name, hint in hints.items()}
        needed = {each.name: every[each.name] for each in fields(kind) if required(each)}
        make: Callable[..., Any] = kind  # type: ignore[assignment]
        return st.one_of(st.builds(make, **every), st.builds(make, **needed))
    if get_origin(kind) is tuple:
        if ... in get_args(kind):
            return st.lists(any_of(parts[0]), max_size=3).map(tuple)
        return st.tuples(*(any_of(part) for part in parts))
    if get_origin(kind) in (Union, UnionType):
        return st.one_of(*(any_of(part) for part in parts))
    if parts:
        return st.dictionaries(any_of(parts[0]), any_of(parts[1]), max_size=3)
    return st.sampled_from(list(kind))


def required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_kind_of_thing_comes_back_as_it_was(kind: type, data: st.DataObject) -> None:
    thing = data.draw(any_of(kind))
    written = json.loads(json.dumps(jsonable(thing)))
    assert jsonable(revive(kind, written)) == jsonable(thing)
    assert jsonable(revive(kind, written | {"of_tomorrow": {"a": [1]}})) == jsonable(thing)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_is_missing_and_has_no_default_is_named(kind: Any) -> None:
    needed = [each.name for each in fields(kind) if required(each)]
    if not needed:
        assert revive(kind, {}) == kind()
        return
    with pytest.raises(ValueError, match=f"{needed[0]} is missing"):
        revive(kind, {})


@pytest.mark.parametrize("wrong", [None, 3, "text", [], [1], True, {"index": "first"}, {"index": 0, "migs": 7}])
def test_what_does_not_fit_is_told_by_its_place(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"^Gpu"):
        revive(Gpu, wrong)


@pytest.mark.parametrize("number", [2**63, -(2**63), 10**400, float("inf"), float("nan"), 1e300])
@pytest.mark.parametrize("kind", [int, float])
def test_a_number_beyond_everything_that_is_counted_is_malformed(kind: Any, number: float) -> None:
    if abs(number) == 2**63 and kind is float:
        assert revive(float, number) == number
        return
    with pytest.raises(ValueError, match="is not a"):
        revive(kind, number)


@pytest.mark.parametrize("number", [2**63, 10**400])
@pytest.mark.parametrize("name", [each.name for each in fields(Gpu) if written_types(Gpu)[each.name] == int | None])
def test_a_recording_with_such_a_number_is_a_bad_file(tmp_path: Path, name: str, number: int) -> None:
    with pytest.raises(ValueError, match=f"^Gpu.{name} is not a whole number"):
        revive(Gpu, {"index": 0, "uuid": None, "name": "H200", name: number})
    host = jsonable(HostView(GpuSnapshot(1.0)))
    host["snapshot"]["gpus"] = [{"index": 0, "uuid": None, "name": "H200", name: number}]
    path = written(tmp_path / "a.jsonl", HEADER, {"type": "host", "t": 0.0, "view": host})
    with pytest.raises(BadFile):
        load(path)


def test_text_in_a_recording_is_made_harmless() -> None:
    gpu = revive(Gpu, {"index": 0, "uuid": None, "name": "H\x1b[31m200\x1b]0;title\x07", "problem": "a‮b"})
    assert (gpu.name, gpu.problem) == ("H200", "ab")
    assert revive(Image, {"id": "a\nb\tc\r\nd", "labels": {"x\ny": "\x1b[1mz"}}) == Image(
        "a b c d", labels={"x y": "z"}
    )


def test_documents_and_output_keep_their_form(tmp_path: Path) -> None:
    view = jsonable(HostView(snapshot=GpuSnapshot(taken_at=1.0)))
    run = jsonable(Run("1", RunKind.CHECK, "a\nb", "id", 1.0, document='{\n "checks": []\n}'))
    lines = (
        {"type": "host", "t": 0, "view": view},
        {"type": "runs", "t": 1, "runs": [run]},
        {"type": "log", "t": 2, "id": "x", "channel": "stdout", "stamp": "", "text": "a\tb   c\x1b[2J\nd"},
    )
    _, runs, output = load(written(tmp_path / "x.jsonl", HEADER, *lines)).events
    assert json.loads(runs.body[0].document) == {"checks": []}
    assert "\n" in runs.body[0].document
    assert runs.body[0].subject == "a b"
    assert output.body.text == "a\tb   c d"


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_lines_are_read_as_they_were_written_and_repetitions_left_out(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    writer = RecordingWriter(path)
    gpu = Gpu(index=0, uuid="GPU-1", name="H200", memory_used_bytes=5, processes=(GpuProcess(7, 5),))
    snapshot = GpuSnapshot(taken_at=1000.0, gpus=(gpu,), driver_version="580")
    writer.header(snapshot, began_at=1000.0, interval_s=1.0, host="gpu-box")
    writer.line("sample", 0.0, sample(snapshot))
    for t in (0.5, 1.5):
        writer.news("link", t, {"link": {"connected": True}})
    writer.news("link", 2.5, {"link": {"connected": False}})
    writer.close()
    lines = [data for _, data in read_recording(path)]
    assert [line["type"] for line in lines] == ["header", "sample", "link", "link"]
    assert lines[0]["gpus"][0]["uuid"] == "GPU-1"
    assert lines[1]["gpus"][0]["processes"] == [{"pid": 7, "memory_bytes": 5}]
    assert lines[1]["host"]["memory_total_bytes"] > 0
    assert [line["t"] for line in lines[1:]] == [0.0, 0.5, 2.5]


def written(path: Path, *lines: object) -> Path:
    text = "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
    path.write_bytes(text.encode(errors="surrogateescape"))
    return path


def folder(path: Path) -> Path:
    path.mkdir()
    return path


def raw(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def garbled(path: Path) -> Path:
    path.write_bytes(gzip.compress(b'{"type":"header"}\n' * 500)[:60] + b"\0" * 400)
    return path


BAD: dict[str, Callable[[Path], Path]] = {
    "empty": lambda path: written(path),
    "no JSON": lambda path: written(path, "what is this"),
    "a list": lambda path: written(path, [1, 2]),
    "no header": lambda path: written(path, {"type": "sample", "t": 0}),
    "another format": lambda path: written(path, HEADER | {"format": "asciinema"}),
    "a newer version": lambda path: written(path, HEADER | {"version": 2}),
    "a version that is none": lambda path: written(path, HEADER | {"version": [1]}),
    "a line in the middle that is none": lambda path: written(path, HEADER, "{{{", {"type": "sample", "t": 1}),
    "a line without type": lambda path: written(path, HEADER, {"t": 1}),
    "infinite numbers": lambda path: written(path, HEADER, '{"type":"host","t":Infinity}'),
    "a time before the start": lambda path: written(path, HEADER, {"type": "link", "t": -1, "link": {}}),
    "a time beyond all": lambda path: written(path, HEADER, {"type": "link", "t": 1e300, "link": {}}),
    "a beginning that is none": lambda path: written(path, HEADER | {"began_at": "yesterday"}),
    "a host that is none": lambda path: written(path, HEADER, {"type": "host", "t": 1, "view": [1]}),
    "an unknown container": lambda path: written(path, HEADER, {"type": "containers", "t": 1, "views": [{"id": "a"}]}),
    "a list that is none": lambda path: written(path, HEADER, {"type": "runs", "t": 1, "runs": 3}),
    "deep nesting": lambda path: written(path, HEADER, "[" * 100_000),
    "bytes that are no text": lambda path: written(path, "\0\1\udcff" * 100),
    "a folder": folder,
    "a pipe": pipe,
    "compressed by zstd": lambda path: raw(path, b"\x28\xb5\x2f\xfd" + b"\0" * 90),
    "compressed by xz": lambda path: raw(path, lzma.compress(json.dumps(HEADER).encode())),
    "compressed by bzip2": lambda path: raw(path, bz2.compress(json.dumps(HEADER).encode())),
    "a program": lambda path: raw(path, Path("/bin/sh").read_bytes()),
    "a line without an end": lambda path: raw(path, json.dumps(HEADER).encode() + b"\n" + b"x" * (17 * 2**20)),
    "hostile words": lambda path: written(path, HEADER | {"format": "\x1b]0;x\x07\x1b[2J[red]"}),
    "GPU memory alone": lambda path: written(path, HEADER, {"type": "sample", "t": 1, "gpus": []}),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_is_no_recording_of_the_console_is_said_in_a_sentence(tmp_path: Path, kind: str) -> None:
    with pytest.raises(BadFile) as caught:
        load(BAD[kind](tmp_path / "some file.jsonl"))
    assert caught.value.exit_code is ExitCode.BAD_FILE
    assert "some file.jsonl" in caught.value.message
    assert caught.value.hint
    assert caught.value.message.isprintable()


def test_a_compressed_file_that_is_damaged_is_a_bad_file(tmp_path: Path) -> None:
    with pytest.raises(BadFile):
        load(garbled(tmp_path / "x.gz"))


def test_standard_input_is_no_place_to_go_to_and_fro_in() -> None:
    with pytest.raises(UsageError, match="standard input") as caught:
        load(Path("-"))
    assert caught.value.hint


@pytest.mark.parametrize("long", [False, True])
def test_what_went_back_in_time_is_played_in_the_order_of_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, long: bool
) -> None:
    if long:
        monkeypatch.setattr("gpuconsole.services.replayfile.LONG", 0)
    view = jsonable(HostView(snapshot=GpuSnapshot(taken_at=1.0)))
    times = [0, 1, 2, 1.5, 0.5, 3, 2.5]
    path = written(tmp_path / "x.jsonl", HEADER, *({"type": "host", "t": t, "view": view} for t in times))
    assert [event.at for event in load(path).events] == sorted(times)
    assert load(path).length_s == 3


@pytest.mark.parametrize("long", [False, True])
def test_one_is_known_to_be_compressed_by_what_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, long: bool
) -> None:
    if long:
        monkeypatch.setattr("gpuconsole.services.replayfile.LONG", 0)
        monkeypatch.setattr("gpuconsole.services.replayfile.LONG_PACKED", 0)
    view = jsonable(HostView(snapshot=GpuSnapshot(taken_at=1.0)))
    plain = written(tmp_path / "plain.gz", HEADER, {"type": "host", "t": 1, "view": view})
    packed = raw(tmp_path / "packed.jsonl", gzip.compress(plain.read_bytes()))
    assert [*load(plain).events] == [*load(packed).events]


def test_a_file_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        load(tmp_path / "none.jsonl")


@pytest.mark.parametrize("compressed", [False, True])
def test_a_recording_that_was_cut_off_is_read_up_to_the_cut(tmp_path: Path, compressed: bool) -> None:
    view = jsonable(HostView(snapshot=GpuSnapshot(taken_at=1.0)))
    lines = [json.dumps(HEADER), *(json.dumps({"type": "host", "t": t, "view": view}) for t in range(200))]
    whole = "\n".join(lines).encode()
    path = tmp_path / ("cut.jsonl.gz" if compressed else "cut.jsonl")
    path.write_bytes(gzip.compress(whole)[:-40] if compressed else whole[:-40])
    recording = load(path)
    assert 0 < len(recording.events) < 200


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConsoleError, match="cannot be written") as caught:
        RecordingWriter(tmp_path / "no folder" / "x.jsonl")
    assert caught.value.hint


def test_lines_of_kinds_that_are_not_known_are_passed_over(tmp_path: Path) -> None:
    view = jsonable(HostView(snapshot=GpuSnapshot(taken_at=1.0)))
    path = written(
        tmp_path / "x.jsonl", HEADER, {"type": "of tomorrow", "t": "?"}, {"type": "host", "t": 1, "view": view}
    )
    assert [event.kind for event in load(path).events] == ["host"]
