"""``check`` and ``bench`` beside another that is at the same GPU: they wait, say for whom, and can be ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from gpuconsole.probes.records import AskedGpu, AskedGpus
from gpuconsole.services.cancelling import Cancellation
from gpuconsole.services.probeturn import alone_on_gpus
from gpuconsole.services.session import Session
from tests.cli.engines import environment, start
from tests.rig.engines import Engine
from tests.rig.gpus import TWO_GPUS
from tests.rig.nvml.presets import h200
from tests.rig.nvml.simulated import NvmlBox
from tests.rig.nvml.state import NvmlState

pytestmark = pytest.mark.engine
UUID = TWO_GPUS[0].uuid
US = (sys.executable, "-m", "tests.rig.fewchecks")
WORDS = f"Waits for GPU 0: the bench of other (process {os.getpid()})."


@pytest.fixture
def box(nvml_box: NvmlBox) -> NvmlBox:
    nvml_box.write(NvmlState(gpus=tuple(h200(gpu.index, uuid=gpu.uuid, minor=gpu.minor) for gpu in TWO_GPUS)))
    return nvml_box


@pytest.fixture
def taken() -> Iterator[ExitStack]:
    """The turn of the GPU, which another gpuconsole has."""
    with ExitStack() as stack:
        asked = AskedGpus.of((AskedGpu(UUID, index=0),))
        turn = alone_on_gpus(Session(), "the bench of other", lambda: asked, print, cancel=Cancellation())
        stack.enter_context(turn)
        yield stack


def begin(engine: Engine, box: NvmlBox, *arguments: str) -> subprocess.Popen[str]:
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen((*US, *arguments), env=environment(engine, None, **box.env()), **options)


def wait_for_words(process: subprocess.Popen[str]) -> None:
    assert process.stderr is not None
    told = []
    for line in process.stderr:
        told.append(line)
        if line.strip() == WORDS:
            return
    raise AssertionError(f"never said: {WORDS}\n{''.join(told)}")


@pytest.mark.parametrize("verb", ["check", "bench"])
@pytest.mark.parametrize("what", ["container", "image", "machine"])
def test_the_second_says_for_whom_it_waits_and_can_be_ended(
    engine_modern: Engine, box: NvmlBox, taken: ExitStack, verb: str, what: str
) -> None:
    image = engine_modern.load("pytorch")
    subject = {
        "container": ("train",),
        "image": ("--image", image, "--gpus", f"device={UUID}"),
        "machine": ("--local",),
    }[what]
    if what == "container":
        start(engine_modern, "train", "--device", f"nvidia.com/gpu={UUID}", image="pytorch")
    process = begin(engine_modern, box, verb, *subject)
    try:
        wait_for_words(process)
        process.send_signal(signal.SIGINT)
        out, talk = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 130, talk
    assert out == ""
    assert "was cancelled as it waited for its turn: nothing was done" in " ".join(talk.split())
    names = engine_modern.docker("ps", "-a", "--format", "{{.Names}}").stdout.split()
    assert not [name for name in names if name.startswith("gpuconsole-check-")]


def test_it_goes_on_as_soon_as_the_other_is_over(engine_modern: Engine, box: NvmlBox, taken: ExitStack) -> None:
    start(engine_modern, "train", "--device", f"nvidia.com/gpu={UUID}", image="pytorch")
    process = begin(engine_modern, box, "check", "train", "--only", "shm")
    try:
        wait_for_words(process)
        taken.close()
        out, talk = process.communicate(timeout=90)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode in (0, 1), talk
    assert " shm " in out
