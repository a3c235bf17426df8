"""``gpuconsole status`` as it is used: a process of its own on the simulated driver, in pipes and in terminals."""

from __future__ import annotations

import ctypes.util
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from gpuconsole.cli.glyphs import Glyphs
from gpuconsole.cli.status_line import tmux_line
from gpuconsole.cli.status_table import overview_text
from gpuconsole.cli.tables import width_of
from gpuconsole.core.errors import ExitCode
from gpuconsole.gpu.model import Ecc, Gpu, GpuSnapshot, GpuStatus, Mig
from gpuconsole.gpu.names import short_name
from gpuconsole.host.machine import read_machine
from gpuconsole.host.model import GpuView, Holder, HostView
from tests.rig import prepared
from tests.rig.nvml import GIB, MIB, GpuProcess, NvmlBox, NvmlState, a100_mig, box, busy, gb10, h200, rtx4090

COMMAND = (sys.executable, "-m", "gpuconsole", "status")
UTF8 = {"LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def status(*arguments: str, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return prepared.in_words(prepared.gpuconsole("status", *arguments, env=env))


def without_driver() -> dict[str, str]:
    if ctypes.util.find_library("nvidia-ml"):
        pytest.skip("this machine has an NVIDIA driver")
    return {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"} | UTF8


class Terminal:
    """A program on a pseudo-terminal of a given size."""

    def __init__(self, *arguments: str, env: Mapping[str, str], columns: int = 80, lines: int = 24) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.process = subprocess.Popen(
            [*COMMAND, *arguments], env={**env}, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(slave)
        self.output = ""

    def read_until(self, done: Callable[[str], bool], *, within_s: float = 60) -> str:
        """Collect output until ``done`` or the program ends."""
        deadline = time.monotonic() + within_s
        while not done(self.output) and time.monotonic() < deadline:
            if not select.select([self.master], [], [], 0.2)[0]:
                continue
            try:
                data = os.read(self.master, 65536)
            except OSError:  # the program closed its end
                break
            if not data:
                break
            self.output += data.decode("utf-8")
        return self.output

    def finish(self) -> str:
        """Collect the rest, and wait for the end."""
        self.read_until(lambda _: False)
        self.process.wait(timeout=60)
        return self.output

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)


@pytest.fixture
def terminal() -> Iterator[Callable[..., Terminal]]:
    """Starts programs on terminals; they end with the test."""
    opened: list[Terminal] = []

    def start(*arguments: str, **options: Any) -> Terminal:
        opened.append(Terminal(*arguments, **options))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


@pytest.fixture
def sleeper() -> Iterator[int]:
    """Pid of a process to put on a GPU."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process.pid
        process.kill()


def test_the_table_for_people(nvml_box: NvmlBox, sleeper: int) -> None:
    nvml_box.write(NvmlState(gpus=(busy(h200(0), GpuProcess(sleeper, 130 * GIB)), rtx4090(1, used_bytes=17 * GIB))))
    done = status(env=nvml_box.env() | UTF8)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0] == "driver 580.159.04 · CUDA 13.0"
    assert lines[2].split() == ["GPU", "UTIL", "MEMORY", "GiB", "TEMP", "POWER", "STATE"]
    assert re.match(r"0 H200 +100 %  █+\S* +130\.0/140\.4 +56 °C +630/700 W  steady$", lines[3])
    assert re.match(r"1 RTX 4090 +0 %  █+\S* +17\.0/24\.0 +36 °C +22/450 W  idle$", lines[4])
    assert re.match(rf"0 +\(host\) +{sleeper} +\S+ +130 GiB +\S+ [KM]iB +0 %  sleep 600$", lines[7])
    assert re.match(r"1 +unattributed +17 GiB +\(no process explains it\)$", lines[8])
    assert "GPU 0: Clocks held down: at the power limit." in lines


def test_one_document_for_programs(nvml_box: NvmlBox, sleeper: int) -> None:
    nvml_box.write(
        NvmlState(gpus=(h200(0, processes=(GpuProcess(sleeper, 2 * GIB),), used_bytes=5 * GIB), gb10(index=1)))
    )
    done = status("--json", env=nvml_box.env() | UTF8)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["schema"] == "gpuconsole.status/1"
    assert document["driver_version"] == "580.159.04"
    assert document["cuda_version"] == "13.0"
    assert document["problem"] is None
    assert document["hint"] is None
    assert time.time() - 600 < document["taken_at"] <= time.time() + 1
    first, second = document["gpus"]
    assert set(Gpu.__dataclass_fields__) < set(first)
    assert (first["memory_used_bytes"], first["unattributed_bytes"]) == (5 * GIB, 3 * GIB)
    assert first["compute_capability"] == [9, 0]
    (holder,) = first["holders"]
    assert {each.name for each in fields(Holder) if not each.metadata.get("derived")} == set(holder)
    assert (holder["pid"], holder["memory_bytes"], holder["command"]) == (sleeper, 2 * GIB, "sleep 600")
    assert second["unified_memory"] is True
    assert second["memory_used_bytes"] is None
    assert "share" in second["unknown"]["memory_used_bytes"]
    assert second["unattributed_bytes"] is None
    assert second["unknown"]["unattributed_bytes"]


def test_divided_gpus_show_their_instances(nvml_box: NvmlBox, sleeper: int) -> None:
    """MIG: each instance with its memory and processes, and no 0 % for the whole."""
    nvml_box.write(NvmlState(gpus=(busy(a100_mig(), GpuProcess(sleeper, 4 * GIB)),)))
    done = status(env=nvml_box.env() | UTF8)
    assert re.search(r"^0 A100-SXM4-40GB +–  ", done.stdout, re.MULTILINE)
    assert re.search(r"^  └ 3g\.20gb #2 +–  .* 4\.0/19\.5", done.stdout, re.MULTILINE)
    assert re.search(rf"^0#2 +\(host\) +{sleeper}", done.stdout, re.MULTILINE)
    assert " 0 %  " not in done.stdout.splitlines()[3]
    (gpu,) = json.loads(status("--json", env=nvml_box.env()).stdout)["gpus"]
    assert [mig["unattributed_bytes"] for mig in gpu["migs"]] == [0, 0, 0, 0]
    assert gpu["holders"][0]["mig_uuid"] == gpu["migs"][0]["uuid"]


def test_one_lost_gpu_hides_no_other(nvml_box: NvmlBox) -> None:
    nvml_box.change_gpu(1, lost=True)
    done = status(env=nvml_box.env() | UTF8)
    assert done.returncode == 0
    assert re.search(r"^0 H200 .* free$", done.stdout, re.MULTILINE)
    assert re.search(r"^1 – .* failed$", done.stdout, re.MULTILINE)
    assert "GPU 1: The GPU is lost" in done.stdout


@pytest.mark.parametrize("count", [8, 16])
def test_many_gpus_fit_an_80_by_24_terminal(nvml_box: NvmlBox, terminal: Callable[..., Terminal], count: int) -> None:
    nvml_box.write(box(count))
    lines = ESCAPE.sub("", terminal(env=nvml_box.env() | UTF8).finish()).splitlines()
    assert len(lines) < 24
    assert [line.split()[0] for line in lines[3:]] == [str(index) for index in range(count)]


def test_in_a_terminal_nothing_is_wider_than_it(
    nvml_box: NvmlBox, terminal: Callable[..., Terminal], tmp_path: Path
) -> None:
    command = ["sleep", "600"]
    hostile = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()", *["--learning-rate=0.0001\x1b[31m"] * 40],
        stdin=subprocess.PIPE,
    )
    plain = subprocess.Popen(command)
    try:
        holders = (GpuProcess(hostile.pid, 70 * GIB), GpuProcess(plain.pid, 300 * MIB), GpuProcess(4190000, None))
        nvml_box.write(
            NvmlState(gpus=(busy(h200(0, name="NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition"), *holders),))
        )
        output = terminal(env=nvml_box.env() | UTF8).finish()
    finally:
        for process in (hostile, plain):
            process.kill()
            process.wait()
    assert "\x1b[31m" not in output.split("\n", 7)[-1]
    lines = [ESCAPE.sub("", line).rstrip("\r") for line in output.split("\n")]
    assert [line for line in lines if width_of(line) > 80] == []
    assert any(line.endswith("…") for line in lines)
    assert any("steady" in line for line in lines)


def test_colour_is_for_terminals_that_want_it(nvml_box: NvmlBox, terminal: Callable[..., Terminal]) -> None:
    env = nvml_box.env() | UTF8
    assert "\x1b[32mfree" in terminal(env=env).finish()
    assert "\x1b[" not in terminal(env=env | {"NO_COLOR": "1"}).finish()
    assert "\x1b[" not in terminal(env=env | {"TERM": "dumb"}).finish()
    assert "\x1b[" not in status(env=env).stdout


@pytest.mark.parametrize(
    "locale",
    [
        {"LC_ALL": "C"},
        {"LC_ALL": "", "LC_CTYPE": "", "LANG": ""},
        {"LC_ALL": "", "LC_CTYPE": "", "LANG": "C"},
        {"LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C.UTF-8", "TERM": "linux"},
    ],
)
def test_a_locale_without_unicode_gets_ascii(nvml_box: NvmlBox, sleeper: int, locale: dict[str, str]) -> None:
    nvml_box.write(
        NvmlState(gpus=(h200(0, processes=(GpuProcess(sleeper, 70 * GIB),), celsius=None, name="NVIDIA Größe"),))
    )
    done = status(env=nvml_box.env() | {"TERM": "xterm"} | locale)
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert "#####....." in done.stdout
    assert "Gr??e" in done.stdout
    document = status("--json", env=nvml_box.env() | locale)
    assert json.loads(document.stdout)["gpus"][0]["name"] == "NVIDIA Größe"


def test_without_a_driver_it_is_a_sentence_a_remedy_and_exit_code_3() -> None:
    done = status(env=without_driver())
    assert done.returncode == ExitCode.NO_GPU
    assert done.stdout == ""
    assert done.stderr.startswith("gpuconsole: There is no NVIDIA driver on this machine")
    there = read_machine().pci_gpus
    assert ("  → Install" in done.stderr, "none is needed" in done.stderr) == (bool(there), not there)
    doctor = prepared.in_words(prepared.gpuconsole("doctor", env=without_driver())).stdout
    assert ("none is needed" in doctor) is not bool(there), "the doctor says the same"


@pytest.mark.parametrize(
    ("init", "reason"), [(9, "driver-not-loaded"), (18, "version-mismatch"), (999, "driver-failed")]
)
def test_a_driver_that_does_not_start(nvml_box: NvmlBox, init: int, reason: str) -> None:
    nvml_box.write(nvml_box.state.with_(init=init))
    env = nvml_box.env() | UTF8
    talk = status(env=env)
    assert (talk.returncode, talk.stdout) == (3, "")
    assert talk.stderr.startswith("gpuconsole: The ")
    assert "Traceback" not in talk.stderr
    done = status("--json", env=env)
    assert done.returncode == 3
    document = json.loads(done.stdout)
    assert (document["reason"], document["gpus"]) == (reason, [])
    assert document["problem"]
    assert document["hint"]
    line = status("--tmux", env=env)
    assert (line.returncode, line.stdout) == (3, f"#[fg=red]no GPU: {reason}#[default]\n")


def test_a_driver_without_gpus(nvml_box: NvmlBox) -> None:
    nvml_box.write(box(0))
    assert status(env=nvml_box.env()).returncode == 3
    assert json.loads(status("--json", env=nvml_box.env()).stdout)["reason"] == "no-gpu"


def test_a_hidden_option_combination_is_refused(nvml_box: NvmlBox) -> None:
    for arguments in (["--tmux", "--json"], ["--tmux", "--watch"], ["--watch", "0.1"], ["--watch", "nan"], ["-w", "x"]):
        done = status(*arguments, env=nvml_box.env())
        assert done.returncode == ExitCode.USAGE, arguments
        assert done.stdout == ""


def test_the_line_for_tmux(nvml_box: NvmlBox) -> None:
    nvml_box.write(NvmlState(gpus=(h200(0), busy(h200(1, used_bytes=139 * GIB)), h200(2))))
    env = nvml_box.env() | UTF8
    done = status("--tmux", env=env)
    assert done.stdout == "#[fg=yellow]GPU 2/3 free · 1 H200 packed 100% 139/140G#[default]\n"
    assert status("--tmux", env=env | {"NO_COLOR": "1"}).stdout == "GPU 2/3 free · 1 H200 packed 100% 139/140G\n"


def view_of(*gpus: Gpu, **changes: Any) -> HostView:
    return HostView(GpuSnapshot(0.0, gpus, **changes), tuple(GpuView(gpu) for gpu in gpus))


def test_foreign_text_cannot_format_tmuxs_status_line() -> None:
    gpu = Gpu(index=0, uuid=None, name="#[fg=red]#(rm)", status=GpuStatus.LOST)
    assert tmux_line(view_of(gpu), colour=False) == "GPU 0/1 free · 0 ##[fg=red]##(… failed"


def test_a_driver_that_stopped_answering_is_the_worst_news_of_the_line() -> None:
    view = view_of(Gpu(index=0, uuid=None, name=None), problem="It hangs.", reason="not-answering")
    assert tmux_line(view, colour=True) == "#[fg=red]GPU 0/1 free · not-answering#[default]"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("NVIDIA H200", "H200"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada"),
        ("NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB"),
        ("Tesla V100-SXM2-16GB", "Tesla V100-SXM2-16GB"),
        ("NVIDIA", "NVIDIA"),
        (None, "–"),
    ],
)
def test_short_names(name: str | None, shown: str) -> None:
    assert short_name(name) == shown


def test_all_unknown_is_dashes() -> None:
    text = overview_text(view_of(Gpu(index=0, uuid=None, name=None, processes=None)), Glyphs(width=80))
    assert text.splitlines()[0] == "driver – · CUDA –"
    assert text.splitlines()[3].split() == ["0", "–", "–", "–", "–", "–", "unknown"]


def test_failing_memory_is_told() -> None:
    ecc = Ecc(volatile_uncorrected=3, remap_pending=True)
    text = overview_text(view_of(Gpu(index=0, uuid=None, name=None, ecc=ecc)), Glyphs())
    assert "GPU 0: 3 uncorrectable memory errors since the driver was loaded." in text
    assert "replaced at the next reset" in text


def test_watching_a_terminal_redraws_in_place_and_ends_with_ctrl_c(
    nvml_box: NvmlBox, terminal: Callable[..., Terminal]
) -> None:
    watch = terminal("--watch", "0.5", env=nvml_box.env() | UTF8)
    watch.read_until(lambda output: "38 °C" in output)
    nvml_box.change_gpu(0, celsius=71)
    watch.read_until(lambda output: "71 °C" in output)
    nvml_box.change_gpu(1, lost=True)
    watch.read_until(lambda output: "The GPU is lost" in output)
    os.write(watch.master, b"\x03")
    output = watch.finish()
    assert watch.process.returncode == 0
    assert output.startswith("\x1b[?1049h")
    assert output.endswith("\x1b[?7h\x1b[?25h\x1b[?1049l") or output.endswith("\x1b[?1049l\r\n")
    assert output.count("\x1b[?1049h") == 1
    assert "Traceback" not in output


def test_a_watch_that_is_terminated_leaves_the_terminal_as_it_was(
    nvml_box: NvmlBox, terminal: Callable[..., Terminal]
) -> None:
    watch = terminal("--watch", env=nvml_box.env() | UTF8)
    watch.read_until(lambda output: "H200" in output)
    watch.process.send_signal(signal.SIGTERM)
    assert "\x1b[?1049l" in watch.finish()
    assert watch.process.returncode == 128 + signal.SIGTERM


def test_a_watch_in_a_small_terminal_says_what_is_cut(nvml_box: NvmlBox, terminal: Callable[..., Terminal]) -> None:
    nvml_box.write(box(16))
    watch = terminal("--watch", env=nvml_box.env() | UTF8, lines=10)
    watch.read_until(lambda output: "more lines" in output)
    assert "(10 more lines: enlarge the terminal)" in watch.output


def test_watching_goes_on_without_a_driver_and_heals(nvml_box: NvmlBox, terminal: Callable[..., Terminal]) -> None:
    nvml_box.write(nvml_box.state.with_(init=9))
    watch = terminal("--watch", "0.5", env=nvml_box.env() | UTF8)
    watch.read_until(lambda output: "not loaded" in output)
    nvml_box.write(nvml_box.state.with_(init=0))
    assert "H200" in watch.read_until(lambda output: "H200" in output)


def test_a_stream_for_programs(nvml_box: NvmlBox) -> None:
    process = subprocess.Popen(
        [*COMMAND, "--json", "--watch", "0.5"], env=nvml_box.env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        assert json.loads(process.stdout.readline()) == {"schema": "gpuconsole.status/1"}
        assert len(json.loads(process.stdout.readline())["gpus"]) == 2
        nvml_box.write(box(3))
        deadline = time.monotonic() + 60
        while len(json.loads(process.stdout.readline())["gpus"]) != 3:
            assert time.monotonic() < deadline
        process.stdout.close()  # the reader goes away
        assert process.wait(timeout=60) == 0
        assert process.stderr.read() == b""
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def test_ctrl_c_ends_a_stream_without_a_word(nvml_box: NvmlBox) -> None:
    process = subprocess.Popen(
        [*COMMAND, "--json", "--watch"], env=nvml_box.env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, b"")


FORBIDDEN = ("textual", "rich", "docker", "pydantic", "torch", "psutil")


@pytest.mark.parametrize("with_driver", [True, False])
@pytest.mark.parametrize("arguments", [[], ["--json"], ["--tmux"]])
def test_status_imports_nothing_heavy(nvml_box: NvmlBox, with_driver: bool, arguments: list[str]) -> None:
    nvml_box.change_gpu(0, processes=(GpuProcess(os.getpid(), GIB),))
    code = (
        "import sys; from gpuconsole.cli.main import main; code = main(['status', *sys.argv[1:]]);"
        f"print(code, [name for name in {FORBIDDEN} if name in sys.modules], file=sys.stderr)"
    )
    env = nvml_box.env() if with_driver else without_driver()
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=env, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr.splitlines()[-1] == f"{0 if with_driver else 3} []"


def test_what_cannot_be_told_of_mig_instances_is_said_once_for_each_reason() -> None:
    reasons = {"uuid": "this user may not read it", "processes": "this user may not read it"}
    known = Mig("MIG-1", "1g.5gb", 9, 0, 5 * GIB, 0)
    unlisted = Mig("MIG-2", "1g.5gb", 10, 0, 5 * GIB, 0, processes=None, unknown=reasons)
    nameless = Mig(None, "1g.5gb", 11, 0, 5 * GIB, 0, processes=None, unknown=reasons)
    view = view_of(Gpu(0, "GPU-0", "NVIDIA A100", mig_enabled=True, migs=(known, unlisted, nameless)))
    text = overview_text(view, Glyphs())
    assert "GPU 0: 1 MIG instance without UUID, not for containers: this user may not read it." in text
    assert "GPU 0: 2 MIG instances whose processes cannot be listed: this user may not read it." in text
    assert text.count("└ 1g.5gb #11") == 1


@pytest.mark.parametrize("arguments", [(), ("--json",), ("--watch", "1")])
def test_an_interrupt_ends_it_while_the_driver_hangs(nvml_box: NvmlBox, arguments: tuple[str, ...]) -> None:
    """At once, not when the driver answers or the look is given up: that would end it with another code."""
    nvml_box.write(nvml_box.state.with_(delays_ms={"nvmlDeviceGetCount_v2": 600_000}))
    process = subprocess.Popen(
        [*COMMAND, *arguments], env=nvml_box.env() | UTF8, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while len(os.listdir(f"/proc/{process.pid}/task")) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=60)
    assert process.returncode == (0 if "--watch" in arguments else 130), error
    assert "answered" not in out + error
