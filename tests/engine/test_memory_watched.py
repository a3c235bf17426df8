"""What the forecast takes for a container's memory: what can kill it, not the files it reads."""

from __future__ import annotations

import pytest

from gpuconsole.engine.docker.engine import DockerEngine
from gpuconsole.engine.endpoint import Endpoint
from gpuconsole.engine.request import CreateRequest
from gpuconsole.gpu.forecast_model import Subject
from gpuconsole.gpu.model import GpuSnapshot
from gpuconsole.host.model import HostView
from gpuconsole.host.usage import UsageReader, pids_of
from gpuconsole.services.memorywatch import MemoryWatch
from tests.engine.contract import until
from tests.rig.client import EngineClient
from tests.rig.kinds import RUNTIMES

pytestmark = pytest.mark.engine(*RUNTIMES)
READ, HELD = 96 << 20, 20 << 20


def test_a_data_set_that_is_read_in_each_epoch_is_no_memory_that_fills(engine: EngineClient, small_image: str) -> None:
    ours = DockerEngine.connect(Endpoint(engine.host, "--host"))
    script = (
        f"head -c {READ} /dev/urandom >/data; sync; head -c {HELD} /dev/zero >/dev/shm/held; "
        "for epoch in 1 2 3; do cat /data >/dev/null; done; echo ready; sleep 1000"
    )
    request = CreateRequest(image=small_image, command=("sh", "-c", script), memory_bytes=256 << 20)
    identity = ours.create(request)
    ours.start(identity)
    until(lambda: any(b"ready" in data for _, data in ours.logs(identity)), what="the third epoch")
    container = ours.container(identity)
    usages = UsageReader().read(pids_of([(identity, container.pid)]))
    if usages[identity].memory_bytes is None or usages[identity].memory_kept_bytes is None:
        pytest.skip("the kernel does not tell the cache of this container")
    view = MemoryWatch().look(HostView(GpuSnapshot(0.0)), [container], usages)
    assert view.memory is not None
    (pool,) = [each for each in view.memory.pools if each.subject is Subject.CONTAINER]
    assert pool.used_bytes is not None
    assert HELD <= pool.used_bytes < READ, "the shared memory it holds counts, the files it read do not"
    assert pool.limit_bytes == 256 << 20
    ours.close()
