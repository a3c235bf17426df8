"""A fault of our own is told with what to do about it, and with nothing that was done already."""

from __future__ import annotations

import pytest

from gpuconsole.cli.front import _unforeseen
from gpuconsole.core.errors import ExitCode


@pytest.mark.parametrize("debug", [False, True])
def test_debug_is_advised_where_it_was_not_given(capsys: pytest.CaptureFixture[str], debug: bool) -> None:
    assert _unforeseen(RuntimeError("why"), debug=debug) == ExitCode.INTERNAL
    told = capsys.readouterr().err
    assert "RuntimeError: why" in told
    assert ("--debug" in told) is not debug
    assert "report" in told.lower()
