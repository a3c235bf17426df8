"""Which process is behind an engine's socket: never another engine that happens to run beside it."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import psutil
import pytest

from gpuconsole.host import engineprocess
from gpuconsole.host.engineprocess import engine_process


@pytest.fixture
def dockerd(monkeypatch: pytest.MonkeyPatch) -> psutil.Process:
    """The one dockerd of the machine, as it would be found by its name."""
    found = psutil.Process(os.getpid())
    monkeypatch.setattr(engineprocess, "_by_name", lambda: found)
    return found


@pytest.mark.parametrize(("name", "is_dockerd"), [("docker.sock", True), ("own.sock", True), ("podman.sock", False)])
def test_a_socket_that_systemd_made_is_dockerds_unless_it_is_podmans(
    tmp_path: Path, dockerd: psutil.Process, name: str, is_dockerd: bool
) -> None:
    path = str(tmp_path / name)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()  # by this process, which is no engine
        assert engine_process(path) == (dockerd if is_dockerd else None)
    assert engine_process(path) is None, "nobody listens any more"
