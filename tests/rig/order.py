"""The order of files when several workers share them: the long ones first, so that none of them is begun last."""

from __future__ import annotations

from collections import Counter

import pytest

_SECONDS = {"tests/engine": 2.0, "tests/cli": 1.0, "tests/tui": 1.5, "tests/payload": 2.0}
"""How long a test of a folder takes, roughly; the others take next to nothing."""
_WITH_AN_ENGINE_S = 1.5


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort files by what their tests are likely to take; within a file the order stays."""
    if not hasattr(config, "workerinput"):  # this is no worker of several
        return
    total: Counter[str] = Counter()
    for item in items:
        total[_file(item)] += _milliseconds(item)
    items.sort(key=lambda item: (-total[_file(item)], _file(item)))


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _milliseconds(item: pytest.Item) -> int:
    usual = next((seconds for folder, seconds in _SECONDS.items() if item.nodeid.startswith(f"{folder}/")), 0.02)
    return round(1000 * (usual + (_WITH_AN_ENGINE_S if item.get_closest_marker("engine") else 0)))
