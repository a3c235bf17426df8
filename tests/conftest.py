"""What every test gets: the rig's real parts, and an environment without the user's settings."""

from __future__ import annotations

import importlib.util
import signal
from pathlib import Path

import pytest

from tests.rig.places import CACHE

pytest_plugins = ["tests.rig.fixtures", "tests.rig.order"]
if (Path(__file__).parent / "rig/nvml/fixtures.py").exists() and importlib.util.find_spec("tests.rig.nvml.fixtures"):
    pytest_plugins.append("tests.rig.nvml.fixtures")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in a shell's background; programs under test inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

_USERS = (
    "COLORTERM COLUMNS LINES DOCKER_CONTEXT DOCKER_HOST DOCKER_TLS_VERIFY DOCKER_CERT_PATH DOCKER_API_VERSION "
    "CONTAINER_HOST NO_COLOR FORCE_COLOR TMUX TMUX_PANE GPUCONSOLE_CATALOG"
)


@pytest.fixture(autouse=True)
def without_the_users_settings(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Hide the user's engine, colours and configuration from the program."""
    home = tmp_path_factory.mktemp("user")
    for name in _USERS.split():
        monkeypatch.delenv(name, raising=False)
    for name in ("CONFIG", "DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(home / name.lower()))
    monkeypatch.setenv("DOCKER_CONFIG", str(home / "docker"))
    monkeypatch.setenv("GPUCONSOLE_LOCKS", str(home))  # tests at the same time have GPUs of the same name
    monkeypatch.setenv("GPUCONSOLE_RIG_CACHE", str(CACHE))  # rigs that tests start as programs share the cache
