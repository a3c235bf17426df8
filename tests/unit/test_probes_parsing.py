"""Output of a container read: whatever is in it, records are told from noise and nothing gets through unharmed."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuconsole.core.document import document
from gpuconsole.probes import parsing
from gpuconsole.probes.parsing import LONGEST_LINE, LineReader, RawRecord
from gpuconsole.probes.records import CheckStatus, Environment


def read(*pieces: bytes) -> list[RawRecord | str]:
    """All that a reader makes of ``pieces``."""
    reader = LineReader()
    items = [item for piece in pieces for item in reader.feed(piece)]
    return items + list(reader.close())


def line(**fields: object) -> bytes:
    """A record as the payload writes it."""
    return b"\x1e" + json.dumps(fields).encode() + b"\n"


def test_records_and_stray_lines_are_told_apart() -> None:
    output = b"banner\n" + line(t="hello") + b"NCCL INFO something\n" + line(t="bye")
    assert read(output) == ["banner", {"t": "hello"}, "NCCL INFO something", {"t": "bye"}]


def test_a_record_behind_stray_text_without_an_end_is_found() -> None:
    assert read(b"50 %" + line(t="bye")) == ["50 %", {"t": "bye"}]


def test_two_records_on_one_line_are_two() -> None:
    assert read(line(t="a")[:-1] + line(t="b")) == [{"t": "a"}, {"t": "b"}]


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x1e{not json}\n",
        b'\x1e{"t": 7}\n',
        b'\x1e{"no": "type"}\n',
        b'\x1e["t"]\n',
        b"\x1e\n",
        b"\x1e{\n",
        b"\x1e" + b'{"t":' * 2000 + b"\n",
        b'\x1e{"t": "x", "n": ' + b"9" * 6000 + b"}\n",
        b'\x1e{"t": "\xff\xfe',
    ],
)
def test_garbage_behind_the_separator_is_no_record(garbage: bytes) -> None:
    items = read(garbage, line(t="bye"))
    assert {"t": "bye"} in items or garbage.endswith(b"\xfe")
    assert not [item for item in items if isinstance(item, dict) and item != {"t": "bye"}]


def test_what_is_not_utf_8_or_would_move_the_cursor_becomes_harmless() -> None:
    assert read(b"\x1b[2J\xff\xferesult\x07 \xe2\x80\xaetxt.exe\n") == ["\ufffd\ufffdresult txt.exe"]


def test_a_line_without_end_takes_no_memory_and_the_next_is_read() -> None:
    reader = LineReader()
    items: list[RawRecord | str] = []
    for _ in range(100):
        items += reader.feed(b"x" * 65536)
        assert len(reader._rest) <= LONGEST_LINE + 65536
    items += reader.feed(b"the end of it\n" + line(t="bye"))
    assert items == ["(a line of more than 256 KiB was left out)", {"t": "bye"}]


@given(st.lists(st.binary(max_size=60) | st.sampled_from([b"\x1e", b"\n", line(t="x", n=1), b"\x1e{"]), max_size=12))
def test_how_the_output_is_cut_does_not_matter(pieces: list[bytes]) -> None:
    whole = b"".join(pieces)
    assert read(*pieces) == read(whole) == read(*(whole[i : i + 1] for i in range(len(whole))))


@given(st.binary(max_size=400))
def test_no_bytes_break_it_and_no_control_character_gets_through(data: bytes) -> None:
    for item in read(data):
        if isinstance(item, str):
            assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in item)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)
FIELDS = ["id", "code", "status", "value", "why", "fix", "s", "step", "of", "text", "elapsed_s", "stream"]


@given(st.dictionaries(st.sampled_from(FIELDS), JSON))
def test_a_record_of_any_types_is_read_and_can_be_written(record: RawRecord) -> None:
    parsing.progress_of(record)
    parsing.note_of(record)
    found = parsing.result_of(record)
    if found is not None:
        document("check", checks=[found])


@given(st.dictionaries(st.text(max_size=8) | st.sampled_from(["gpus", "limits", "variables", "cpus", "torch"]), JSON))
def test_an_environment_of_any_types_is_read_and_can_be_written(facts: RawRecord) -> None:
    document("check", environment=parsing.environment_of(facts, Environment(where="container x")))


def test_a_result_is_read_whole() -> None:
    found = parsing.result_of(
        {
            "t": "check",
            "id": "check.shm",
            "code": "C15",
            "status": "warn",
            "value": {"shm_bytes": 67108864, "worst": math.inf, "words": "a\x1b[31mb"},
            "why": "64 \x1b[1mMiB",
            "fix": "more\nof it",
            "s": 0.4,
        }
    )
    assert found is not None
    assert (found.id, found.code, found.status, found.seconds) == ("check.shm", "C15", CheckStatus.WARN, 0.4)
    assert found.value == {"shm_bytes": 67108864, "worst": None, "words": "ab"}
    assert (found.why, found.fix) == ("64 MiB", "more of it")


def test_a_status_nobody_knows_is_no_result() -> None:
    assert parsing.result_of({"t": "check", "id": "check.shm", "status": "splendid"}) is None


def test_the_environment_keeps_what_was_known_beforehand() -> None:
    known = Environment(suite="1", where="container train", image="pytorch", image_id="sha256:1", container_id="2")
    gpu = {"position": 0, "uuid": "u", "name": "NVIDIA H200", "memory_total_bytes": 1.5e11}
    found = parsing.environment_of({"torch": "2.9.0", "cpus": 8, "gpus": [gpu, "nonsense"], "image": "forged"}, known)
    assert (found.where, found.image, found.torch, found.cpus) == ("container train", "pytorch", "2.9.0", 8)
    assert [(seen.name, seen.memory_total_bytes) for seen in found.gpus] == [("NVIDIA H200", 150000000000)]
