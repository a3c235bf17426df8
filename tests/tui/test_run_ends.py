"""A check under way is seen wherever one looks, and is remembered as cut short when its console ends, however."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from gpuconsole.probes.records import AskedGpu, AskedGpus
from gpuconsole.services.cancelling import Cancellation
from gpuconsole.services.probeturn import alone_on_gpus
from gpuconsole.services.session import Session
from tests.rig.engines import Engine
from tests.rig.gpus import TWO_GPUS
from tests.rig.nvml import NvmlBox
from tests.rig.nvml.presets import h200
from tests.rig.nvml.state import NvmlState
from tests.rig.tmux import Tmux
from tests.tui.in_tmux import PATIENCE_S, seat, wait


def _line(shown: str, word: str) -> str:
    return next((line for line in shown.splitlines() if word in line), "")


@pytest.mark.parametrize("how", ["q", "SIGTERM", "SIGKILL"])
def test_a_check_that_ends_with_its_console_is_remembered_so(
    tmux: Tmux, engine_modern: Engine, nvml_box: NvmlBox, tmp_path: Path, how: str
) -> None:
    engine_modern.docker("run", "-d", "--name", "train", engine_modern.load("pytorch"), "sleep", "1000")
    person = seat(tmux, engine_modern.host, nvml_box, tmp_path)
    pid = person.start()
    person.pane.wait_for("train")
    assert "●" not in person.pane.capture()
    person.pane.keys("c")
    wait(lambda: "● check" in _line(person.pane.capture(), "train"), what="its row says so", shown=person.pane.capture)
    assert "●1" in _line(person.pane.capture(), "[Containers 1]")
    person.pane.keys("4")
    wait(lambda: "%" in _line(person.pane.capture(), "check "), what="it goes on", shown=person.pane.capture)
    assert "[Runs 1] ●1" in person.pane.capture()
    if how == "q":
        person.pane.keys("q")
    else:
        os.kill(pid, getattr(signal, how))
    person.left()
    person.pane.send("stty sane")
    person.pane.keys("C-j")  # what was killed has left the terminal as it needed it
    person.start()
    person.pane.keys("4")
    wait(lambda: "cancelled" in _line(person.pane.capture(), "check "), what="its row", seconds=PATIENCE_S,
         shown=person.pane.capture)  # fmt: skip
    told = _line(person.pane.capture(), "check ")
    assert "Cut short" in told or "was cancelled" in told, told
    assert "●" not in person.pane.capture()
    person.pane.keys("Enter")
    page = person.pane.wait_for("began")
    assert ("nobody saw its end" in page) == (how == "SIGKILL")


@pytest.mark.parametrize("then", ["cancel", "go on"])
def test_a_check_beside_another_of_that_gpu_says_for_whom_it_waits(
    tmux: Tmux, engine_modern: Engine, nvml_box: NvmlBox, tmp_path: Path, then: str
) -> None:
    gpu = TWO_GPUS[0]
    nvml_box.write(NvmlState(gpus=tuple(h200(each.index, uuid=each.uuid, minor=each.minor) for each in TWO_GPUS)))
    image = engine_modern.load("pytorch")
    engine_modern.docker(
        "run", "-d", "--name", "train", "--device", f"nvidia.com/gpu={gpu.uuid}", image, "sleep", "999"
    )
    asked = AskedGpus.of((AskedGpu(gpu.uuid, index=gpu.index),))
    person = seat(tmux, engine_modern.host, nvml_box, tmp_path, columns=120)
    with alone_on_gpus(Session(), "the benchmark of other", lambda: asked, print, cancel=Cancellation()):
        person.start()
        person.pane.wait_for("train")
        person.pane.keys("c", "4")
        words = f"waits for GPU {gpu.index}: the benchmark of other (process {os.getpid()})"
        wait(lambda: words in person.pane.capture(), what="what it waits for", shown=person.pane.capture)
        if then == "cancel":
            person.pane.keys("x")
            person.pane.wait_for("cancelled")
            assert "The check of train was cancelled" in _line(person.pane.capture(), "check ")
    if then == "go on":
        wait(lambda: "%" in _line(person.pane.capture(), "check "), what="it goes on", shown=person.pane.capture)
        assert "waits for" not in _line(person.pane.capture(), "check ")
