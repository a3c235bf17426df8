"""News that come faster than the console can hear them: the newest counts, and nothing that is told once is lost."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from gpuconsole.gpu.state import MemoryState
from gpuconsole.tui import messages
from tests.rig.nvml import NvmlBox
from tests.tui.console import looks_no_more, until
from tests.tui.test_alarms import bells, hear, look, quiet_console, said


@pytest.mark.parametrize("told_at", range(4))
async def test_a_failure_is_heard_at_whichever_of_many_looks_that_wait_it_was_seen(
    nvml: NvmlBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told_at: int
) -> None:
    app = quiet_console(tmp_path)
    rung = bells(app, monkeypatch)
    heard: list[Any] = []
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await looks_no_more(pilot, app)
        await hear(app, pilot)
        monkeypatch.setattr(app.alarming, "host_looked", _also(app.alarming.host_looked, heard))
        for place in range(8):  # all at once: the console is busy with something else
            failed = (said(MemoryState.FAILED, eta_s=None),) if place == told_at else ()
            app.post_message(messages.HostLooked(look(*failed, at=time.time() + place / 10)))
        await pilot.pause()
        await until(pilot, lambda: rung)
        assert rung == ["bell"]
        assert len(heard) < 8, "of looks that tell nothing once only the newest is heard"


def _also(told: Any, heard: list[Any]) -> Any:
    def both(view: Any) -> None:
        heard.append(view)
        told(view)

    return both
