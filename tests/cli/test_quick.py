"""The ways in that need no parser: what they do is what click's way does, in every circumstance."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from gpuconsole.cli import front, status_show
from gpuconsole.cli.quick import run_quick
from gpuconsole.core import errors
from gpuconsole.core.errors import ConsoleError, ExitCode
from tests.rig.nvml import GIB, GpuProcess, NvmlBox

QUICK: tuple[list[str], ...] = (["status"], ["status", "--json"], ["status", "--tmux"], [])
CIRCUMSTANCES: dict[str, dict[str, str]] = {
    "usual": {"LC_ALL": "C.UTF-8"},
    "ASCII": {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
    "no colour": {"LC_ALL": "C.UTF-8", "NO_COLOR": "1"},
    "debug": {"GPUCONSOLE_DEBUG": "1"},
    "another engine": {"GPUCONSOLE_HOST": "tcp://127.0.0.1:1"},
    "bad engine": {"GPUCONSOLE_HOST": "nonsense"},
    "no home": {"HOME": "/nonexistent", "XDG_STATE_HOME": "", "XDG_CONFIG_HOME": "relative"},
    "completing": {"_GPUCONSOLE_COMPLETE": "bash_complete", "COMP_WORDS": "gpuconsole sta", "COMP_CWORD": "1"},
    "shell code": {"_GPUCONSOLE_COMPLETE": "bash_source"},
}
MOVES = re.compile(r'"(taken_at|age_s|started_at|cpu_pct|host_memory_bytes)": [^,]*|[\d.]+ [KMG]iB|\d+ %|\d+%|line \d+')


def run(arguments: Sequence[str], env: Mapping[str, str], *, shell: str = "") -> tuple[int, str, str]:
    command = [sys.executable, "-m", "gpuconsole", *arguments]
    if shell:
        command = ["bash", "-c", f'set -o pipefail; "$@" {shell}', "bash", *command]
    done = subprocess.run(command, env=dict(env), capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    return done.returncode, MOVES.sub("", done.stdout), MOVES.sub("", done.stderr)


@pytest.mark.parametrize("circumstance", CIRCUMSTANCES)
@pytest.mark.parametrize("arguments", QUICK, ids=" ".join)
def test_it_is_what_clicks_way_gives(nvml_box: NvmlBox, arguments: list[str], circumstance: str) -> None:
    env = nvml_box.env() | CIRCUMSTANCES[circumstance]
    quick, parsed = run(arguments, env), run(["--no-bell", *arguments], env)
    if circumstance == "debug":  # where in the program is not the same
        assert (quick[0], quick[1], quick[2].splitlines()[-2:]) == (parsed[0], parsed[1], parsed[2].splitlines()[-2:])
    else:
        assert quick == parsed


@pytest.mark.parametrize("shell", ["| true", ">&-", "2>&-", "> /dev/full", "<&-"])
@pytest.mark.parametrize("arguments", QUICK, ids=" ".join)
def test_so_it_is_where_nothing_can_be_written(nvml_box: NvmlBox, arguments: list[str], shell: str) -> None:
    env = nvml_box.env() | CIRCUMSTANCES["usual"]
    assert run(arguments, env, shell=shell) == run(["--no-bell", *arguments], env, shell=shell)


@pytest.mark.parametrize("arguments", [["profiles", "save", "a", "b"], ["bench", "import", "-"]], ids=" ".join)
def test_a_closed_input_is_an_empty_one(nvml_box: NvmlBox, arguments: list[str]) -> None:
    env = nvml_box.env() | CIRCUMSTANCES["usual"] | {"DOCKER_HOST": "unix:///nowhere.sock"}
    code, out, said = run(arguments, env, shell="<&-")
    assert (code, out, said) == run(arguments, env, shell="< /dev/null")
    assert code != ExitCode.INTERNAL, said


@pytest.mark.parametrize("arguments", QUICK[:3], ids=" ".join)
def test_so_it_is_without_a_driver(arguments: list[str]) -> None:
    env = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"} | {"LC_ALL": "C.UTF-8"}
    assert run(arguments, env) == run(["--no-bell", *arguments], env)


@pytest.mark.parametrize(
    "arguments",
    [
        ["status", "--jsno"], ["status", "--json", "--tmux"], ["status", "x"], ["status", "--help"], ["status", "-h"],
        ["status", "--"], ["status", "--json", "--json"], ["status", "--js"], ["Status"], ["stats"], [""], ["--json"],
        ["status", ""], ["--version"], ["--help"], ["status", "--watch", "x"], ["status", "-w0"], ["--readonly"],
        ["--replay", "x", "status"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_every_other_line_is_clicks(arguments: list[str]) -> None:
    assert run_quick(arguments) is None


def all_errors() -> list[type[ConsoleError]]:
    return [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, ConsoleError)]


@pytest.mark.parametrize("kind", all_errors(), ids=lambda kind: kind.__name__)
def test_a_failure_is_told_as_elsewhere(
    kind: type[ConsoleError], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any, **__: Any) -> int:
        raise kind("It broke.", hint="Mend it.")

    monkeypatch.setattr(status_show, "show_status", fail)
    assert front.main(["status"]) == kind.exit_code
    assert capsys.readouterr() == ("", "gpuconsole: It broke.\n  → Mend it.\n")


def test_an_interrupt_is_one_as_elsewhere(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def stop(*_: Any, **__: Any) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(status_show, "show_status", stop)
    assert front.main(["status"]) == ExitCode.INTERRUPTED
    assert capsys.readouterr() == ("", "\ngpuconsole: interrupted.\n")


HEAVY = (
    "click", "docker", "pydantic", "textual", "rich", "psutil", "pynvml", "argparse", "asyncio", "collections",
    "contextlib", "ctypes.util", "dataclasses", "datetime", "decimal", "enum", "functools", "importlib.metadata",
    "inspect", "json", "locale", "logging", "math", "pathlib", "random", "re", "runpy", "shutil", "signal", "socket",
    "sqlite3", "string", "subprocess", "tempfile", "textwrap", "threading", "traceback", "typing", "urllib",
)  # fmt: skip
"""What a single look does without, when nothing unusual is to be told: each takes a share of a bare Python's start."""


@pytest.mark.parametrize("arguments", QUICK[:3], ids=" ".join)
def test_it_imports_no_parser_and_nothing_that_costs(nvml_box: NvmlBox, arguments: list[str]) -> None:
    code = (
        "import sys; from gpuconsole.cli.main import run\n"
        f"import os; os._exit = lambda code: None\ntry: run({arguments})\nexcept SystemExit: pass\n"
        f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    with subprocess.Popen(["sleep", "600"]) as holder:
        nvml_box.change_gpu(0, processes=(GpuProcess(holder.pid, 40 * GIB),), used_bytes=41 * GIB)
        try:
            done = subprocess.run(
                [sys.executable, "-S", "-c", code], env=nvml_box.env(), capture_output=True, text=True, check=True,
                cwd=Path(__file__).parents[2],
            )  # fmt: skip
        finally:
            holder.kill()
    assert done.stderr == "[]\n"
    assert done.stdout


@pytest.mark.parametrize("arguments", QUICK[:3], ids=" ".join)
def test_a_single_look_waits_for_nothing(nvml_box: NvmlBox, arguments: list[str]) -> None:
    nvml_box.change_gpu(0, processes=(GpuProcess(os.getpid(), GIB),))
    code = (
        "import sys, time; real = time.sleep; slept = []; time.sleep = lambda s: (slept.append(s), real(s));"
        f"from gpuconsole.cli.main import main; main({arguments}); print(slept, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], env=nvml_box.env(), capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


def test_the_console_is_opened_without_a_parser() -> None:
    code = (
        "import sys, gpuconsole.tui.start as start; start.open_console = lambda *a, **k: 0;"
        "from gpuconsole.cli.main import main; main([]); print([n for n in ('click', 'docker') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_its_json_is_a_document(nvml_box: NvmlBox) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gpuconsole", "status", "--json"], env=nvml_box.env(), capture_output=True, check=True
    )
    assert json.loads(done.stdout)["schema"] == "gpuconsole.status/1"
