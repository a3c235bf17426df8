"""CPU and memory beside what ``docker stats`` prints of the same containers."""

from __future__ import annotations

import json

import pytest

from gpuconsole.core.text import parse_size
from gpuconsole.engine.docker.engine import DockerEngine
from gpuconsole.engine.endpoint import Endpoint
from gpuconsole.engine.request import CreateRequest
from tests.engine.contract import until
from tests.rig.client import EngineClient
from tests.rig.kinds import RUNTIMES

pytestmark = pytest.mark.engine(*RUNTIMES)
CACHED, HELD = 48 << 20, 20 << 20


def printed(engine: EngineClient, identity: str) -> tuple[float, int, int]:
    """CPU, memory and processes as the docker command prints them."""
    line = json.loads(engine.docker("stats", "--no-stream", "--format", "{{json .}}", identity).stdout)
    return float(line["CPUPerc"].rstrip("%")), parse_size(line["MemUsage"].split("/")[0]), int(line["PIDs"])


def test_memory_is_what_docker_stats_prints(engine: EngineClient, small_image: str) -> None:
    """What a process holds counts, the file cache it leaves does not; the printed figure is rounded to 4 digits."""
    ours = DockerEngine.connect(Endpoint(engine.host, "--host"))
    script = (
        f"head -c {CACHED} /dev/zero >/cached; cat /cached >/dev/null; head -c {HELD} /dev/zero >/dev/shm/held; "
        "echo ready; sleep 1000"
    )
    identity = ours.create(CreateRequest(image=small_image, command=("sh", "-c", script)))
    ours.start(identity)
    until(lambda: any(b"ready" in data for _, data in ours.logs(identity)), what="the process to hold its memory")
    found = ours.usage(identity)
    _, memory, pids = printed(engine, identity)
    assert found.memory_bytes is not None
    assert abs(found.memory_bytes - memory) <= max(0.02 * memory, 1 << 20)
    assert HELD <= found.memory_bytes < CACHED
    assert found.pids == pids
    ours.close()


def test_cpu_is_what_docker_stats_prints(engine: EngineClient, small_image: str) -> None:
    """The measures are taken one after the other on a shared machine, so only their order of size can be compared:
    half a core, which the engine allows, and nothing. The formula itself is held by the unit tests."""
    ours = DockerEngine.connect(Endpoint(engine.host, "--host"))
    busy, idle = (
        ours.create(CreateRequest(image=small_image, command=("sh", "-c", script), cpus=0.5))
        for script in ("while :; do :; done", "sleep 1000")
    )
    for identity in (busy, idle):
        ours.start(identity)
    found = ours.usages([busy, idle])
    theirs, _, _ = printed(engine, busy)
    mine, quiet = found[busy].cpu_pct, found[idle].cpu_pct
    assert mine is not None
    assert quiet is not None
    assert 0 <= quiet < mine <= 75
    assert 0 < theirs <= 75
    ours.close()
