"""Kinds of things told apart without importing what describes them."""

from __future__ import annotations

import subprocess
import sys
import types

import pytest

from gpuconsole.services.kinds import is_container, is_image


@pytest.mark.parametrize(("tells", "module"), [(is_container, "containers"), (is_image, "images")])
def test_while_another_thread_imports_it_there_is_none(
    monkeypatch: pytest.MonkeyPatch, tells: object, module: str
) -> None:
    name = f"gpuconsole.services.{module}"
    monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    assert callable(tells)
    assert tells(object()) is False


def test_the_first_picture_needs_nothing_of_the_engine() -> None:
    program = (
        "import sys, gpuconsole.tui.start, gpuconsole.services.desk, gpuconsole.tui.app; "
        "print([name for name in ('docker', 'pydantic', 'tomllib', 'gpuconsole.engine.model', "
        "'gpuconsole.services.containers', 'gpuconsole.images.facts') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
