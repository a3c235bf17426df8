"""What stands in for modules that take long to import gives what they give."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuconsole.core.document import jsonable, text_of
from gpuconsole.core.jsontext import indented, parsed
from gpuconsole.core.later import Later
from gpuconsole.core.threads import Gate, begin
from gpuconsole.gpu.names import short_name
from gpuconsole.gpu.nvml.readings import _SHARED_MEMORY, _shares_memory
from gpuconsole.host.cgroup import container_ids
from gpuconsole.services.secrets import _is_name, _script_follows

texts = st.text(max_size=12) | st.text(st.characters(min_codepoint=0, max_codepoint=0x2FFFF), max_size=6)
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=12,
)


@given(documents, st.booleans(), st.sampled_from([1, 2, 4]))
def test_json_is_written_as_the_module_writes_it(document: Any, ascii_only: bool, indent: int) -> None:
    expected = json.dumps(document, indent=indent, ensure_ascii=ascii_only, allow_nan=False)
    assert indented(document, indent=indent, ascii_only=ascii_only) == expected


@given(documents, st.booleans(), st.none() | st.integers(0, 2), st.text(" \t\n\r", max_size=2))
def test_json_is_read_as_the_module_reads_it(document: Any, ascii_only: bool, indent: int | None, around: str) -> None:
    text = f"{around}{json.dumps(document, indent=indent, ensure_ascii=ascii_only)}{around}"
    try:
        content = text.encode()
    except UnicodeEncodeError:  # half of a pair, which cannot be in a file
        return
    assert repr(parsed(content)) == repr(json.loads(text))


NO_JSON = [
    b"", b" ", b"{", b"[1,]", b"{'a': 1}", b"nul", b"1 2", b'{"a"}', b'"\x01"', b"\xff", b"\xef\xbb\xbf1", b"[" * 99999,
    b"01", b"1.", b'"', b'{"a": 1,}', b"\x00",
]  # fmt: skip


@pytest.mark.parametrize("content", NO_JSON)
def test_what_is_no_json_is_refused_as_by_the_module(content: bytes) -> None:
    for read in (parsed, lambda content: json.loads(content.decode())):
        with pytest.raises((ValueError, RecursionError)):
            read(content)


@given(st.binary(max_size=8) | st.text('[]{}:,"1e-.nulltrue \\', max_size=8).map(str.encode))
def test_whatever_lies_there_is_read_as_by_the_module(content: bytes) -> None:
    found = []
    for read in (parsed, lambda content: json.loads(content.decode())):
        try:
            found.append(repr(read(content)))
        except ValueError:
            found.append("no JSON")
    assert found[0] == found[1]


def test_where_the_scanner_is_missing_the_module_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "_json", None)
    assert parsed(b' {"a": [1, null]} ') == {"a": [1, None]}
    with pytest.raises(ValueError, match="Expecting"):
        parsed(b"[")


def test_where_the_scanner_asks_for_more_the_module_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is private to json, and a later Python may want something else of who uses it."""

    def make_scanner(context: Any) -> Any:
        return context.something_new

    monkeypatch.setattr("_json.make_scanner", make_scanner)
    assert parsed(b' {"a": [1, null]} ') == {"a": [1, None]}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), [{"a": float("inf")}]])
def test_json_has_no_number_that_is_not_finite(value: Any) -> None:
    for indent in (None, 2):
        with pytest.raises(ValueError, match=r"JSON"):
            text_of({"a": value}, indent=indent)


def test_what_has_no_form_in_json_is_refused() -> None:
    for value in (object(), {1: 2}, b"x", {"a": {None: 1}}):
        with pytest.raises(TypeError):
            indented(value, indent=2, ascii_only=False)
    assert text_of({"name": "\udcff"}) == json.dumps({"name": "\udcff"}, indent=2)


class Odd(Mapping[str, int]):
    """A mapping that is no dict."""

    def __getitem__(self, key: str) -> int:
        return {"a": 1}[key]

    def __iter__(self) -> Any:
        return iter("a")

    def __len__(self) -> int:
        return 1


def test_every_mapping_is_an_object() -> None:
    assert jsonable([Odd(), MappingProxyType({"b": (2,)})]) == [{"a": 1}, {"b": [2]}]
    with pytest.raises(TypeError):
        jsonable(object())


words = st.sampled_from(
    ["NVIDIA", "GeForce", "RTX", "4090", "H200", "Generation", "GB10", "Orin", "x", "Ada", "Thor_2"]
)


@given(st.lists(words, min_size=1, max_size=5).map(" ".join))
def test_names_are_shortened_as_by_a_pattern(name: str) -> None:
    # Where one of these words follows another, the pattern ate the blank between them; no GPU is called so.
    if not re.search(r"(GeForce|NVIDIA) Generation", name):
        short = re.sub(r"^NVIDIA\s+|GeForce\s+|\s+Generation$", "", name).strip() or name
        assert short_name(name) == short


boards = st.sampled_from(
    [*_SHARED_MEMORY, *map(str.title, _SHARED_MEMORY), "GB10", "GB100", "NVIDIA", "Thors", "x", "é"]
)


@given(st.lists(st.tuples(boards, st.sampled_from([" ", "", "-", "_", "/", "\u00a0", "é"])), max_size=4))
def test_boards_of_shared_memory_are_found_as_by_a_pattern(parts: list[tuple[str, str]]) -> None:
    name = "".join(word + between for word, between in parts)
    assert _shares_memory(name) is bool(re.search(rf"\b({'|'.join(_SHARED_MEMORY)})\b", name, re.IGNORECASE))


@given(st.text("-_abcZ1. =é\n", max_size=8))
def test_options_are_told_as_by_patterns(text: str) -> None:
    assert _script_follows(text) is bool(re.fullmatch(r"-[a-z]*c", text))
    assert _is_name(text) is bool(re.fullmatch(r"-{0,2}[A-Za-z_][\w.-]*", text))


ID = r"[0-9a-f]{64}"
SEGMENT = re.compile(rf"(?:(?:docker|libpod(?:-payload)?|cri-containerd|crio|nerdctl)-({ID})(?:\.scope)?)|({ID})")
HELPER = re.compile(rf"(?:libpod|crio)-conmon-{ID}(?:\.scope)?|conmon")
segments = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["", "docker-", "libpod-", "libpod-payload-", "libpod-conmon-", "crio-", "crio-conmon-",
                         "nerdctl-", "cri-containerd-", "pod-", "docker"]),
        st.sampled_from(["a" * 64, "0f" * 32, "A" * 64, "a" * 63, "a" * 65, "conmon", "system.slice", ""]),
        st.sampled_from(["", ".scope", ".slice", ".scope.scope"]),
    ),
)  # fmt: skip


@given(st.lists(segments, min_size=1, max_size=4))
def test_containers_are_found_in_groups_as_by_patterns(path: list[str]) -> None:
    found: list[str] = []
    if not any(HELPER.fullmatch(each) for each in path):
        found = [match[1] or match[2] for each in path if (match := SEGMENT.fullmatch(each))]
    assert container_ids(f"0::/{'/'.join(path)}\n") == tuple(dict.fromkeys(found))


def test_a_gate_lets_everybody_through_once_it_is_open() -> None:
    gate, through = Gate(), []
    assert not gate.wait(0.01)
    threads = [threading.Thread(target=lambda: through.append(gate.wait())) for _ in range(8)]
    for thread in threads:
        thread.start()
    openers = [threading.Thread(target=gate.open) for _ in range(4)]
    for thread in openers:
        thread.start()
    for thread in (*threads, *openers):
        thread.join(timeout=60)
    assert through == [True] * 8
    gate.open()
    assert gate.wait(0)
    assert gate.wait()


@pytest.mark.parametrize("loaded", ["import threading", "pass"])
@pytest.mark.parametrize("bare", [True, False])
def test_a_thread_does_its_work_and_holds_up_no_end(bare: bool, loaded: str) -> None:
    code = (
        f"{loaded}\nimport sys, time\nfrom gpuconsole.core.threads import Gate, begin\ngate = Gate()\n"
        f"def work():\n    gate.open()\n    time.sleep(600)\nbegin(work, name='mine', bare={bare})\n"
        "print(gate.wait(60), 'threading' in sys.modules)"
    )
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["True", str(not bare or loaded != "pass")]
    assert time.monotonic() - began < 60


def test_where_threads_have_names_it_is_seen() -> None:
    gate = Gate()

    def work() -> None:
        gate.wait()

    begin(work, name="seen-here", bare=True)
    assert any(each.name == "seen-here" for each in threading.enumerate())
    gate.open()


def test_what_is_imported_later_is_the_module() -> None:
    later: Any = Later("json")
    assert later.dumps is json.dumps
    with pytest.raises(AttributeError):
        _ = later.nothing_of_the_kind
