"""Whatever happens to who started it, nothing of a rig is left, and nothing of the machine's was touched."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rig import sweep
from tests.rig.client import EngineClient
from tests.rig.engines import Engine, start_engine
from tests.rig.network import bridges_of, interfaces
from tests.rig.owner import Rig, wait_until
from tests.rig.places import PROJECT, RIGS
from tests.rig.podman import Podman

pytestmark = pytest.mark.engine
STARTED = time.time()


def leftovers(folder: Path) -> list[object]:
    """Give whatever of a rig is still on the machine."""
    mounts = [line for line in Path("/proc/mounts").read_text().splitlines() if str(folder) in line]
    links = bridges_of(folder, sweep.bridge_prefix(folder))
    return [*sweep.members(folder), *mounts, *links, *sweep.remaining_cgroups(folder), *([folder] * folder.exists())]


def veths(folder: Path) -> set[str]:
    """Give the host's ends of the virtual cables of a rig's containers."""
    bridges = bridges_of(folder, sweep.bridge_prefix(folder))
    masters = {path.parent.name: path.resolve().name for path in Path("/sys/class/net").glob("veth*/master")}
    return {name for name, bridge in masters.items() if bridge in bridges}


OWNER = """
import sys, time
from tests.rig.client import EngineClient
from tests.rig.engines import start_engine
from tests.rig.owner import Rig
rig = Rig()
for name in ("20.10", "26.1"):
    engine = start_engine(rig, name)
    engine.docker("network", "create", "more")
    engine.docker("run", "-d", "--network", "more", engine.load("small"), "sleep", "1000")
print(rig.folder, flush=True)
time.sleep(1000)
"""


def test_nothing_is_left_when_the_owner_is_killed() -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER], cwd=PROJECT, stdout=subprocess.PIPE, text=True)
    assert owner.stdout
    folder = Path(owner.stdout.readline().strip())
    cables = veths(folder)
    assert len(cables) == 2
    assert len(sweep.members(folder)) > 6
    owner.kill()
    owner.wait()
    owner.stdout.close()
    wait_until(lambda: not leftovers(folder), what="the sweep")
    wait_until(lambda: not cables & set(interfaces("veth")), what="the end of the containers' networks")


def test_clean_removes_what_a_killed_supervisor_left(start_own_engine: Callable[..., Engine], rig: Rig) -> None:
    engine = start_own_engine("26.1")
    engine.docker("run", "-d", engine.load("small"), "sleep", "1000")
    rig.kill_supervisor()
    assert leftovers(rig.folder)
    subprocess.run([sys.executable, "-m", "tests.rig", "clean"], cwd=PROJECT, check=True, capture_output=True)
    assert not leftovers(rig.folder)


def test_two_rigs_live_side_by_side(engine_modern: Engine) -> None:
    with Rig() as other:
        second = start_engine(other, "26.1")
        for engine in (engine_modern, second):
            engine.docker("run", "-d", "--name", "same", "-p", "127.0.0.1::80", engine.load("small"), "sleep", "1000")
        assert engine_modern.get("/info")["ID"] != second.get("/info")["ID"]
        assert len(second.docker("ps", "-q").stdout.split()) == 1
    assert len(engine_modern.docker("ps", "-q").stdout.split()) == 1
    assert not leftovers(other.folder)


def test_the_machines_own_docker_is_not_touched(engine: EngineClient, small_image: str) -> None:
    engine.docker("run", "--rm", small_image, "true")
    homes = ("/var/run/docker.sock", "/var/run/docker.pid", "/var/lib/docker", "/etc/docker", "/run/containerd")
    mine = [path for path in map(Path, homes) if path.exists() and path.stat().st_mtime > STARTED]
    assert mine == []
    assert RIGS in engine.socket.parents


def start_of(pid: int) -> str | None:
    """When a process began, in ticks since the machine's start: its number may pass to another."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return None


def test_nothing_of_podman_is_left(rig: Rig) -> None:
    podman = Podman(rig)
    container = podman.docker("run", "-d", podman.load("small"), "sleep", "1000").stdout.strip()
    pid = podman.get(f"/containers/{container}/json")["State"]["Pid"]
    began = start_of(pid)
    rig.close()
    assert start_of(pid) != began
    assert not leftovers(rig.folder)
    assert not list(Path("/sys/fs/cgroup").glob(f"**/libpod-{container}"))
