"""No secret of a running process or of a launch is shown anywhere: real processes on the simulated driver."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import gpuconsole
from gpuconsole.cli.status_show import document_of
from gpuconsole.services.askedgpus import asked_of_machine
from gpuconsole.services.overview import Overview
from gpuconsole.services.secrets import MASK
from gpuconsole.services.session import Session
from gpuconsole.tui.present import process as process_row
from tests.cli.engines import gpuconsole as run
from tests.rig.engines import Engine
from tests.rig.nvml import GIB, GpuProcess, NvmlBox, NvmlState, h200

SECRET = "s3cr3tValue"
ARGUMENTS = [
    "--token", SECRET, "--hf-token", f"two words {SECRET}", f"--password={SECRET}", "--max-tokens", "512",
    f"postgres://u:p@{SECRET}@db/x", f"WANDB_API_KEY={SECRET}", f'{{"secret": "{SECRET}"}}',
]  # fmt: skip


@pytest.fixture
def holder(nvml: NvmlBox) -> Iterator[int]:
    """A process on a GPU with secrets in its arguments."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", *ARGUMENTS]) as process:
        nvml.write(NvmlState(gpus=(h200(0, processes=(GpuProcess(process.pid, 2 * GIB),), used_bytes=5 * GIB),)))
        yield process.pid
        process.kill()


@pytest.mark.parametrize("arguments", [["status"], ["status", "--json"], ["status", "--tmux"]])
def test_status_shows_no_secret_of_a_process(holder: int, nvml: NvmlBox, arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gpuconsole", *arguments], env=nvml.env() | {"LC_ALL": "C.UTF-8"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert SECRET not in done.stdout + done.stderr
    if arguments != ["status", "--tmux"]:
        assert str(holder) in done.stdout
        assert MASK in done.stdout
        assert "--max-tokens 512" in done.stdout


def test_whatever_looks_at_the_gpus_is_given_no_secret(holder: int) -> None:
    """The console, the check, and what comes after them."""
    session = Session()
    watched = Overview(session)
    first = watched.look()
    for view in (first, watched.averaged(first)):
        (seen,) = view.gpus[0].holders
        assert seen.pid == holder
        assert (seen.command or "").startswith(sys.executable)
        shown = [json.dumps(document_of(view)), str(process_row.row(seen, now=0.0)), str(view)]
        assert not [text for text in shown if SECRET in text]
        assert MASK in (seen.command or "")
    asked = asked_of_machine(session)
    session.close()
    assert asked.gpus is not None
    assert asked.gpus[0].holders
    assert SECRET not in str(asked)


def test_processes_are_read_in_one_place_only() -> None:
    """Where they are masked: whoever makes a table of holders of his own would show what is in it."""
    makers = [
        str(module.relative_to(Path(gpuconsole.__file__).parent))
        for module in Path(gpuconsole.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "HolderTable"
    ]
    assert makers == ["services/overview.py"]


@pytest.mark.engine
def test_a_launch_tells_no_secret_of_its_command(engine_modern: Engine) -> None:
    image = engine_modern.load("small")
    command = ("sleep", "100", "--token", SECRET, f"--password={SECRET}", "--max-tokens", "512")
    done = run(
        engine_modern, "launch", image, "--json", "--gpus", "none", "--label", f"api.key={SECRET}",
        "-e", f"HF_TOKEN={SECRET}", "--", *command,
    )  # fmt: skip
    assert done.document["command"].endswith(f"sleep 100 --token '{MASK}' '--password={MASK}' --max-tokens 512")
    assert SECRET not in done.text + done.talk
