"""How fast ``gpuconsole status`` is there: beside a bare Python and beside ``nvitop -1``, on one simulated box.

    python -m tests.bench.status [--gpus 4] [--rounds 20] [--no-nvitop]

The programs take turns, so that a busy machine is busy for all; the median of each counts. Seconds of CPU are printed
beside those of the clock: they vary less where others work too. nvitop comes into a virtual environment of its own,
gone afterwards. It measures and prints; the targets are printed beside what was measured.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.rig.nvml import GIB, GpuProcess, NvmlState, busy, h200, open_box

BARE = "python3 -c pass"
OURS = "gpuconsole status --json"
PEOPLE = "gpuconsole status"
TMUX = "gpuconsole status --tmux"
NVITOP = "nvitop -1"
TARGETS = {BARE: 5.0, NVITOP: 0.25}
"""``status`` shall take at most so many times as long as these."""


def commands(folder: Path, *, with_nvitop: bool) -> dict[str, list[str]]:
    """What is measured, by the name it is printed under."""
    script = Path(sys.executable).parent / "gpuconsole"
    ours = [str(script)] if script.exists() else [sys.executable, "-m", "gpuconsole"]
    found = {
        BARE: [sys.executable, "-c", "pass"],
        TMUX: [*ours, "status", "--tmux"],
        OURS: [*ours, "status", "--json"],
        PEOPLE: [*ours, "status"],
    }
    if with_nvitop:
        found[NVITOP] = [str(installed_nvitop(folder)), "-1"]
    return found


def installed_nvitop(folder: Path) -> Path:
    """Install nvitop into an environment of its own."""
    venv.create(folder, with_pip=True)
    subprocess.run([folder / "bin/pip", "install", "-q", "--disable-pip-version-check", "nvitop"], check=True)
    return folder / "bin/nvitop"


@dataclass(frozen=True, slots=True)
class Run:
    """What one run took, in seconds."""

    clock: float
    cpu: float


def run(command: Sequence[str], env: Mapping[str, str]) -> Run:
    """Run a command once.

    Raises:
        subprocess.CalledProcessError: It fails, and its time means nothing.
    """
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True, timeout=120)
    clock, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Run(clock, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def measure(chosen: Mapping[str, Sequence[str]], env: Mapping[str, str], *, rounds: int) -> dict[str, Run]:
    """Medians of each command; the first round warms the caches and does not count."""
    taken: dict[str, list[Run]] = {name: [] for name in chosen}
    for _ in range(rounds + 1):
        for name, command in chosen.items():
            taken[name].append(run(command, env))
    return {
        name: Run(statistics.median(r.clock for r in runs[1:]), statistics.median(r.cpu for r in runs[1:]))
        for name, runs in taken.items()
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--gpus", type=int, default=4, choices=range(1, 17), metavar="N")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--no-nvitop", action="store_true", help="leave nvitop out: it is fetched from PyPI")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gpuconsole-bench-") as name:
        folder = Path(name)
        gpus = tuple(busy(h200(index), GpuProcess(os.getpid(), 40 * GIB)) for index in range(asked.gpus))
        box = open_box(folder, NvmlState(gpus=gpus))
        chosen = commands(folder / "nvitop", with_nvitop=not asked.no_nvitop)
        env = {name: value for name, value in box.env().items() if name != "PYTHONDONTWRITEBYTECODE"}
        medians = measure(chosen, env | {"XDG_STATE_HOME": f"{folder}/state"}, rounds=asked.rounds)
    print(f"{asked.gpus} simulated GPUs, one process on each; median of {asked.rounds} runs")
    for name, median in medians.items():
        print(f"  {name:<26} {median.clock * 1000:7.0f} ms   {median.cpu * 1000:7.0f} ms of CPU")
    for ours in (TMUX, OURS, PEOPLE):
        for name, target in TARGETS.items():
            if name in medians:
                clock, cpu = medians[ours].clock / medians[name].clock, medians[ours].cpu / medians[name].cpu
                print(f"  {ours} / {name}: {clock:.2f} by the clock, {cpu:.2f} of CPU (target: at most {target})")


if __name__ == "__main__":
    main()
