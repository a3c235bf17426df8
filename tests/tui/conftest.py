"""What tests of the console get: keys pressed and pauses made last until the console has done what they set off."""

from __future__ import annotations

import pytest

from tests.tui.quiet import idle, watch


@pytest.fixture(autouse=True)
def done_when_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for what was set off, not for a processor that has little to do."""
    watch(monkeypatch)
    for place in ("textual.app", "textual.pilot"):
        monkeypatch.setattr(f"{place}.wait_for_idle", idle)
