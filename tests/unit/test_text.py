"""Text from outside is harmless after core.text, and sizes read and write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuconsole.core.text import duration, gib, parse_size, plain, plain_line, shorten, size

HOSTILE = {
    "window title": ("\x1b]0;PWNED\x07name", "name"),
    "clipboard write": ("a\x1b]52;c;ZXZpbA==\x1b\\b", "ab"),
    "clear screen": ("\x1b[2J\x1b[Htext", "text"),
    "colour": ("\x1b[31;1mred\x1b[0m", "red"),
    "C1 CSI": ("\x9b2Jtext", "text"),
    "C1 OSC": ("\x9d0;title\x9cok", "ok"),
    "DCS": ("\x1bPq#0;2;0;0;0\x1b\\after", "after"),
    "unterminated OSC hides no later line": ("\x1b]0;evil\nnext line", "\nnext line"),
    "full reset": ("\x1bcok", "ok"),
    "charset switch": ("\x1b(0lqk", "lqk"),
    "cut CSI": ("text\x1b[", "text"),
    "lone escape": ("text\x1b", "text"),
    "BEL, NUL, DEL": ("a\x07b\x00c\x7fd", "abcd"),
    "right-to-left override": ("photo_\u202egnp.exe", "photo_gnp.exe"),
    "isolates and zero width": ("\u2066a\u2069\u200bb\ufeff", "ab"),
    "tag characters": ("x\U000e0041y", "xy"),
    "progress bar": (" 10%\r 50%\r100%", "100%"),
    "progress bar, then a cleared line": (" 10%\r 50%\r", " 50%"),
    "windows line ends": ("a\r\nb\r\n", "a\nb\n"),
    "backspaces": ("ab\x08c", "ac"),
    "markup stays as it is": ("[/x] img[sha256:abc] [@click=app.quit]", "[/x] img[sha256:abc] [@click=app.quit]"),
    "other scripts stay": ("日本語 – naïve é 👩‍💻", "日本語 – naïve é 👩‍💻"),
}


@pytest.mark.parametrize(("dirty", "clean"), HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_is_shown_inert(dirty: str, clean: str) -> None:
    assert plain(dirty) == clean


@given(st.text(alphabet=st.one_of(st.characters(), st.sampled_from("\x1b\x9b\x9d\x90[]0;m\x07\\\r\n\x08 a"))))
def test_no_input_leaves_anything_a_terminal_obeys(text: str) -> None:
    result = plain(text)
    assert not [char for char in result if (ord(char) < 32 and char not in "\n\t") or 127 <= ord(char) < 160]
    result.encode("utf-8")


@given(st.binary())
def test_any_bytes_become_one_line(data: bytes) -> None:
    line = plain_line(data)
    assert "\n" not in line
    assert line == plain_line(line)


def test_invalid_utf8_and_lone_surrogates_can_be_printed() -> None:
    assert plain(b"caf\xe9") == "caf\ufffd"
    assert plain("caf\udce9") == "caf?"


def test_a_line_is_bounded() -> None:
    assert len(plain_line("x" * 90_000)) == 4096
    assert plain_line("a\n b\t\tc") == "a b c"
    assert shorten("abcdef", 4) == "abc…"
    assert shorten("abc", 0) == ""


@pytest.mark.parametrize(
    ("count", "text"),
    [(None, "–"), (0, "0 B"), (512, "512 B"), (64 * 2**20, "64 MiB"), (1536 * 2**20, "1.5 GiB"), (2**60, "1024 PiB")],
)
def test_sizes_name_their_unit(count: int | None, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize(
    ("text", "count"),
    [("8g", 8 * 2**30), ("512m", 512 * 2**20), ("1.5 GiB", 3 * 2**29), ("1048576", 2**20), ("64MB", 64 * 2**20)],
)
def test_sizes_are_read_as_docker_reads_them(text: str, count: int) -> None:
    assert parse_size(text) == count


@pytest.mark.parametrize("text", ["", "g", "8x", "-1g", "0", "1e9", "8 g g", "NaN"])
def test_what_is_no_size_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(ValueError, match=r"not (a size|above zero)"):
        parse_size(text)


@given(st.integers(min_value=1, max_value=2**50))
def test_a_printed_size_reads_back_within_its_precision(count: int) -> None:
    back = parse_size(size(count))
    assert abs(back - count) <= count * 0.06


def test_gib_and_durations() -> None:
    assert gib(None) == "–"
    assert gib(3 * 2**29) == "1.5"
    assert [duration(s) for s in (None, 0, 89, 90, 5399, 5400, 172799, 172800)] == [
        "–", "0 s", "89 s", "2 min", "90 min", "2 h", "48 h", "2 d",
    ]  # fmt: skip
