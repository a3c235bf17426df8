"""Launches beside each other: the same free GPU is not given twice, and one can wait until a GPU is free."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from gpuconsole.services.cancelling import Cancellation
from gpuconsole.services.gputurn import GpuTurn
from tests.cli.engines import US, environment
from tests.rig.engines import Engine
from tests.rig.gpus import TWO_GPUS
from tests.rig.nvml.presets import h200
from tests.rig.nvml.simulated import NvmlBox
from tests.rig.nvml.state import NvmlState


@pytest.fixture
def box(nvml_box: NvmlBox) -> NvmlBox:
    nvml_box.write(NvmlState(gpus=tuple(h200(gpu.index, uuid=gpu.uuid, minor=gpu.minor) for gpu in TWO_GPUS)))
    return nvml_box


def begin(engine: Engine, box: NvmlBox, *arguments: str) -> subprocess.Popen[str]:
    command = (*US, "launch", engine.load("small"), "--gpus", "1", *arguments, "--", "sleep", "9999")
    return subprocess.Popen(
        command, env=environment(engine, None, **box.env()), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def given(engine: Engine, names: Sequence[str]) -> list[str]:
    label = '{{index .Config.Labels "gpuconsole.gpus"}}'
    return [engine.docker("inspect", "-f", label, name).stdout.strip() for name in names]


@pytest.mark.engine
def test_two_at_once_do_not_get_the_same_gpu(engine_modern: Engine, box: NvmlBox) -> None:
    both = [begin(engine_modern, box, "--name", name) for name in ("one", "two")]
    told = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    assert set(given(engine_modern, ("one", "two"))) == {gpu.uuid for gpu in TWO_GPUS}


@pytest.mark.engine
def test_one_waits_until_a_gpu_is_free(engine_modern: Engine, box: NvmlBox) -> None:
    holding = begin(engine_modern, box, "--gpus", "all", "--name", "holding")
    assert holding.wait(timeout=120) == 0
    waiting = begin(engine_modern, box, "--when-free", "--name", "waiting")
    ended = begin(engine_modern, box, "--when-free", "--name", "ended")
    try:
        for process in (waiting, ended):
            assert "given to container holding" in _until(process, "Waiting for a free GPU")
        ended.send_signal(signal.SIGINT)
        assert ended.wait(timeout=60) == 130
        engine_modern.docker("rm", "-f", "holding")
        assert waiting.wait(timeout=60) == 0
        assert given(engine_modern, ("waiting",))[0] in {gpu.uuid for gpu in TWO_GPUS}
        names = engine_modern.docker("ps", "-a", "--format", "{{.Names}}").stdout.split()
        assert "ended" not in names
    finally:
        for process in (waiting, ended):
            process.kill()
            process.communicate()


@pytest.mark.engine
@pytest.mark.parametrize("freed", [0, 1])
def test_who_waited_hears_each_note_once(engine_modern: Engine, box: NvmlBox, freed: int) -> None:
    for index in (0, 1):
        assert begin(engine_modern, box, "--gpus", f"device={index}", "--name", f"on-{index}").wait(timeout=120) == 0
    waiting = begin(engine_modern, box, "--when-free", "--name", "waiting", "--shm-size", "1m")
    try:
        before: list[str] = []
        waits_for = _until(waiting, "Waiting for a free GPU", before)
        assert "GPU 0" in waits_for
        engine_modern.docker("rm", "-f", f"on-{freed}")
        told, errors = waiting.communicate(timeout=60)
        assert waiting.returncode == 0, errors
    finally:
        waiting.kill()
    assert told.strip() == "waiting"
    assert given(engine_modern, ("waiting",)) == [TWO_GPUS[freed].uuid]
    lines = [*before, *errors.splitlines()]
    notes = [line for line in lines if line.startswith("Note: ")]
    assert any("/dev/shm" in note for note in notes)
    assert len(notes) == len(set(notes)), "\n".join(lines)
    changed = [line for line in lines if line.startswith("Meanwhile the GPUs changed:")]
    assert len(changed) == freed, "only where it got another one than it waited for"
    if changed:
        assert lines[lines.index(changed[0]) + 1].startswith("GPU 1")
    routes = [line for line in lines if "CDI" in line and not line.startswith("Note")]
    assert len(routes) == 1, "the way they are given is the same"


@pytest.mark.engine
def test_what_is_measured_in_a_fresh_container_is_not_on_a_gpu_that_another_was_given(
    engine_modern: Engine, box: NvmlBox
) -> None:
    assert begin(engine_modern, box, "--gpus", "device=0", "--name", "idle").wait(timeout=120) == 0

    def told(*arguments: str) -> str:
        command = [*US, "bench", "--image", engine_modern.load("small"), *arguments]
        env = environment(engine_modern, None, **box.env())
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120).stderr

    assert told().startswith("GPU 1 ")
    named = told("--gpus", "device=0")
    assert "GPU 0 (NVIDIA H200), as asked." in named
    assert "was given to container idle" in named, "said where it is asked for by name"


def _until(process: subprocess.Popen[str], words: str, before: list[str] | None = None) -> str:
    """The line with these words; those that were said before it go into ``before``."""
    assert process.stderr is not None
    for line in process.stderr:
        if words in line:
            return line
        if before is not None:
            before.append(line.rstrip("\n"))
    raise AssertionError(f"never said: {words}")


def test_the_turn_is_one_at_a_time_and_others_of_other_users_can_take_it(tmp_path: Path) -> None:
    first, second = GpuTurn(tmp_path), GpuTurn(tmp_path)
    assert first.take(Cancellation())
    assert first.take(Cancellation())  # it has it already
    cancelled = Cancellation()
    cancelled.request()
    assert not second.take(cancelled)
    assert (tmp_path / "gpuconsole-gpus.lock").stat().st_mode & 0o444 == 0o444
    got = threading.Event()

    def wait_for_it() -> None:
        if second.take(Cancellation()):
            got.set()

    thread = threading.Thread(target=wait_for_it)
    thread.start()
    assert not got.is_set()
    first.release()
    thread.join(timeout=30)
    assert got.is_set()
    second.release()


def test_the_turn_ends_with_the_process_that_has_it(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from gpuconsole.services.gputurn import GpuTurn; "
        "from gpuconsole.services.cancelling import Cancellation; "
        "turn = GpuTurn(Path(sys.argv[1])); print(turn.take(Cancellation()), flush=True); time.sleep(9999)"
    )
    process = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "True\n"
    process.kill()
    process.wait()
    turn = GpuTurn(tmp_path)
    assert turn.take(Cancellation())
    turn.release()


@pytest.mark.parametrize("hostile", ["link", "fifo", "folder"])
def test_what_stands_in_the_place_of_the_lock_holds_up_nothing(tmp_path: Path, hostile: str) -> None:
    place = tmp_path / "gpuconsole-gpus.lock"
    if hostile == "link":
        place.symlink_to(tmp_path / "elsewhere")
    elif hostile == "fifo":
        os.mkfifo(place)
    else:
        place.mkdir()
    turn = GpuTurn(tmp_path)
    turn.take(Cancellation())
    turn.release()
    assert not (tmp_path / "elsewhere").exists()
