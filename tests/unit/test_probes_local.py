"""A check of the machine itself speaks of no container: whatever it finds, the remedy is one for here."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from gpuconsole.probes import catalog, obstacles, payload
from gpuconsole.probes.localwords import on_this_machine
from gpuconsole.probes.records import CheckResult, CheckStatus

FOLDER = Path(payload.__file__).parent
PYTHON = "/opt/my env/bin/python"


def sentences() -> list[str]:
    """Every sentence in the payload, and every one the host adds: remedies are among them."""
    files = [*FOLDER.rglob("*.py"), FOLDER.parent / "obstacles.py", FOLDER.parent / "conversation.py"]
    found = {
        node.value
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value[:1].isupper()
        if node.value.endswith((".", ":")) and "\n" not in node.value
    }
    return sorted(found)


IDS = [*(check.id for check in catalog.CHECKS), catalog.PYTHON.id, catalog.DELIVERY.id]


def local(check: str, why: str, fix: str) -> CheckResult:
    return on_this_machine(CheckResult(check, "", CheckStatus.FAIL, why, fix), PYTHON)


def test_the_payload_has_remedies_to_be_reworded() -> None:
    assert len([text for text in sentences() if "container" in text.lower()]) > 10


@pytest.mark.parametrize("check", IDS)
def test_no_remedy_speaks_of_a_container(check: str) -> None:
    for fix in sentences():
        shown = local(check, "something in the container is wrong", fix).fix
        assert shown
        words = {word.strip(".,;:()").lower() for word in shown.split()}
        assert not words & {"container", "containers", "launch", "launched", "image", "images"}, (fix, shown)


def test_a_remedy_that_holds_everywhere_stays() -> None:
    for fix in ("Unset CUDA_LAUNCH_BLOCKING.", "Free memory on the host.", ""):
        assert local("check.environment", "why", fix).fix == fix


@pytest.mark.parametrize(
    ("why", "word"),
    [
        ("there is no torch for /usr/bin/python3", "'/opt/my env/bin/python' -m pip install torch"),
        ("torch 2.9.0 is a CPU build: it cannot use the 1 GPU given", "CUDA build of torch"),
        ("torch 1.1, CPU build, imported in 1.0 s, older than 1.13", "install --upgrade torch"),
        ("torch cannot be imported: ImportError: broken", "--force-reinstall torch"),
        ("torch cannot be imported without a driver: libcuda.so.1", "gpuconsole doctor"),
    ],
)
def test_what_torch_lacks_is_said_not_sent_to_the_doctor(why: str, word: str) -> None:
    assert word in local("check.torch", why, "Take an image with PyTorch.").fix


def test_what_was_seen_is_seen_here() -> None:
    assert local("check.python", "there is no Python in the container", "").why == "there is no Python here"
    assert local("check.shm", "the container takes no file", "").why == "this machine takes no file"


@pytest.mark.parametrize(
    ("fix", "word"),
    [
        (obstacles.look_at_logs("the checks were killed (exit code -9)"), "memory ran out"),
        (obstacles.look_at_logs("the checks ended"), "Run the check again."),
        ("Give the container more shared memory: --shm-size 8g or --ipc host.", "/dev/shm"),
    ],
)
def test_why_a_run_broke_off_comes_before_what_the_check_looks_at(fix: str, word: str) -> None:
    assert word in local("check.torch", "the checks ended while it ran", fix).fix
