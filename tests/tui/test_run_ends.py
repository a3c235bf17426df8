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
from tests.tui.in_tmux import seat, wait


def _line(shown: str, word: str) -> str:
    return next((line for line in shown.splitlines() if word in line), "")


@pytest.mark.parametrize("how", ["q", "SIGTERM", "SIGKILL"])
def test_a_check_that_ends_with_its_console_is_remembered_so(
    tmux: Tmux, engine_modern: Engine, nvml_box: NvmlBox, tmp_path: Path, how: str
) -> None:
    engine_modern.docker("run", "-d", "--name", "train", engine_modern.load("pytorch"), "sleep", "1000")
    person = seat(tmux, engine_modern.host, nvml_box, tmp_path)
    pid = person.start()
    assert "●" not in person.pane.wait_for("train")
    person.pane.keys("c")

    def under_way() -> bool:
        seen = person.pane.capture()
        return "● check" in _line(seen, "train") and "●1" in _line(seen, "[Containers 1]")

    wait(under_way, what="its row and its list say so", shown=person.pane.capture)
    person.pane.keys("4")

    def goes_on() -> bool:
        seen = person.pane.capture()
        return "%" in _line(seen, "check ") and "[Runs 1] ●1" in seen

    wait(goes_on, what="it goes on", shown=person.pane.capture)
    if how == "q":
        person.pane.keys("q")
    else:
        os.kill(pid, getattr(signal, how))
    person.left()
    person.mend()
    person.start()
    person.pane.keys("4")

    def remembered() -> bool:
        seen = person.pane.capture()
        told = _line(seen, "check ")
        return "cancelled" in told and ("Cut short" in told or "was cancelled" in told) and "●" not in seen

    wait(remembered, what="its row, and that nothing goes on", shown=person.pane.capture)
    person.pane.keys("Enter")
    if how == "SIGKILL":
        person.pane.wait_for("nobody saw its end")
    else:
        assert "nobody saw its end" not in person.pane.wait_for("began")


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
            words = "The check of train was cancelled"
            wait(lambda: words in _line(person.pane.capture(), "check "), what="its end", shown=person.pane.capture)
    if then == "go on":
        wait(lambda: "%" in _line(person.pane.capture(), "check "), what="it goes on", shown=person.pane.capture)
        assert "waits for" not in _line(person.pane.capture(), "check ")
