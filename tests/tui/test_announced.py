"""A leaking container is announced in the console, in tmux and in `status` before it dies, and explained after."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig.engines import Engine
from tests.rig.nvml import NvmlBox, box
from tests.rig.nvml.gpu import GpuProcess
from tests.rig.nvml.presets import busy
from tests.rig.owner import Rig
from tests.tui.in_tmux import PATIENCE_S
from tests.tui.witness import Witness, announced, announced_in_console, announced_in_status, announced_in_tmux

GIB = 2**30
_SAYS = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB. GPU 0 has a total capacity of 139.80 GiB "
    "of which 3.80 GiB is free. Including non-PyTorch memory, this process has 136.00 GiB memory in use."
)
_PROGRAM = f"until [ -e /tmp/full ]; do sleep 0.1; done; echo '{_SAYS}' >&2; exit 1"


@pytest.fixture
def witness(engine_modern: Engine, nvml_box: NvmlBox, rig_bench: object, tmp_path: Path) -> Iterator[Witness]:
    """Somebody in tmux, the console open in another window."""
    rig: Rig = rig_bench.rig  # type: ignore[attr-defined]
    ours = {name: value for name, value in os.environ.items() if name.startswith(("XDG_", "GPUCONSOLE_L", "PATH"))}
    env = {
        **ours,
        **{name: nvml_box.env()[name] for name in ("LD_LIBRARY_PATH", "GPUCONSOLE_NVML_STATE")},
        "DOCKER_HOST": engine_modern.host,
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    found = Witness(("tmux", "-S", str(rig.subfolder("witness") / "socket")), env, rig.folder)
    yield found
    found.close()


def hold(nvml: NvmlBox, pid: int, gib: float) -> None:
    """The process holds so much of GPU 0, and computes."""
    whole = box(2)
    nvml.write(whole.with_(gpus=(busy(whole.gpus[0], GpuProcess(pid, int(gib * GIB))), whole.gpus[1])))


def begin(engine: Engine, name: str) -> int:
    """A container that ends as one whose GPU is full once it is told to; its main process."""
    engine.docker("run", "-d", "--name", name, engine.load("small"), "sh", "-c", _PROGRAM)
    return int(engine.docker("inspect", "-f", "{{.State.Pid}}", name).stdout)


def test_a_leak_is_announced_everywhere_and_explained_and_a_packed_server_never(
    engine_modern: Engine, nvml_box: NvmlBox, witness: Witness
) -> None:
    server = begin(engine_modern, "server")
    for gib in (30, 90, *[131] * 8):  # loads, and fills the card on purpose
        hold(nvml_box, server, gib)
        seen = witness.look()
        assert not announced(seen), seen
        time.sleep(0.5)
    assert seen.state == "packed", seen
    engine_modern.docker("rm", "-f", "server")

    leaker = begin(engine_modern, "leaker")
    held = 20.0
    hold(nvml_box, leaker, held)
    time.sleep(8)
    while held < 128:
        held += 8
        hold(nvml_box, leaker, held)
        end = time.monotonic() + 1.2
        while time.monotonic() < end:
            witness.look()
    places = (announced_in_console, announced_in_status, announced_in_tmux)  # each a little after the one before
    witness.until(lambda _: all(witness.first(place) for place in places), seconds=PATIENCE_S)
    assert not any(seen.belled for seen in witness.seen), "a trend may be withdrawn: it rings no bell"
    told = witness.seen[-1].message
    assert f"Process {leaker} of leaker on GPU 0" in told
    assert "a step; at this pace full in about" in told

    engine_modern.docker("exec", "leaker", "touch", "/tmp/full")
    nvml_box.write(box(2))
    explained = "leaker has ended: Exit code 1: GPU memory of its GPU 0 was over: it asked for 8 GiB"
    seen = witness.until(lambda seen: explained in seen.words, seconds=PATIENCE_S)
    assert seen.state == "free"
    witness.until(lambda seen: seen.belled, seconds=PATIENCE_S)
    ends = ("leaker has ended", f"Process {leaker} of leaker on GPU 0, failed")  # one of them, as it was seen first
    witness.until(lambda seen: any(each in seen.message for each in ends), seconds=PATIENCE_S)
    witness.press("!")
    witness.until(lambda seen: "Alarms" in seen.console and "leaker has ended" in seen.words, seconds=PATIENCE_S)
