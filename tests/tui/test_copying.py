"""What is copied, and where to."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input

from gpuconsole.services.runs import Run, RunKind
from gpuconsole.services.tunnels import Server
from gpuconsole.tui.screens.copying import Copy, CopyScreen, copies_of, copy
from gpuconsole.tui.screens.question import Question, QuestionScreen
from gpuconsole.tui.screens.reading import ReadingScreen
from tests.rig.engines import Engine
from tests.rig.nvml import NvmlBox
from tests.rig.tmux import Tmux
from tests.tui.console import console, shown, until


async def test_a_container_s_names_and_lines_are_copied(engine_modern: Engine, nvml: NvmlBox, tmp_path: Path) -> None:
    engine_modern.docker("run", "-d", "--name", "train", "-p", "127.0.0.1::8888", engine_modern.load("small"), "sh",
                         "-c", "sleep 1000", "--token=abc123")  # fmt: skip
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(
            pilot, lambda: any(port.host_port for view in app.containers or () for port in view.container.ports)
        )
        copies = {each.what: each.text for each in copies_of((app.containers or ())[0], server=Server("ws-07", "ada"))}
        assert copies["name"] == "train"
        assert copies["docker exec"] == "docker exec -it train bash"
        assert copies["port 8888"].startswith("ssh -N -L ")
        assert "abc123" not in copies["command"]
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, CopyScreen))
        await pilot.press("down", "enter")
        assert app.clipboard == (app.containers or ())[0].container.id
        assert not isinstance(app.screen, CopyScreen)


@pytest.mark.parametrize("size", [(80, 24), (40, 12)])
async def test_without_a_clipboard_the_text_is_shown_bare(nvml: NvmlBox, tmp_path: Path, size: tuple[int, int]) -> None:
    app = console(f"unix://{tmp_path}/none.sock", tmp_path)
    async with app.run_test(size=size) as pilot:
        app.push_screen(CopyScreen((Copy("line", "[/red] one\ntwo"), Copy("other", "x" * 500))))
        await until(pilot, lambda: isinstance(app.screen, CopyScreen))
        await pilot.pause()
        assert "[/red] one ⏎ two" in shown(app)
        await pilot.press("v")
        await until(pilot, lambda: isinstance(app.screen, ReadingScreen))
        await pilot.pause()
        assert "[/red] one" in shown(app)
        await pilot.press("q", "q")


async def test_inside_tmux_its_buffer_gets_the_text_too(
    nvml: NvmlBox, tmux: Tmux, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmux.session("sh")
    monkeypatch.setenv("TMUX", tmux.environment()["TMUX"])
    app = console(f"unix://{tmp_path}/none.sock", tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        copy(app, "a text to paste")
        await until(pilot, lambda: "a text to paste" in tmux.run("list-buffers"))


def test_a_run_without_a_report_has_less_to_copy() -> None:
    copies = copies_of(Run("r", RunKind.LAUNCH, "pytorch", "sha256:1", 0.0), server=Server("ws-07", "ada"))
    assert [each.what for each in copies] == ["of", "its id"]


async def test_ctrl_c_copies_what_is_selected_answers_no_and_else_leaves(nvml: NvmlBox, tmp_path: Path) -> None:
    app = console(f"unix://{tmp_path}/none.sock", tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("slash", *"words")
        app.screen.query_one("#filter", Input).select_all()
        await pilot.press("ctrl+c")
        assert app.clipboard == "words"
        assert app.is_running
        answers: list[bool | None] = []
        app.push_screen(QuestionScreen(Question("Stop it?", "[/red] now", "Stop")), answers.append)
        await until(pilot, lambda: isinstance(app.screen, QuestionScreen))
        await pilot.press("ctrl+c")
        await until(pilot, lambda: answers == [None])
        app.push_screen(CopyScreen((Copy("line", "one"),)))
        await until(pilot, lambda: isinstance(app.screen, CopyScreen))
        await pilot.press("ctrl+c")
        await until(pilot, lambda: not isinstance(app.screen, CopyScreen))
        app.push_screen(ReadingScreen("Title", "a text to read"))
        await until(pilot, lambda: isinstance(app.screen, ReadingScreen))
        await until(pilot, lambda: app.screen.query("#text Static"))
        app.screen.query_one("#text Static").text_select_all()
        await pilot.press("ctrl+c")
        assert "a text to read" in app.clipboard
        assert app.is_running
        await pilot.press("escape", "escape", "ctrl+c")
        await until(pilot, lambda: not app.is_running)
    assert app.return_code == 0
