"""Log output made harmless while it streams."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuconsole.core.text import plain
from gpuconsole.services.logtext import LineCleaner

OBEYED = [chr(code) for code in (*range(0, 9), 11, 12, *range(14, 32), *range(127, 160))]


def clean(*chunks: bytes, timestamps: bool = False) -> str:
    cleaner = LineCleaner(timestamps=timestamps)
    return "".join(line for chunk in chunks for line in cleaner.feed(chunk)) + "".join(cleaner.finish())


def test_lines_come_when_they_are_whole() -> None:
    cleaner = LineCleaner()
    assert cleaner.feed(b"one\ntw") == ["one\n"]
    assert cleaner.partial == "tw"
    assert cleaner.feed(b"o\n") == ["two\n"]
    assert cleaner.partial == ""
    assert cleaner.finish() == []


def test_a_partial_last_line_is_not_lost() -> None:
    assert clean(b"a\nb") == "a\nb\n"


def test_a_progress_bar_shows_its_last_state() -> None:
    cleaner = LineCleaner()
    assert cleaner.feed(b"\r 10%\r 20%") == []
    assert cleaner.partial == " 20%"
    assert cleaner.feed(b"\r\x1b[K 30%\r\ndone\n") == [" 30%\n", "done\n"]


def test_characters_and_escapes_cut_by_chunks_are_put_together() -> None:
    assert clean("grün\n".encode()[:3], "grün\n".encode()[3:]) == "grün\n"
    assert clean(b"a\x1b", b"[3", b"1mred\x1b[", b"0m\n") == "ared\n"


def test_bytes_that_are_not_utf8_are_marked() -> None:
    assert clean(b"a\xff\xfeb\n\xc3") == "a��b\n�\n"


@pytest.mark.parametrize(
    "hostile",
    [
        b"\x1b]0;title\x07",
        b"\x1b[2J",
        b"\x9b2J",
        b"\xc2\x9b2J",
        b"\x1b]52;c;aGk=\x1b\\",
        b"\x1bP+q\x1b\\",
        b"\x00\x08\x7f",
    ],
)
def test_what_a_terminal_would_obey_is_gone(hostile: bytes) -> None:
    text = clean(b"before " + hostile + b" after\n")
    assert text.startswith("before")
    assert text.endswith("after\n")
    assert not any(char in text for char in OBEYED)


def test_markup_is_left_alone() -> None:
    assert clean(b"[/foo] [red] [@click=app.quit]\n") == "[/foo] [red] [@click=app.quit]\n"


def test_a_long_line_stays_whole_and_the_memory_bounded() -> None:
    cleaner = LineCleaner()
    pieces = [piece for _ in range(100) for piece in cleaner.feed(b"x" * 20_000)]
    assert len(cleaner.partial) < 300_000
    assert "".join([*pieces, *cleaner.finish()]) == "x" * 2_000_000 + "\n"


def test_an_escape_at_the_seam_of_a_long_line_is_still_removed() -> None:
    cleaner = LineCleaner()
    text = "".join(cleaner.feed(b"x" * 300_000 + b"\x1b[3")) + "".join(cleaner.feed(b"1my\n"))
    assert text == "x" * 300_000 + "y\n"


def test_a_progress_bar_without_end_needs_no_memory() -> None:
    cleaner = LineCleaner()
    for step in range(20_000):
        cleaner.feed(f"\r{step:6d}/20000 {'#' * 60}".encode())
    assert cleaner.partial == f" 19999/20000 {'#' * 60}"
    assert len(cleaner._pending) < 100_000


def test_timestamps_survive_a_progress_bar() -> None:
    stamp = b"2026-01-02T03:04:05.123456789Z "
    assert clean(stamp + b"10%\r20%\n" + stamp + b"x\n", timestamps=True) == (
        "2026-01-02T03:04:05.123456789Z 20%\n2026-01-02T03:04:05.123456789Z x\n"
    )


def test_timestamps_within_a_line_of_several_entries_go() -> None:
    stamp = b"2026-01-02T03:04:05.123456789Z "
    assert clean(stamp + b"a" * 10, stamp + b"b" * 10 + b"\n", timestamps=True) == (
        "2026-01-02T03:04:05.123456789Z aaaaaaaaaabbbbbbbbbb\n"
    )


@given(st.binary(max_size=300), st.lists(st.integers(min_value=0, max_value=300), max_size=6))
def test_how_the_output_is_cut_into_chunks_changes_nothing(data: bytes, cuts: list[int]) -> None:
    bounds = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    chunks = [data[start:end] for start, end in itertools.pairwise(bounds)]
    text = clean(*chunks)
    assert text == clean(data)
    assert not any(char in text for char in OBEYED)


@given(st.text(alphabet="ab\r\n\x1b[31mK ", max_size=80))
def test_it_says_what_plain_says(text: str) -> None:
    lines = clean(text.encode()).split("\n")
    expected = [plain(line) for line in text.split("\n")]
    assert [line for line in lines if line] == [line for line in expected if line]
