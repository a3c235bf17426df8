"""Ctrl+c at every moment of the program's life: while it begins, while a command is loaded, and while it ends."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpuconsole.core.errors import ExitCode

INTERRUPTED_AT_IMPORT = """
import atexit, os, signal, sys
from gpuconsole.cli.main import run  # all that an installed script imports by itself
class Trap:
    seen = 0
    def find_spec(self, name, path=None, target=None):
        Trap.seen += 1
        if Trap.seen == {number}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Trap())
atexit.register(lambda: print("imports", Trap.seen, file=sys.stderr))
run({arguments!r})
"""
INTERRUPTED_AT_EXIT = """
import atexit, os, signal
from gpuconsole.cli.main import run
atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
run(["--version"])
"""
COMMANDS = {
    "version": ["--version"],
    "status": ["status", "--json"],
    "ps": ["--host", "unix:///nowhere/engine.sock", "ps"],
    "doctor": ["--host", "unix:///nowhere/engine.sock", "doctor"],
}


def run(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False,
        env={name: value for name, value in os.environ.items() if name != "GPUCONSOLE_DEBUG"} | environment,
    )  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_whatever_is_being_imported_there_is_no_traceback(command: str) -> None:
    arguments = COMMANDS[command]
    counting = INTERRUPTED_AT_IMPORT.format(number=0, arguments=arguments).replace("import run", "import main as run")
    told = run(counting).stderr.split()  # main() comes back, where run() may end the process itself
    imports = int(told[told.index("imports") + 1])
    assert imports > 10
    for number in sorted({1, 2, 3, imports - 1, *(imports * step // 8 for step in range(1, 8))}):
        done = run(INTERRUPTED_AT_IMPORT.format(number=number, arguments=arguments))
        assert done.returncode == ExitCode.INTERRUPTED, (number, done.stderr)
        assert re.sub(r"imports \d+", "", done.stderr).strip() in ("", "gpuconsole: interrupted."), number
        assert done.stdout == "", number


def test_at_the_very_first_imports_it_says_nothing_at_all() -> None:
    done = run(INTERRUPTED_AT_IMPORT.format(number=1, arguments=["--version"]))
    assert (done.returncode, done.stdout, done.stderr) == (ExitCode.INTERRUPTED, "", "")


def test_at_the_exit_it_says_nothing_either() -> None:
    done = run(INTERRUPTED_AT_EXIT)
    assert done.returncode == ExitCode.INTERRUPTED
    assert done.stderr == ""
    assert done.stdout.startswith("gpuconsole, version")


def test_who_ignores_it_goes_on_ignoring_it() -> None:
    """As a job in the background of a script does."""
    ignoring = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    done = run(ignoring + INTERRUPTED_AT_IMPORT.format(number=1, arguments=["--version"]))
    assert (done.returncode, done.stdout.startswith("gpuconsole, version")) == (0, True)


def test_started_as_a_module_it_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "class Trap:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'click':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Trap())\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "gpuconsole", "--version"], capture_output=True, text=True, timeout=60, check=False,
        env=os.environ | {"PYTHONPATH": f"{tmp_path}:{os.getcwd()}"},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (ExitCode.INTERRUPTED, "", "")


@pytest.mark.parametrize(
    ("value", "traceback"),
    [("", False), ("0", False), ("false", False), ("No", False), ("off", False), ("1", True), ("yes", True)],
)
def test_debug_by_environment(value: str, traceback: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gpuconsole", "--host", "unix:///nowhere/engine.sock", "ps"],
        capture_output=True, text=True, timeout=60, check=False, env=os.environ | {"GPUCONSOLE_DEBUG": value},
    )  # fmt: skip
    assert done.returncode == ExitCode.NO_ENGINE
    assert ("Traceback" in done.stderr) is traceback
