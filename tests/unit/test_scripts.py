"""``tests/run``, ``tests/try`` and what both set up: with stand-ins for pip and for the program, in any folder."""

from __future__ import annotations

import hashlib
import os
import pty
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
TOOLS = ("gcc", "ld", "tmux", "ip", "xz", "ps")
IMAGE = '{"images": ["gpuconsole-test/pytorch:cpu"]}'
PIP = """#!/bin/bash
echo "$*" >> "$CALLS"
case "$*" in
  *{breaks}*) echo "WARNING: Location is odd"; echo "ERROR: no network for $*"; exit 1 ;;
  *"import torch"*) exit {torch} ;;
esac
"""


@dataclass
class Checkout:
    """A virtual environment made of stand-ins, and what they were called with."""

    venv: Path
    tools: Path
    calls: Path

    def program(self, name: str, text: str) -> None:
        path = self.venv / "bin" / name
        path.write_text(text)
        path.chmod(0o755)

    def installed(self) -> None:
        """Everything is installed already."""
        digest = hashlib.sha256((PROJECT / "pyproject.toml").read_bytes()).hexdigest()
        (self.venv / ".gpuconsole-installed").write_text(digest)

    def env(self, venv: str | None = None) -> dict[str, str]:
        return os.environ | {
            "GPUCONSOLE_VENV": venv or str(self.venv), "CALLS": str(self.calls),
            "PATH": f"{self.tools}:{os.environ['PATH']}",
        }  # fmt: skip

    def run(self, script: str, *arguments: str, venv: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", script, *arguments], cwd=PROJECT, env=self.env(venv), capture_output=True, text=True, check=False,
            stdin=subprocess.DEVNULL, timeout=120,
        )  # fmt: skip

    def called(self) -> list[str]:
        return self.calls.read_text().splitlines() if self.calls.exists() else []


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """Nothing is installed yet; the machine has every tool."""
    made = Checkout(tmp_path / "an environment", tmp_path / "tools", tmp_path / "calls")
    (made.venv / "bin").mkdir(parents=True)
    made.tools.mkdir()
    for name in TOOLS:
        (made.tools / name).write_text("#!/bin/sh\n")
        (made.tools / name).chmod(0o755)
    made.program("python", PIP.format(breaks="nothing at all", torch=0))
    made.program("pytest", '#!/bin/bash\necho "pytest of $0 with $*"\n')
    made.program("gpuconsole", f'#!/bin/bash\necho "gpuconsole $*" >> "$CALLS"\necho \'{IMAGE}\'\n')
    return made


def relative(path: Path) -> str:
    return os.path.relpath(path, PROJECT)


@pytest.mark.parametrize("written", [str, relative], ids=["absolute", "relative"])
def test_the_environment_may_be_in_any_folder(checkout: Checkout, written: Callable[[Path], str]) -> None:
    checkout.installed()
    done = checkout.run("tests/run", "tests/unit", "-k", "x", venv=written(checkout.venv))
    assert done.returncode == 0, done.stderr
    shown = done.stdout.strip()
    assert shown.endswith("/an environment/bin/pytest with tests/unit -k x")
    assert os.path.samefile(shown.removeprefix("pytest of ").partition(" with ")[0], checkout.venv / "bin/pytest")
    done = checkout.run("tests/try", venv=written(checkout.venv))
    assert done.returncode == 0, done.stderr
    verbs = [line.split()[1] for line in checkout.called() if line.startswith("gpuconsole ")]
    assert [verb for verb in verbs if verb in ("launch", "check", "logs", "stop", "rm")] == [
        "launch", "check", "logs", "stop", "rm", "rm",
    ]  # fmt: skip  # the last one should something have gone wrong
    assert "tests/try --console" in done.stderr


@pytest.mark.parametrize(
    ("breaks", "torch", "words"),
    [("-e", 0, "gpuconsole and what its tests need could not be installed"), ("torch==", 1, "CPU build of PyTorch")],
)
def test_what_pip_could_not_do_is_said_and_ends_it(checkout: Checkout, breaks: str, torch: int, words: str) -> None:
    checkout.program("python", PIP.format(breaks=f'"install {breaks}"', torch=torch))
    done = checkout.run("tests/run", "tests/unit")
    assert done.returncode == 1
    assert words in done.stderr
    assert f"ERROR: no network for -m pip install {breaks}" in done.stderr
    assert "WARNING: Location" not in done.stderr
    assert "pytest of" not in done.stdout
    assert not (checkout.venv / ".gpuconsole-installed").exists()


def test_an_old_pip_is_no_obstacle(checkout: Checkout) -> None:
    checkout.program("python", PIP.format(breaks="--upgrade", torch=0))
    done = checkout.run("tests/run", "tests/unit")
    assert done.returncode == 0, done.stderr
    assert "pip could not be upgraded" in done.stderr
    assert (checkout.venv / ".gpuconsole-installed").exists()


@pytest.mark.parametrize(("arguments", "words"), [(["--console"], "needs a terminal"), (["--what"], "does not know")])
def test_try_refuses_what_it_cannot_do_before_it_does_anything(
    checkout: Checkout, arguments: list[str], words: str
) -> None:
    done = checkout.run("tests/try", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert checkout.called() == []


def test_try_opens_the_console_beside_a_container_that_trains(checkout: Checkout) -> None:
    checkout.installed()
    leader, follower = pty.openpty()
    done = subprocess.run(
        ["bash", "tests/try", "--console"], cwd=PROJECT, env=checkout.env(), stdin=follower, stdout=follower,
        stderr=subprocess.PIPE, text=True, check=False, timeout=120,
    )  # fmt: skip
    os.close(follower)
    os.close(leader)
    assert done.returncode == 0, done.stderr
    calls = [line.removeprefix("gpuconsole").strip() for line in checkout.called() if line.startswith("gpuconsole")]
    opened = calls.index("")  # without a command
    assert calls[opened - 1].startswith("launch gpuconsole-test/pytorch:cpu --name gpuconsole-try-")
    assert calls[opened + 1].startswith("rm --yes --force gpuconsole-try-")
