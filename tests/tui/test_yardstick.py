"""The yardstick: at 80×24 in tmux, from a free GPU to a launched, checked and joined container in ten keys at most.

A person's own terminal is attached to tmux, and every key goes through it, those for tmux too. Set
GPUCONSOLE_YARDSTICK_RECORDING to a file to have each key and what was seen after it written there.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.rig.engines import Engine
from tests.rig.nvml import NvmlBox
from tests.rig.terminal import Terminal
from tests.rig.tmux import Tmux
from tests.tui.in_tmux import CALM, Seat, seat, wait
from tests.tui.person import Person, from_a_free_gpu

RECORDING = "GPUCONSOLE_YARDSTICK_RECORDING"


def at(tmux: Tmux, desk: Seat, terminal: Terminal) -> Person:
    """A person at the terminal."""

    def front() -> str:
        session = tmux.run("display-message", "-p", "-t", desk.pane.id, "#{session_id}").strip()
        return tmux.run("capture-pane", "-p", "-t", f"{session}:")

    return Person(front, terminal.send)


@pytest.mark.timeout(900)
def test_from_a_free_gpu_to_a_checked_and_joined_container(
    tmux: Tmux, engine_modern: Engine, nvml_box: NvmlBox, tmp_path: Path
) -> None:
    """The rig's torch is a CPU build, and its check must say so; a green one is below."""
    engine_modern.only("pytorch")
    project = tmp_path / "project"
    project.mkdir()
    desk = seat(tmux, engine_modern.host, nvml_box, project)
    before = desk.sane()
    terminal = tmux.attach(desk.pane, columns=80, rows=24)
    try:
        desk.start()
        person = at(tmux, desk, terminal)
        from_a_free_gpu(person, verdicts=("failed",))
        (name,) = engine_modern.docker("ps", "--format", "{{.Names}}").stdout.split()
        told = engine_modern.docker("inspect", "-f", "{{json .HostConfig.DeviceRequests}}", name).stdout
        assert "nvidia.com/gpu=" in told, told
        if os.environ.get(RECORDING):
            person.write(Path(os.environ[RECORDING]))
        print(f"{len(person.keys)} keys: {' '.join(person.keys)}")
        for key in ("\x1d", "\x11"):
            terminal.send(key)
        wait(lambda: "[Containers" in desk.pane.capture(), what="the console")
        desk.pane.keys("q")
        assert desk.left() == 0
        assert desk.modes == CALM
        assert desk.sane() == before
    finally:
        terminal.close()


@pytest.mark.timeout(900)
def test_two_keys_to_a_check_that_fails_nothing(
    tmux: Tmux, engine_modern: Engine, nvml_box: NvmlBox, tmp_path: Path
) -> None:
    options = ("-dit", "--name", "train", "--shm-size", "8g", "-v", f"{tmp_path}:/workspace", "-w", "/workspace")
    engine_modern.docker("run", *options, engine_modern.load("pytorch"), "sh")
    desk = seat(tmux, engine_modern.host, nvml_box, tmp_path)
    terminal = tmux.attach(desk.pane, columns=80, rows=24)
    try:
        desk.start()
        person = at(tmux, desk, terminal)
        person.see("[Containers 1]", "train")
        person.press("c", "check it")
        person.press("4", "how it went")
        # Nothing failed; what this machine has to say of its clock and its few processors is no fault of the container.
        assert person.verdict() in ("ok", "warn"), tmux.run("capture-pane", "-p", "-t", desk.pane.id)
        desk.pane.keys("q")
        assert desk.left() == 0
    finally:
        terminal.close()
