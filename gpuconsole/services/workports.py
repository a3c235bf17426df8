"""The host's port for a kind of work that is used through a browser: its usual one, else the next that is free."""

from __future__ import annotations

from gpuconsole.engine.model import EngineInfo
from gpuconsole.engine.protocol import Engine
from gpuconsole.host.ports import can_bind
from gpuconsole.launch.fields import LOOPBACK
from gpuconsole.launch.spec import LaunchSpec

_TRIES = 200


def work_port(engine: Engine, spec: LaunchSpec, info: EngineInfo) -> int:
    """The port to take on the host; 0 when the kind needs none, it was written, or the engine is to choose.

    A port of our choice stays the same when the container is started again, and so does the line that leads to it.
    """
    inside = spec.work.port
    if inside is None or not info.local or any(port.container_port == inside for port in spec.ports):
        return 0
    taken = {port.host_port for container in engine.containers(everything=False) for port in container.ports}
    for number in range(inside, inside + _TRIES):
        if number not in taken and can_bind(LOOPBACK, number) is not False:
            return number
    return 0
