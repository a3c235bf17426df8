"""The rig without pytest, and its parts beside Docker: Podman, a terminal, a line to a server."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rig.owner import wait_until
from tests.rig.places import MARK, PROJECT
from tests.rig.podman import Podman
from tests.rig.ssh import SshServer
from tests.rig.tmux import Tmux

pytestmark = pytest.mark.engine


def test_the_command_line_runs_something_with_an_engine() -> None:
    argv = [sys.executable, "-m", "tests.rig", "run", "26.1", "small", "--", "docker", "images", "-q"]
    done = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, check=True, timeout=120)
    assert re.fullmatch("[0-9a-f]{12}\n", done.stdout)


def test_the_command_line_holds_parts_until_it_is_told() -> None:
    argv = [sys.executable, "-m", "tests.rig", "up", "26.1", "registry"]
    with subprocess.Popen(argv, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as up:
        assert up.stdout
        lines = [up.stdout.readline()]
        while not lines[-1].startswith("# ready"):
            lines.append(up.stdout.readline())
            assert lines[-1], lines
        up.terminate()
        assert up.wait(timeout=60) == 0
    host = next(line for line in lines if line.startswith("export DOCKER_HOST="))
    assert not Path(host.strip().partition("unix://")[2]).exists()


def test_the_command_line_names_what_it_does_not_know() -> None:
    argv = [sys.executable, "-m", "tests.rig", "up", "nonsense"]
    done = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "nonsense" in done.stderr


def test_podman_answers_as_docker_does(podman: Podman) -> None:
    image = podman.load("small")
    container = podman.docker("run", "-d", "--name", "one", image, "sleep", "1000").stdout.strip()
    assert podman.docker("exec", "one", "id", "-u").stdout == "0\n"
    pid = podman.get("/containers/one/json")["State"]["Pid"]
    assert f"/libpod_parent/libpod-{container}" in Path(f"/proc/{pid}/cgroup").read_text()


def test_tmux_shows_what_is_typed(tmux: Tmux) -> None:
    pane = tmux.session()
    pane.send("tput cols; tput lines; echo $TERM in ${TMUX%%,*}")
    pane.keys("Enter")
    shown = pane.wait_for(f"tmux-256color in {tmux.socket}")
    assert "80\n24\n" in shown
    client = tmux.attach(pane)
    client.wait_for("tmux-256color in")
    client.close()


def test_a_session_over_ssh_is_a_terminal_and_ends_with_the_line(sshd: SshServer) -> None:
    session = sshd.session("exec sh", columns=100, rows=30)
    session.wait_for("# ")
    session.send("stty size; echo home $HOME\n")
    session.wait_for(f"home {sshd.home}")
    assert "30 100" in session.text
    session.send("exec sleep 4321\n")
    wait_until(lambda: sleeping(sshd), what="the program at the other end")
    session.cut()
    wait_until(lambda: not sleeping(sshd), what="the end of the session")
    session.close()


def sleeping(sshd: SshServer) -> bool:
    """Tell whether the session's program runs."""
    mark = f"{MARK}={sshd.rig.folder}".encode()
    found = [path for path in Path("/proc").glob("[0-9]*/cmdline") if content(path) == b"sleep\0004321\0"]
    return any(mark in content(path.with_name("environ")) for path in found)


def content(path: Path) -> bytes:
    """Give a file of /proc, or nothing when the process is gone."""
    try:
        return path.read_bytes()
    except OSError:
        return b""
