"""What the console costs: how soon it is there, and what it takes while it is open, beside a bare Textual app.

    python -m tests.bench.console [--gpus 8] [--containers 20] [--seconds 60] [--rounds 7] [--sizes 80x24,200x50]
    python -m tests.bench.console --hold        # only the box: prints the environment that leads to it, until ctrl+c
    python -m tests.bench.console --here        # on the machine as it is, or in the environment of a box that is held

The box: simulated GPUs at work whose figures move twice a second, and a private engine with running containers. The
console runs in a terminal of its own, as a person opens it. Starts take turns with a bare Python and a bare Textual
app, so that a busy machine is busy for all; medians count. CPU is the process's own, user and system, as a share of one
core. It measures and prints; the targets are printed beside what was measured.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import pty
import select
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.rig.engines import start_engine
from tests.rig.nvml import open_box
from tests.rig.nvml.__main__ import keep_busy
from tests.rig.nvml.presets import box
from tests.rig.owner import Rig

FIRST_SCREEN_S, MEMORY_MIB, CPU_PCT = 0.5, 80, 2.0
"""What is aimed at: the first screen with the GPUs, memory in use, share of one core."""
_SETTLE_S = 8.0
"""After so long nothing of the start is left: images are listed, the first shares of CPU are known."""
_PATIENCE_S = 60.0
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
_BARE_APP = """
from textual.app import App
from textual.widgets import Static
class Bare(App):
    def compose(self):
        yield Static("there it is")
Bare().run()
"""


@dataclass(frozen=True, slots=True)
class Program:
    """Something that is started in a terminal."""

    name: str
    argv: tuple[str, ...]
    marks: tuple[bytes, ...]
    """What it writes when its screen is there, each looked for in turn; empty when its end is waited for."""


def programs() -> tuple[Program, ...]:
    """What takes turns at starting; the console is the last."""
    python = sys.executable
    script = Path(python).parent / "gpuconsole"
    ours = (str(script),) if script.exists() else (python, "-m", "gpuconsole")
    return (
        Program("python3 -c pass", (python, "-c", "pass"), ()),
        Program("bare Textual app", (python, "-c", _BARE_APP), (b"there it is",)),
        Program("gpuconsole", ours, (b"gpuconsole", b"H200", b"train-")),
    )


@dataclass(frozen=True, slots=True)
class Taken:
    """What it took to come so far, in seconds."""

    clock: float
    cpu: float


class Opened:
    """A program in a new terminal.

    Args:
        argv: The program.
        env: Its environment.
        size: Columns and rows.
    """

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], size: tuple[int, int]) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            argv, env=dict(env), stdin=slave, stdout=slave, stderr=slave, start_new_session=True, close_fds=True
        )
        os.close(slave)
        self.written = 0
        self._kept = b""

    def until(self, mark: bytes) -> Taken:
        """What it took until ``mark`` was written."""
        while mark not in self._kept:
            if not self._take(_PATIENCE_S):
                raise SystemExit(f"{mark!r} was never written; the end of what was: {self._kept[-800:]!r}")
        return Taken(time.perf_counter() - self.began, self.cpu_s())

    def until_ended(self) -> Taken:
        """What it took until it ended."""
        _, _, used = os.wait4(self.process.pid, 0)
        self.process.returncode = 0
        return Taken(time.perf_counter() - self.began, used.ru_utime + used.ru_stime)

    def _take(self, patience_s: float) -> bool:
        ready, _, _ = select.select([self.master], [], [], patience_s)
        if not ready:
            return False
        try:
            piece = os.read(self.master, 65536)
        except OSError:
            return False
        self.written += len(piece)
        self._kept = (self._kept + piece)[-262144:]
        return bool(piece)

    def read_for(self, seconds: float) -> None:
        """Take what it writes for so long."""
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            self._take(left)

    def cpu_s(self) -> float:
        """Seconds of CPU it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def memory_mib(self) -> tuple[float, float]:
        """Resident memory, and the part of it that is its own (not files others have mapped too)."""
        fields = Path(f"/proc/{self.process.pid}/statm").read_text().split()
        return int(fields[1]) * _PAGE / 2**20, (int(fields[1]) - int(fields[2])) * _PAGE / 2**20

    def close(self) -> None:
        """End it; its terminal is read meanwhile, or it could not write its last."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        end = time.perf_counter() + 5
        while self.process.poll() is None and time.perf_counter() < end:
            self._take(0.05)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)


def start_times(
    chosen: Sequence[Program], env: Mapping[str, str], size: tuple[int, int], rounds: int
) -> dict[str, list[list[Taken]]]:
    """Program → for each of its marks (or its end) what every round took; the first, which warms up, is left out."""
    taken: dict[str, list[list[Taken]]] = {one.name: [[] for _ in one.marks or ("end",)] for one in chosen}
    for number in range(rounds + 1):
        for one in chosen:
            opened = Opened(one.argv, env, size)
            try:
                found = [opened.until(mark) for mark in one.marks] or [opened.until_ended()]
            finally:
                opened.close()
            if number:
                for place, one_taken in enumerate(found):
                    taken[one.name][place].append(one_taken)
    return taken


@dataclass(frozen=True, slots=True)
class Open:
    """What a program takes while it is open."""

    memory_mib: float
    own_mib: float
    cpu_pct: float
    bytes_per_s: float


def open_for(one: Program, env: Mapping[str, str], size: tuple[int, int], seconds: float) -> Open:
    """Let it be open, and measure once it has settled."""
    opened = Opened(one.argv, env, size)
    try:
        for mark in one.marks:
            opened.until(mark)
        opened.read_for(_SETTLE_S)
        cpu, written, began = opened.cpu_s(), opened.written, time.perf_counter()
        opened.read_for(seconds)
        took = time.perf_counter() - began
        memory, own = opened.memory_mib()
        return Open(memory, own, (opened.cpu_s() - cpu) / took * 100, (opened.written - written) / took)
    finally:
        opened.close()


@contextlib.contextmanager
def the_box(gpus: int, containers: int) -> Iterator[dict[str, str]]:
    """The environment that leads to busy GPUs and an engine with running containers."""
    with Rig() as rig, tempfile.TemporaryDirectory(prefix="gpuconsole-bench-") as home:
        engine = start_engine(rig, "26.1")
        image = engine.load("small")
        for number in range(containers):
            engine.docker("run", "-d", "--name", f"train-{number}", image, "sleep", "100000")
        simulated = open_box(Path(home), box(gpus))
        stop = threading.Event()
        threading.Thread(target=keep_busy, args=(simulated, simulated.state, stop), daemon=True).start()
        env = simulated.env() | {"DOCKER_HOST": engine.host, "TERM": "tmux-256color", "LANG": "C.UTF-8"}
        env |= {f"XDG_{name}_HOME": f"{home}/{name.lower()}" for name in ("CONFIG", "DATA", "STATE", "CACHE")}
        try:
            yield env
        finally:
            stop.set()


def as_a_person_has_it(env: Mapping[str, str]) -> dict[str, str]:
    """The environment without what tells of tests: an installed program has its bytecode, and is seen in colour."""
    ours = ("TMUX", "TMUX_PANE", "DOCKER_CONTEXT", "NO_COLOR", "COLUMNS", "LINES")
    return {name: value for name, value in env.items() if name not in (*ours, "PYTHONDONTWRITEBYTECODE")}


def report(env: Mapping[str, str], sizes: Sequence[tuple[int, int]], *, rounds: int, seconds: float) -> None:
    """Measure and print."""
    chosen = programs()
    ours = chosen[-1]
    for size in sizes:
        print(f"\n{size[0]}×{size[1]}, starting, median of {rounds} (fastest … slowest)")
        times = start_times(chosen, env, size, rounds)
        for one in chosen:
            for mark, taken in zip(one.marks or (b"end",), times[one.name], strict=True):
                text, clock = f"{one.name}, {mark.decode()!r}", [each.clock for each in taken]
                span = f"({min(clock):.3f} … {max(clock):.3f})"
                print(f"  {text:<36} {statistics.median(clock):6.3f} s {span}  {_mean_cpu(taken):.2f} s of CPU")
        first, bare = times[ours.name][1], times[chosen[1].name][0]
        clock_s = statistics.median(each.clock for each in first)
        clock_ratio = clock_s / statistics.median(each.clock for each in bare)
        print(
            f"  first screen with GPUs {clock_s:.2f} s (target {FIRST_SCREEN_S} s); of a bare app's {clock_ratio:.2f} "
            f"by the clock, {_mean_cpu(first) / _mean_cpu(bare):.2f} of CPU"
        )
    for size in sizes if seconds else ():
        print(f"\n{size[0]}×{size[1]}, open for {seconds:.0f} s")
        for one in chosen[1:]:
            taken_open = open_for(one, env, size, seconds)
            print(
                f"  {one.name:<20} {taken_open.memory_mib:5.1f} MiB resident ({taken_open.own_mib:.1f} its own), "
                f"{taken_open.cpu_pct:5.2f} % of a core, {taken_open.bytes_per_s:6.0f} bytes/s"
            )
        print(f"  targets: {MEMORY_MIB} MiB, {CPU_PCT} % of a core")


def _mean_cpu(taken: Sequence[Taken]) -> float:
    return statistics.mean(each.cpu for each in taken)


def _size(text: str) -> tuple[int, int]:
    columns, _, rows = text.partition("x")
    return int(columns), int(rows)


def main() -> None:
    """Measure and print, or only hold the box."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--gpus", type=int, default=8, choices=range(1, 17), metavar="N")
    parser.add_argument("--containers", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60, help="how long it is open; 0 leaves that out")
    parser.add_argument("--rounds", type=int, default=7, help="starts of each program")
    parser.add_argument("--sizes", default="80x24,200x50")
    parser.add_argument("--hold", action="store_true", help="only hold the box, and print how to reach it")
    parser.add_argument("--here", action="store_true", help="take GPUs and engine as this environment has them")
    asked = parser.parse_args()
    sizes = [_size(text) for text in asked.sizes.split(",")]
    if asked.here:
        report(as_a_person_has_it(os.environ), sizes, rounds=asked.rounds, seconds=asked.seconds)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the box is taken down
    with the_box(asked.gpus, asked.containers) as env:
        print(f"{asked.gpus} simulated GPUs at work, {asked.containers} running containers")
        if asked.hold:
            changed = {name: value for name, value in env.items() if os.environ.get(name) != value}
            print("\n".join(f"export {name}='{value}'" for name, value in changed.items()), flush=True)
            with contextlib.suppress(KeyboardInterrupt):
                signal.pause()
            return
        report(as_a_person_has_it(env), sizes, rounds=asked.rounds, seconds=asked.seconds)


if __name__ == "__main__":
    main()
