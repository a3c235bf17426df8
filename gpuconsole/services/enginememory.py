"""The limit that the containers of the engine share, where it runs on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuconsole.host.memorygroup import MemoryGroup, containers_parent, smallest_limit

if TYPE_CHECKING:
    from gpuconsole.engine.model import EngineInfo

_SOCKET = "unix://"


def shared_limit(info: EngineInfo) -> MemoryGroup | None:
    """The control group that bounds the memory of all containers of an engine; None when none does, or it is unknown.

    A limit of as much as the machine has bounds nothing.
    """
    if not info.local or not info.endpoint.startswith(_SOCKET):
        return None
    import psutil

    from gpuconsole.host.engineprocess import engine_process

    process = engine_process(info.endpoint.removeprefix(_SOCKET))
    if process is None:
        return None
    try:
        arguments = process.cmdline()
        with open(f"/proc/{process.pid}/cgroup", encoding="utf-8", errors="replace") as file:
            group = file.read()
    except (OSError, psutil.Error):
        return None
    parent = containers_parent(arguments, group, driver=info.cgroup_driver, rootless=info.rootless)
    found = smallest_limit(parent) if parent is not None else None
    if found is None or (info.memory_bytes is not None and found.limit_bytes >= info.memory_bytes):
        return None
    return found
