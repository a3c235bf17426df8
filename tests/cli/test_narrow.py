"""Terminals of any width: nothing is garbled, nothing is lost, and no line is longer than it must be."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuconsole.cli.tables import Column, table, width_of, wrapped
from tests.cli.engines import start
from tests.rig.engines import Engine
from tests.rig.nvml import GIB, NvmlBox, NvmlState, busy, h200, rtx4090
from tests.rig.terminal import Terminal

COLUMNS = (
    Column("NAME", flexible=True),
    Column("GPU MEM", align="right"),
    Column("CPU", align="right"),
    Column("STATE"),
)
WORDS = st.text(alphabet="abcdefgh 短い0123456789-", min_size=1, max_size=60)


@given(st.lists(st.tuples(WORDS, WORDS, WORDS, WORDS), min_size=1, max_size=4), st.integers(1, 200))
def test_a_table_fits_any_terminal_or_its_rows_are_stacked(rows: list[tuple[str, ...]], width: int) -> None:
    text = table(COLUMNS, rows, width=width)
    assert max(width_of(line) for line in text.splitlines()) <= max(width, 12)
    if "GPU MEM" not in text.splitlines()[0]:  # stacked: then every character is there
        shown = "".join(text.split())
        for row in rows:
            for cell in row:
                assert "".join(cell.split()) in shown


@given(WORDS, st.integers(1, 120), st.sampled_from(["", "  ", "→ "]))
def test_wrapped_text_keeps_every_word_and_fits(text: str, width: int, first: str) -> None:
    lines = wrapped(text, width, first=first, rest="  ")
    assert lines
    assert "".join(
        "".join(line.removeprefix(first) if i == 0 else line for i, line in enumerate(lines)).split()
    ) == "".join(text.split())
    assert max(width_of(line) for line in lines) <= max(width, 10)
    whole = wrapped(text, width, whole_words=True)
    assert " ".join(whole).split() == text.split()


def test_a_stacked_row_names_its_cells() -> None:
    text = table(COLUMNS, [("llama-42", "130.2 GiB", "99 %", "running")], width=20)
    assert text.splitlines() == ["NAME llama-42", "  GPU MEM 130.2 GiB", "  CPU 99 %", "  STATE running"]


def lines_of(terminal: Terminal) -> list[str]:
    return [line.rstrip("\r") for line in terminal.text.split("\n")]


def longer(lines: list[str], columns: int) -> list[str]:
    """Lines that do not fit, though they could have been wrapped."""
    return [line for line in lines if width_of(line) > columns and len(line.split()) > 2]


@pytest.mark.engine
@pytest.mark.parametrize("columns", [1, 20, 43])
@pytest.mark.parametrize("command", ["ps", "images", "doctor", "status", "check"])
def test_every_table_on_a_narrow_terminal(
    engine_modern: Engine, open_terminal: Callable[..., Terminal], nvml_box: NvmlBox, columns: int, command: str
) -> None:
    nvml_box.write(NvmlState(gpus=(busy(h200(0)), rtx4090(1, used_bytes=17 * GIB))))
    start(engine_modern, "a-container-with-a-long-name", "--label", "gpuconsole.user=root")
    arguments = {"check": ["check", "a-container-with-a-long-name"]}.get(command, [command])
    terminal = open_terminal(engine_modern, *arguments, columns=columns, NO_COLOR="1", **nvml_box.env())
    code = terminal.wait()
    lines = lines_of(terminal)
    assert code == (1 if command in ("doctor", "check") and code else 0), terminal.text
    assert "wrong inside" not in terminal.text
    assert longer(lines, max(columns, 20)) == []
    words = {"ps": "a-container-with-a-long-name", "images": "gpuconsole-test/small", "doctor": "tmux",
             "status": "unattributed", "check": "python"}[command]  # fmt: skip
    if columns >= 20:
        assert words in "".join(terminal.text.split())
