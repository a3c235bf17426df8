"""Pastes: their lines find their places, and nothing in them is taken for keys."""

from __future__ import annotations

import pytest
from textual import events

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
