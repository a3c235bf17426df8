"""Run a command on a simulated box: `python -m tests.rig.nvml --gpus 2 --busy -- nvitop -1`.

With `--play tests/forecast/recordings/leak-100.jsonl.gz` the memory of its GPUs is that of a recording, as it went.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

from tests.rig.nvml.build import NoCompiler, build
from tests.rig.nvml.gpu import GIB, Gpu, GpuProcess
from tests.rig.nvml.played import playing
from tests.rig.nvml.presets import PRESETS, box, busy
from tests.rig.nvml.simulated import NvmlBox, open_box
from tests.rig.nvml.state import NvmlState


def at_work(gpu: Gpu, second: float) -> Gpu:
    """The GPU in training at this second: this process holds it, memory swells, load swings."""
    swing = (1 + math.sin(second / 3 + gpu.index)) / 2
    total = 8 * GIB if gpu.unified else gpu.mig_instances[0].total_bytes if gpu.mig_instances else gpu.total_bytes
    held = int(total * (0.5 + 0.1 * swing))
    working = busy(gpu, GpuProcess(os.getpid(), held, sm_percent=60 + int(39 * swing), memory_percent=25))
    if gpu.gpu_percent is None:
        return working
    return working.with_(gpu_percent=60 + int(39 * swing), celsius=50 + int(20 * swing))


def keep_busy(simulated: NvmlBox, base: NvmlState, stop: threading.Event) -> None:
    """Rewrite the state twice a second until told to stop."""
    second = 0.0
    while not stop.wait(0.5):
        second += 0.5
        simulated.write(base.with_(gpus=tuple(at_work(gpu, second) for gpu in base.gpus)))


def run(command: list[str], simulated: NvmlBox, *, is_busy: bool) -> int:
    """Run the command on the box; its exit code."""
    base, stop = simulated.state, threading.Event()
    if is_busy:
        simulated.write(base.with_(gpus=tuple(at_work(gpu, 0) for gpu in base.gpus)))
        threading.Thread(target=keep_busy, args=(simulated, base, stop), daemon=True).start()
    process = subprocess.Popen(command, env=simulated.env())
    try:
        while True:
            with suppress(KeyboardInterrupt):  # the command heard it too, and ends as it likes
                return process.wait()
    finally:
        stop.set()


def main(arguments: list[str] | None = None) -> int:
    """Read the command line, run, and give the command's exit code; 3 without a compiler."""
    parser = argparse.ArgumentParser(prog="python -m tests.rig.nvml", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--gpus", type=int, default=1, choices=range(17), metavar="N", help="0 to 16 (default 1)")
    parser.add_argument("--preset", default="h200", choices=[*PRESETS, "gb10"], help="the kind of GPU")
    parser.add_argument("--busy", action="store_true", help="all GPUs at work, with moving figures")
    parser.add_argument("--play", type=Path, metavar="FILE", help="a recording whose GPU memory is played, once")
    parser.add_argument("--speed", type=float, default=1.0, help="recorded seconds a second (default 1)")
    parser.add_argument("--state", type=Path, metavar="FILE", help="an existing state file to use and leave alone")
    parser.add_argument("command", nargs="+", help="what to run, after --")
    chosen = parser.parse_args(arguments)
    if chosen.play and (chosen.busy or chosen.state or not chosen.play.is_file()):
        parser.error("--play needs an existing file, and a box that is neither busy nor another's")
    if chosen.state and (chosen.busy or not chosen.state.is_file()):
        parser.error("--state needs an existing file, and that file is not made busy")
    try:
        if chosen.state:
            simulated = NvmlBox(path=chosen.state.resolve(), library=build(), state=NvmlState())
            return run(chosen.command, simulated, is_busy=False)
        with tempfile.TemporaryDirectory(prefix="gpuconsole-nvml-") as folder:
            simulated = open_box(Path(folder), box(chosen.gpus, chosen.preset))
            if chosen.play:
                with playing(simulated, chosen.play, speed=chosen.speed):
                    return run(chosen.command, simulated, is_busy=False)
            return run(chosen.command, simulated, is_busy=chosen.busy)
    except NoCompiler as error:
        print(f"{error} Install gcc.", file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main())
