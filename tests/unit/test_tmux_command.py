"""The command of a tmux window means the same engine and files as its caller, whatever the tmux server knows."""

from __future__ import annotations

import json
import subprocess

import pytest

from gpuconsole.services.tmux import our_command

PRINT = ["-c", "import json, os; print(json.dumps(dict(os.environ)))"]
DECIDING = [
    "GPUCONSOLE_HOST", "GPUCONSOLE_DEBUG", "GPUCONSOLE_CATALOG", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG",
    "DOCKER_TLS", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME",
    "PYTHONPATH", "NO_COLOR", "SSH_AUTH_SOCK", "LC_ALL",
]  # fmt: skip


def seen_in_a_window(caller: dict[str, str], server: dict[str, str]) -> dict[str, str]:
    """The environment of a program that a tmux with the environment ``server`` starts for ``caller``."""
    command = our_command([], environment=caller)
    words = [*command[: command.index("-P")], *PRINT]
    done = subprocess.run(words, env=server, capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", DECIDING)
def test_what_the_caller_has_is_there(name: str) -> None:
    for server in ({}, {name: "/of the server"}):
        assert seen_in_a_window({"PATH": "/usr/bin:/bin", name: "/of the caller"}, server)[name] == "/of the caller"


@pytest.mark.parametrize("name", DECIDING)
def test_what_the_caller_has_not_is_not_there_either(name: str) -> None:
    assert name not in seen_in_a_window({"PATH": "/usr/bin:/bin"}, {name: "/of the server"})


def test_what_decides_nothing_stays_the_servers() -> None:
    seen = seen_in_a_window({"PATH": "/usr/bin:/bin", "HF_TOKEN": "hush"}, {"EDITOR": "vi", "TMUX": "x"})
    assert "HF_TOKEN" not in seen
    assert (seen["EDITOR"], seen["TMUX"]) == ("vi", "x")
