"""libcuda asked directly, through a stand-in that answers as the real one has been seen to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpuconsole.probes import archive
from gpuconsole.probes.payload import libcuda
from tests.payload.libcuda import build


@pytest.fixture
def path(tmp_path: Path) -> str:
    """The archive as a file."""
    path = tmp_path / "payload.pyz"
    path.write_bytes(archive.build().data)
    return str(path)


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The stand-in, found by processes started from now on."""
    folder = build(tmp_path / "driver")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(folder))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return folder


def ask(path: str, **environ: str) -> dict[str, Any]:
    """What the payload's driver mode says."""
    done = subprocess.run(
        [sys.executable, "-S", path, "driver"], env=os.environ | environ, capture_output=True, text=True, check=True
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_a_driver_that_works(path: str, driver: Path) -> None:
    answer = ask(path, STUB_COUNT="2")
    assert (answer["library"], answer["init"], answer["version"]) == (True, 0, 12080)
    assert answer["uuids"] == ["00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000001"]
    assert answer["path"] == str(driver / "libcuda.so.1")


def test_a_driver_that_does_not_start(path: str, driver: Path) -> None:
    answer = ask(path, STUB_INIT="804")
    assert (answer["library"], answer["init"], answer["uuids"]) == (True, 804, [])


def test_no_driver(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    answer = ask(path)
    if answer["library"]:
        pytest.skip("this machine has a driver")
    assert "libcuda.so.1" in answer["error"]


def test_asked_apart_a_variable_can_be_left_out(path: str, driver: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    hidden = libcuda.ask_apart(path)
    shown = libcuda.ask_apart(path, without=("CUDA_VISIBLE_DEVICES",))
    assert hidden is not None
    assert shown is not None
    assert (hidden["init"], len(hidden["uuids"])) == (100, 0)
    assert (shown["init"], len(shown["uuids"])) == (0, 1)


def test_asked_apart_a_driver_that_hangs_gives_no_answer(
    path: str, driver: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_HANG", "1")
    assert libcuda.ask_apart(path, timeout_s=1.0) is None
