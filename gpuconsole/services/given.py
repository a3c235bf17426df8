"""Which GPUs running containers were given, though nothing of them is there: as the engine tells, or as remembered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuconsole.engine.model import Container
    from gpuconsole.host.model import GpuView, HostView

_GROUPS = ("docker/{}", "system.slice/docker-{}.scope", "machine.slice/libpod-{}.scope", "libpod_parent/libpod-{}")
"""Where the control group of a container stands in a hierarchy, unless somebody chose another place."""
_HIERARCHIES = ("", "unified", "systemd", "pids", "memory")
_QUICK_S = 0.2
_NEWEST = 64


@dataclass(frozen=True, slots=True)
class Launched:
    """A container that was launched from here and still runs."""

    id: str
    name: str
    gpus: tuple[str, ...] = ()
    """UUIDs of GPUs and MIG instances it was given."""


def with_containers(view: HostView, containers: Iterable[Container]) -> HostView:
    """``view``, where each GPU knows the running containers that were given it."""
    from gpuconsole.launch.claims import claims_of

    claims = claims_of(containers, view.snapshot.gpus)
    return _given(view, {uuid: tuple(one.name for one in found) for uuid, found in claims.items()})


def with_launches(view: HostView, launched: Iterable[Launched]) -> HostView:
    """``view``, where each GPU knows the remembered containers that were given it."""
    names: dict[str, tuple[str, ...]] = {}
    for one in launched:
        for uuid in one.gpus:
            names[uuid] = (*names.get(uuid, ()), one.name)
    return _given(view, names)


def _given(view: HostView, names: Mapping[str, tuple[str, ...]]) -> HostView:
    if not names and not any(entry.given_to for entry in view.gpus):
        return view
    return replace(view, gpus=tuple(replace(entry, given_to=_of(entry, names)) for entry in view.gpus))


def _of(entry: GpuView, names: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Those who were given the GPU, or an instance of it: as a whole it is not free then."""
    units = (entry.gpu.uuid, *(mig.uuid for mig in entry.gpu.migs))
    return tuple(dict.fromkeys(name for uuid in units if uuid for name in names.get(uuid, ())))


def remembered(path: Path | None = None, *, root: Path = Path("/")) -> tuple[Launched, ...]:
    """The containers launched from here that run by what this machine shows; without asking any engine.

    What cannot be read is nothing remembered: a status must not fail for it, nor make a file that is not there.

    Args:
        path: File of the records; None takes the usual one.
        root: Where the machine's file system is.
    """
    from gpuconsole.core.paths import state_dir
    from gpuconsole.core.store import FILE

    file = path or state_dir() / FILE
    if not file.exists():
        return ()
    return tuple(one for one in _records(file) if _runs(one.id, root))


def _records(file: Path) -> tuple[Launched, ...]:
    import json
    import sqlite3

    from gpuconsole.core.text import plain_line

    found = []
    try:
        connection = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True, timeout=_QUICK_S)
        try:
            rows = connection.execute(
                "SELECT container_id, name, gpus FROM launches WHERE ended_at IS NULL AND container_id IS NOT NULL"
                " ORDER BY number DESC LIMIT ?",
                (_NEWEST,),
            ).fetchall()
        finally:
            connection.close()
        for container_id, name, gpus in rows:
            uuids = tuple(str(uuid) for uuid in json.loads(gpus))
            found.append(Launched(str(container_id), plain_line(str(name), limit=200), uuids))
    except (sqlite3.Error, ValueError, TypeError):
        return ()
    return tuple(found)


def _runs(container_id: str, root: Path) -> bool:
    """Whether there is a control group of this container, which the engine removes when it ends."""
    if len(container_id) != 64 or not container_id.isalnum():
        return False
    mount = root / "sys/fs/cgroup"
    return any((mount / tree / group.format(container_id)).is_dir() for tree in _HIERARCHIES for group in _GROUPS)
