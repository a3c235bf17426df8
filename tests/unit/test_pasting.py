"""Pastes: their lines find their places, and nothing in them is taken for keys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._keyboard_protocol import FUNCTIONAL_KEYS
from textual._xterm_parser import XTermParser

from gpuconsole.tui.pasting import PasteParser
from gpuconsole.tui.present.launchform import Shape
from gpuconsole.tui.present.pasted import taken


@pytest.mark.parametrize(
    ("shape", "text", "line", "more"),
    [
        (Shape.WORDS, "python train.py \\\n  --lr 0.1 \\\r\n  --epochs 3\n", "python train.py --lr 0.1 --epochs 3", ()),
        (Shape.WORDS, "pyth\\\ron a.py", "python a.py", ()),
        (Shape.WORDS, "A=1\rB=2\r\rC=3", "A=1 B=2 C=3", ()),
        (Shape.WORDS, " --lr 0.1", " --lr 0.1", ()),
        (Shape.LINES, "/a:/a\n  /b:/b\n\n/c:/c:ro\n", "/a:/a", ("/b:/b", "/c:/c:ro")),
        (Shape.ONE, "train\nother", "train", ("other",)),
        (Shape.ONE, "\n\x1b[31mtrain\x1b[0m\n", "train", ()),
        (Shape.ONE, "\n \n", "", ()),
    ],
)
def test_lines_find_their_places(shape: Shape, text: str, line: str, more: tuple[str, ...]) -> None:
    assert taken(text, shape) == (line, more)


@pytest.mark.parametrize("size", [1, 2, 5, 7, 64, 10**6])
def test_a_paste_is_one_text_whatever_is_in_it(size: int) -> None:
    lines = [f"line {n} \x1b[31mred\x1b[0m and \x1b]0;title\x07 and \x1b\x1bq {'x' * 40}" for n in range(30)]
    sent = f"a\x1b[200~{chr(13).join(lines)}\x1b\x1b[201~b\x1b[200~\x1b[201~\x1b[A"
    parser = PasteParser()
    found = [each for at in range(0, len(sent), size) for each in parser.feed(sent[at : at + size])]
    keys = [each.key for each in found if isinstance(each, events.Key)]
    pastes = [each.text for each in found if isinstance(each, events.Paste)]
    assert keys == ["a", "b", "up"]
    assert "\x1b" not in "".join(pastes)
    assert pastes[0].count("\r") == 29
    assert all(f"line {n} " in pastes[0] for n in range(30))


def heard(parser: XTermParser, sent: str) -> list[str]:
    """What is heard of what was sent, once nothing more comes."""
    found = list(parser.feed(sent))
    if parser._timeout_time is not None:
        parser._timeout_time = 0.0
    found += parser.tick()
    return [repr(each) for each in found]


def keys(sent: str) -> list[str]:
    """Keys heard of what was sent."""
    return [each.key for each in PasteParser().feed(sent) if isinstance(each, events.Key)]


PIECES = [
    "\x1b", "\x1b[", "\x1b[<", "\x1b]", "\x1bO", "\x1b\\", "\x07", "\x00", "0", "9", "97", "48", "2048", "99999999999",
    "٣", ":", ";", "-", "?", "a", "é", "日", "\ufffd", "\x9b", "u", "~", "A", "M", "m", "R", "t", "$y", "200~", "201~",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=20).map("".join) | st.text(min_size=1, max_size=40))
def test_whatever_a_terminal_sends_ends_nothing(sent: str) -> None:
    parser = PasteParser()
    heard(parser, sent)
    heard(parser, f"{' ' * 40}\x1b[200~\x1b[201~")  # out of whatever was begun
    assert [each.key for each in parser.feed("q") if isinstance(each, events.Key)] == ["q"]


KNOWN = [
    *ANSI_SEQUENCES_KEYS,
    *(f"\x1b[{key[:-1]};{held}{key[-1]}" for key in FUNCTIONAL_KEYS for held in ("", "1", "2", "5", "7")),
    *(f"\x1b[{code};{held};{code}u" for code in range(33, 127) for held in (1, 2, 5)),
    "\x1b", "\x1ba", "\x1bO", "\x1b[", "\x1b]", "\x1bP", "\x1b[<0;3;4M", "\x1b[<0;3;4m", "\x1b[<64;3;4M", "\x1b[M !!",
    "\x1b[I", "\x1b[O", "\x1b[?2026;2$y", "\x1b[?2048;0$y", "\x1b[48;24;80;480;800t", "\x1b[12;5R",
]  # fmt: skip


def test_every_key_and_report_that_is_known_is_heard_as_before() -> None:
    assert [sent for sent in KNOWN if heard(PasteParser(), sent) != heard(XTermParser(), sent)] == []


@pytest.mark.parametrize(
    ("sent", "key"),
    [
        ("\x1b[97:65u", "a"),
        ("\x1b[1092::97u", "ф"),
        ("\x1b[97:65;1;97u", "a"),
        ("\x1b[97;1:1;97u", "a"),
        ("\x1b[97;1:2;97u", "a"),
        ("\x1b[1;1:1A", "up"),
        ("\x1b[1;5:1A", "ctrl+up"),
        ("\x1b[3;1:1~", "delete"),
        ("\x1b[97;1:3u", None),
        ("\x1b[1;1:3A", None),
    ],
)
def test_keys_with_all_that_kitty_can_say_of_them(sent: str, key: str | None) -> None:
    assert keys(f"{sent}q") == [*([key] if key else []), "q"]


@pytest.mark.parametrize(
    "answer",
    [
        "\x1b[?62;22c",
        "\x1b[>0;276;0c",
        "\x1b[>4;1m",
        "\x1b[0n",
        "\x1b[?1u",
        "\x1b[4;480;800t",
        "\x1b[99999999999;1u",
        "\x1b]11;rgb:1414/1717/1b1b\x1b\\",
        "\x1b]11;rgb:1414/1717/1b1b\x07",
        "\x1bP>|tmux 3.3a\x1b\\",
        "\x1bP1+r544e=787465726d2d323536636f6c6f72\x1b\\",
        "\x1b_Gi=31;OK\x1b\\",
    ],
)
def test_answers_that_another_program_waited_for_press_no_keys(answer: str) -> None:
    assert keys(f"a{answer}b{answer}\x1b[A") == ["a", "b", "up"]


ANSWERS = [
    "\x1b]11;rgb:1c1c/1c1c/1c1c\x1b\\",
    "\x1b]10;rgb:ffff/ffff/ffff\x07",
    "\x1bP>|XTerm(379)\x1b\\",
    "\x1b_Gi=31;OK\x1b\\",
]


@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_that_comes_in_pieces_presses_no_keys(answer: str) -> None:
    for first in range(3, len(answer)):
        parser = PasteParser()
        sent = f"a{answer}b"
        found = [*parser.feed(sent[: first + 1]), *parser.tick(), *parser.feed(sent[first + 1 :])]
        assert [each.key for each in found if isinstance(each, events.Key)] == ["a", "b"], first


@pytest.mark.parametrize("ticks", [True, False])
def test_an_answer_whose_rest_does_not_come_is_dropped_and_the_next_key_is_heard(
    monkeypatch: pytest.MonkeyPatch, ticks: bool
) -> None:
    now = [100.0]
    monkeypatch.setattr("gpuconsole.tui.pasting.time.monotonic", lambda: now[0])
    parser = PasteParser()
    found = [*parser.feed("a\x1b]11;rgb:1c1c/"), *parser.tick()]
    now[0] += 0.6
    found += [*parser.feed("1")]  # of the answer, as far as anybody can know
    now[0] += 0.6
    found += [*parser.tick()] if ticks else []
    found += [*parser.feed("b")]
    assert [each.key for each in found if isinstance(each, events.Key)] == ["a", "b"]
