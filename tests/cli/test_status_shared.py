"""``status`` beside a console or a watch: it says what they know, in its table, in tmux's line and in JSON."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuconsole.cli.glyphs import Glyphs
from gpuconsole.cli.status_line import tmux_line
from gpuconsole.cli.status_table import overview_text
from gpuconsole.gpu.forecast_model import Assessment, Subject
from gpuconsole.gpu.model import Gpu, GpuSnapshot
from gpuconsole.gpu.state import MemoryState
from gpuconsole.host.model import GpuView, Holder, HostView
from gpuconsole.services.shared import read_shared, shared_path
from gpuconsole.services.sharedwriting import SharedWriter
from tests.cli.engines import gpuconsole, pid_of, start
from tests.rig import prepared
from tests.rig.engines import Engine
from tests.rig.nvml import GIB, GpuProcess, NvmlBox, NvmlState, busy, h200
from tests.rig.nvml.gpu import stand_in_uuid
from tests.rig.nvml.simulated import STATE_VARIABLE
from tests.rig.terminal import Terminal
from tests.rig.tmux import Tmux

UTF8 = {"LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}
KEPT = ("LD_LIBRARY_PATH", STATE_VARIABLE, *UTF8)
WHY = "train grew 12 GiB in 45 s, 0.5 GiB a step; at this pace full in about 4 min"


def view(state: MemoryState, eta_s: float | None, *, gpus: int = 1) -> HostView:
    entries = []
    for index in range(gpus):
        gpu = Gpu(index, stand_in_uuid(index), "NVIDIA H200", memory_total_bytes=140 * GIB, memory_used_bytes=131 * GIB,
                  utilization_pct=98)  # fmt: skip
        said = Assessment(Subject.GPU, str(index), index, None, state, eta_s, WHY, 3e8) if index == 0 else None
        holder = Holder(pid=71, gpu_index=index, gpu_uuid=gpu.uuid, memory_bytes=131 * GIB)
        entries.append(GpuView(gpu, (holder,), outlook=said))
    return HostView(GpuSnapshot(time.time(), tuple(each.gpu for each in entries)), tuple(entries))


def status(box: NvmlBox, *arguments: str, **more: str) -> str:
    done = prepared.in_words(prepared.gpuconsole("status", *arguments, env=box.env() | UTF8 | more))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def wait(true: Callable[[], object], what: str, *, within_s: float = 60) -> None:
    until = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < until, what
        time.sleep(0.05)


def test_the_state_is_that_of_who_watches_while_it_is_fresh(nvml_box: NvmlBox) -> None:
    nvml_box.write(
        NvmlState(gpus=(busy(h200(0), GpuProcess(os.getpid(), 120 * GIB)), busy(h200(1), GpuProcess(1, 9 * GIB))))
    )
    alone = json.loads(status(nvml_box, "--json"))["gpus"]
    assert [(gpu["state"], gpu["eta_s"], gpu["why"]) for gpu in alone] == [("steady", None, None)] * 2
    writer, looks = SharedWriter(), iter(range(99))

    def beside(*arguments: str, **more: str) -> str:
        """What it says while a console is open, which writes again and again."""
        writer.write(view(MemoryState.RISK, 245.0 - next(looks) / 10))
        return status(nvml_box, *arguments, **more)

    first, second = json.loads(beside("--json"))["gpus"]
    assert (first["state"], first["why"]) == ("risk", WHY)
    assert 200 < first["eta_s"] <= 245
    assert (second["state"], second["eta_s"], second["why"]) == ("steady", None, None)
    table = beside()
    rows = [line for line in table.splitlines() if " H200 " in line]
    assert [row.endswith("risk ~4 min") for row in rows] == [True, False]
    assert f"GPU 0: {WHY}." in table
    assert beside("--tmux").startswith("#[fg=red]GPU 0/2 free · 0 H200 risk ~4 min ")
    assert "risk" in beside("--tmux", NO_COLOR="1")
    assert "#" not in beside("--tmux", NO_COLOR="1")
    nvml_box.change_gpu(0, processes=(), used_bytes=0)
    assert json.loads(beside("--json"))["gpus"][0]["state"] == "free", "one look sees that better"


def test_the_cpu_use_of_holders_is_that_of_who_watches_else_that_since_they_began(nvml_box: NvmlBox) -> None:
    me = os.getpid()
    nvml_box.write(NvmlState(gpus=(busy(h200(0), GpuProcess(me, 120 * GIB)),)))
    assert " CPU AVG " in status(nvml_box)
    (alone,) = json.loads(status(nvml_box, "--json"))["gpus"][0]["holders"]
    assert (alone["cpu_pct"], alone["unknown"]["cpu_pct"]) == (None, "it takes two looks")
    looked = view(MemoryState.STEADY, None)
    holder = replace(looked.gpus[0].holders[0], pid=me, started_at=alone["started_at"], cpu_pct=734.0)

    def watched(*arguments: str) -> str:
        """What it says while somebody watches, who writes again and again."""
        SharedWriter().write(replace(looked, gpus=(replace(looked.gpus[0], holders=(holder,)),)))
        return status(nvml_box, *arguments)

    table = watched()
    assert " CPU AVG " not in table
    assert re.search(rf"^0 .* {me} .* 734 %  ", table, re.MULTILINE)
    (beside,) = json.loads(watched("--json"))["gpus"][0]["holders"]
    assert beside["cpu_pct"] == 734.0
    assert "cpu_pct" not in beside["unknown"]
    nvml_box.change_gpu(0, processes=(GpuProcess(me, 60 * GIB), GpuProcess(os.getppid(), GIB)))
    assert " CPU AVG " in watched(), "one that came since: all are counted in one way"


@pytest.mark.parametrize("content", [b"", b"{", b"\x00" * 999, b'{"schema": "gpuconsole.shared/1"}'])
def test_a_damaged_file_is_no_failure(nvml_box: NvmlBox, content: bytes) -> None:
    path = Path(shared_path())
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    assert json.loads(status(nvml_box, "--json"))["gpus"]
    assert status(nvml_box, "--tmux").startswith(("#[fg", "GPU"))


def test_a_watch_tells_the_others_what_it_sees(nvml_box: NvmlBox) -> None:
    nvml_box.write(NvmlState(gpus=(busy(h200(0), GpuProcess(os.getpid(), 40 * GIB)),)))
    command = [sys.executable, "-m", "gpuconsole", "status", "--json", "--watch", "0.5"]
    with subprocess.Popen(command, env=nvml_box.env() | UTF8, stdout=subprocess.PIPE, text=True) as watch:
        assert watch.stdout is not None
        try:
            for _ in range(14):
                last = watch.stdout.readline()
            wait(lambda: (said := read_shared()) and said.gpus, "what is ahead")
            (gpu,) = json.loads(last)["gpus"]
            assert gpu["state"] == "steady"
            assert "no growth to speak of" in gpu["why"]
            assert json.loads(status(nvml_box, "--json"))["gpus"][0]["why"] == gpu["why"]
            SharedWriter().write(view(MemoryState.CRITICAL, 30.0))
            assert json.loads(status(nvml_box, "--json"))["gpus"][0]["state"] == "steady", "it began to watch later"
        finally:
            watch.send_signal(signal.SIGINT)


def test_a_watch_shows_what_an_open_console_knows(nvml_box: NvmlBox) -> None:
    nvml_box.write(NvmlState(gpus=(busy(h200(0), GpuProcess(os.getpid(), 40 * GIB)),)))
    console = SharedWriter()
    console.write(view(MemoryState.CRITICAL, 40.0))
    command = [sys.executable, "-m", "gpuconsole", "status", "--json", "--watch", "0.5"]
    with subprocess.Popen(command, env=nvml_box.env() | UTF8, stdout=subprocess.PIPE, text=True) as watch:
        assert watch.stdout is not None
        try:
            watch.stdout.readline()
            console.write(view(MemoryState.CRITICAL, 39.0))
            assert json.loads(watch.stdout.readline())["gpus"][0]["state"] == "critical"
        finally:
            watch.send_signal(signal.SIGINT)


@pytest.mark.engine("26.1")
def test_a_console_tells_names_and_who_was_given_which_gpu(engine: Engine, nvml_box: NvmlBox, tmp_path: Path) -> None:
    start(engine, "by-hand", "--device", "nvidia.com/gpu=0")
    start(engine, "waiting", "--device", "nvidia.com/gpu=1")
    nvml_box.change_gpu(0, processes=(GpuProcess(pid_of(engine, "by-hand"), 5 * GIB),))

    def gpus() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(gpuconsole(engine, "status", "--json", base=nvml_box.env()).out)[
            "gpus"
        ]
        return found

    assert gpus()[0]["holders"][0]["container_name"] is None, "nobody looks, and it was not launched from here"
    env = nvml_box.env() | UTF8 | {"DOCKER_HOST": engine.host}
    terminal = Terminal([sys.executable, "-m", "gpuconsole"], env=env, folder=engine.rig.folder)
    try:
        wait(lambda: (said := read_shared()) and said.given and said.gpus, "what the console writes")
        first, second = gpus()
        assert first["holders"][0]["container_name"] == "by-hand"
        assert second["given_to"] == ["waiting"]
        assert (first["given_to"], second["state"]) == (["by-hand"], "idle")
        assert [line.split()[1] for line in status(nvml_box).splitlines() if "sleep" in line] == ["by-hand"]
    finally:
        terminal.close()


@pytest.mark.parametrize(
    ("state", "eta_s", "words"),
    [
        (MemoryState.WATCH, 5400.0, "watch ~90 min"),
        (MemoryState.RISK, None, "risk"),
        (MemoryState.CRITICAL, 41.0, "critical ~40 s"),
        (MemoryState.FAILED, None, "failed"),
        (MemoryState.LOADING, 9.0, "loading"),
        (MemoryState.PACKED, None, "packed"),
    ],
)
def test_every_state_has_its_words_and_the_soonest_of_the_worst_is_tmuxs(
    state: MemoryState, eta_s: float | None, words: str
) -> None:
    seen = view(state, eta_s, gpus=3)
    for width in (24, 80, None):
        text = overview_text(seen, Glyphs(width=width))
        assert words in " ".join(text.split())
        assert all(len(line) <= (width or 999) for line in text.splitlines())
    assert (WHY.split(",")[0] in overview_text(seen, Glyphs())) is (state.severity > 4 and state is not state.FAILED)
    coloured = overview_text(seen, Glyphs(colour=True))
    assert f"{words}\x1b[0m" in coloured or state is MemoryState.LOADING
    assert tmux_line(seen, colour=False).startswith(f"GPU 0/3 free · 0 H200 {words} 98%")


def test_of_two_that_are_equally_bad_tmux_has_the_one_that_is_full_first() -> None:
    far, near = view(MemoryState.RISK, 900.0).gpus[0], view(MemoryState.RISK, 100.0).gpus[0]
    entries = (
        far,
        GpuView(Gpu(1, "GPU-1", "A", memory_total_bytes=140, memory_used_bytes=1), near.holders, outlook=near.outlook),
    )
    line = tmux_line(HostView(GpuSnapshot(0.0, tuple(each.gpu for each in entries)), entries), colour=False)
    assert "· 1 A risk ~2 min" in line


def test_in_a_real_status_line_its_colour_is_obeyed_and_foreign_text_is_not(
    nvml_box: NvmlBox, tmux: Tmux, tmp_path: Path
) -> None:
    """What a driver calls a GPU is foreign text, and tmux runs what stands in ``#(…)``."""
    name = f"#(id>{tmp_path}/x)"
    nvml_box.write(NvmlState(gpus=(busy(h200(0, name=name), GpuProcess(os.getpid(), 139 * GIB)),)))
    variables = shlex.join(f"{key}={value}" for key, value in (nvml_box.env() | UTF8).items() if key in KEPT)
    tmux.run("set-option", "-g", "status", "on")
    tmux.run("set-option", "-g", "status-interval", "1")
    tmux.run("set-option", "-g", "status-right-length", "80")
    command = f"cd {shlex.quote(os.getcwd())}; env {variables} {sys.executable} -m gpuconsole status --tmux"
    tmux.run("set-option", "-g", "status-right", f"#({command})")
    client = tmux.attach(tmux.session("sleep 1000"), columns=120)
    try:
        wait(lambda: "0/1 free" in client.text, "the line", within_s=30)
        line = client.text
        assert re.search(r"\x1b\[[0-9;]*33m[^\x1b]*GPU 0/1 free · 0 #\(id>", line), line
        assert " 100% 139/140G" in line
        assert not (tmp_path / "x").exists()
    finally:
        client.close()
