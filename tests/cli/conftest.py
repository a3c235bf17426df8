"""Fixtures of the command line's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.cli.engines import US, environment
from tests.rig.engines import Engine
from tests.rig.fixtures import Bench
from tests.rig.terminal import Terminal


@pytest.fixture
def open_terminal(rig_bench: Bench) -> Iterator[Callable[..., Terminal]]:
    """Give a function that runs gpuconsole in a terminal of its own."""
    opened: list[Terminal] = []

    def run(engine: Engine, *arguments: str, columns: int = 80, rows: int = 24, **more: str) -> Terminal:
        env = environment(engine) | {"TERM": "xterm-256color"} | more
        terminal = Terminal([*US, *arguments], env=env, folder=rig_bench.rig.folder, columns=columns, rows=rows)
        opened.append(terminal)
        return terminal

    yield run
    for terminal in opened:
        terminal.close()
