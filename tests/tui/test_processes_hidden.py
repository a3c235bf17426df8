"""The console in a container of its own, where the host's processes cannot be seen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpuconsole.host import processes
from gpuconsole.tui.screens.details import ProcessDetails
from gpuconsole.tui.screens.gpu import GpuScreen
from gpuconsole.tui.screens.subjects import GpuSubject
from tests.rig.nvml import GIB, GpuProcess, NvmlBox
from tests.tui.console import console, shown, until


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_that_processes_cannot_be_seen_from_here_is_said_once(
    nvml: NvmlBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    monkeypatch.setattr(processes, "_INITIAL_PID_NAMESPACE", "pid:[1]")  # as seen from within another one
    listed = tuple(GpuProcess(pid, GIB) for pid in (os.getpid(), 4_100_001, 4_100_002))
    nvml.change_gpu(0, processes=listed)
    app = console(f"unix://{tmp_path}/none.sock", tmp_path)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.host_view and app.host_view.gpus[0].holders)
        assert "--pid=host" not in shown(app), "of containers and images it says nothing"
        await pilot.press("3")
        await until(pilot, lambda: "4100002" in shown(app))
        text = " ".join(shown(app).split())
        assert text.count("does not see the host's processes") == 1
        assert "start its container with --pid=host" in text
        assert "pytest" not in text, "a pid that means something else here is not looked up"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ProcessDetails))
        assert "--pid=host" in shown(app)
        await pilot.press("escape")
        assert app.host_view is not None
        await app.push_screen(GpuScreen(GpuSubject(app, app.host_view.gpus[0])))
        await until(pilot, lambda: "3.0 G" in every_line(app))
        assert "not to be seen here, 3 processes" in " ".join(every_line(app).split())


def every_line(app: object) -> str:
    """What the parts of the screen of a GPU say, also below its edge."""
    from gpuconsole.tui.app import ConsoleApp
    from gpuconsole.tui.widgets.lines import Lines

    assert isinstance(app, ConsoleApp)
    return "\n".join("".join(cell.text for cell in line) for line in app.screen.query_one("#more", Lines).lines)
