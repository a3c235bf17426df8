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
from tests.tui.in_tmux import CALM, PATIENCE_S, Seat, seat, wait

MOST_KEYS = 10
RECORDING = "GPUCONSOLE_YARDSTICK_RECORDING"
_NAMES = {"\r": "enter", "\x02": "ctrl+b", "\x1b": "esc"}


class Person:
    """Types, counts the keys, and keeps what was seen after each."""

    def __init__(self, tmux: Tmux, desk: Seat, terminal: Terminal) -> None:
        self._tmux = tmux
        self._desk = desk
        self._terminal = terminal
        self.keys: list[str] = []
        self._recording: list[str] = []

    def press(self, key: str, why: str) -> None:
        """Press one key."""
        self.keys.append(_NAMES.get(key, key))
        self._note(f"key {len(self.keys)}: {self.keys[-1]}  ({why})")
        self._terminal.send(key)

    def see(self, *words: str, seconds: float = PATIENCE_S) -> str:
        """Wait until the window in front shows the words; what it shows."""
        wait(lambda: all(word in self._front() for word in words), what=f"{words}", seconds=seconds, shown=self._front)
        shown = self._front()
        self._note(shown.rstrip())
        return shown

    def verdict(self) -> str:
        """Wait until the check in the list of runs has ended; its state."""

        def states() -> list[str]:
            return [line.split()[2] for line in self._front().splitlines() if line.split()[:1] == ["check"]]

        wait(lambda: set(states()) & {"ok", "warn", "failed"}, what="the end of the check", seconds=3 * PATIENCE_S,
             shown=self._front)  # fmt: skip
        self._note(self._front().rstrip())
        return states()[0]

    def _front(self) -> str:
        return self._tmux.run("capture-pane", "-p", "-t", f"{self._session()}:")

    def _session(self) -> str:
        return self._tmux.run("display-message", "-p", "-t", self._desk.pane.id, "#{session_id}").strip()

    def _note(self, text: str) -> None:
        self._recording.append(text)

    def write(self, path: Path) -> None:
        """Write the recording."""
        path.write_text("\n\n".join([*self._recording, f"{len(self.keys)} keys: {' '.join(self.keys)}"]) + "\n")


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
        person = Person(tmux, desk, terminal)
        person.see("✓ free", "No containers yet")
        person.press("n", "launch a container")
        person.see("pytorch", "docker run")
        person.press("\r", "as it is proposed")
        person.see("leaves it running")
        person.press("\x02", "tmux:")
        person.press("p", "back to the console")
        person.see("[Containers 1]", "pytorch-")
        person.press("c", "check it")
        person.press("4", "how it went")
        assert person.verdict() == "failed"
        person.press("1", "the containers")
        person.see("[Containers 1]", "pytorch-")
        person.press("a", "join it")
        person.see("leaves it running")
        assert len(person.keys) <= MOST_KEYS, person.keys
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
def test_two_keys_to_a_green_check(tmux: Tmux, engine_modern: Engine, nvml_box: NvmlBox, tmp_path: Path) -> None:
    options = ("-dit", "--name", "train", "--shm-size", "8g", "-v", f"{tmp_path}:/workspace", "-w", "/workspace")
    engine_modern.docker("run", *options, engine_modern.load("pytorch"), "sh")
    desk = seat(tmux, engine_modern.host, nvml_box, tmp_path)
    terminal = tmux.attach(desk.pane, columns=80, rows=24)
    try:
        desk.start()
        person = Person(tmux, desk, terminal)
        person.see("[Containers 1]", "train")
        person.press("c", "check it")
        person.press("4", "how it went")
        assert person.verdict() == "ok", tmux.run("capture-pane", "-p", "-t", desk.pane.id)
        desk.pane.keys("q")
        assert desk.left() == 0
    finally:
        terminal.close()
