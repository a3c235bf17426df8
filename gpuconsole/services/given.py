"""Which GPUs running containers were given, though nothing of them is there: as the engine tells, or as remembered."""

from __future__ import annotations

import os
import time

from gpuconsole.core.records import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from gpuconsole.engine.model import Container
    from gpuconsole.gpu.model import Gpu
    from gpuconsole.host.model import HostView

_QUICK_S = 0.2
_NEWEST = 64
_SEARCH_S = 0.1
"""On a machine with very many processes the search is given up: what is not found counts as ended."""


@dataclass(frozen=True, slots=True)
class Launched:
    """A container that was launched from here, and whose end is not remembered."""

    id: str
    name: str
    gpus: tuple[str, ...] = ()
    """UUIDs of GPUs and MIG instances it was given."""


def with_containers(view: HostView, containers: Iterable[Container]) -> HostView:
    """``view``, where each GPU knows the running containers that were given it."""
    from gpuconsole.launch.claims import claims_of

    claims = claims_of(containers, view.snapshot.gpus)
    return _given(view, {uuid: tuple(one.name for one in found) for uuid, found in claims.items()})


def with_launches(view: HostView, launched: Sequence[Launched], *, proc: Path | str = "/proc") -> HostView:
    """``view``, where each GPU knows the remembered containers that were given it and run by what ``proc`` shows."""
    return _given(view, names_of(launched, proc=proc))


def names_of(launched: Sequence[Launched], *, proc: Path | str = "/proc") -> dict[str, tuple[str, ...]]:
    """UUID of a GPU or instance → the remembered containers that were given it and run by what ``proc`` shows."""
    names: dict[str, tuple[str, ...]] = {}
    alive = _running({one.id for one in launched if one.gpus}, proc)
    for one in launched:
        for uuid in one.gpus if one.id in alive else ():
            names[uuid] = (*names.get(uuid, ()), one.name)
    return names


def with_given(view: HostView, given: Mapping[str, tuple[str, ...]]) -> HostView:
    """``view``, where each GPU knows the containers that were given it, by its UUID."""
    return _given(view, given)


def _given(view: HostView, names: Mapping[str, tuple[str, ...]]) -> HostView:
    if not names and not any(entry.given_to for entry in view.gpus):
        return view
    return replace(view, gpus=tuple(replace(entry, given_to=of_gpu(entry.gpu, names)) for entry in view.gpus))


def of_gpu(gpu: Gpu, names: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Those who were given the GPU, or an instance of it: as a whole it is not free then."""
    units = (gpu.uuid, *(mig.uuid for mig in gpu.migs))
    return tuple(dict.fromkeys(name for uuid in units if uuid for name in names.get(uuid, ())))


def remembered(path: Path | None = None) -> tuple[Launched, ...]:
    """The containers launched from here whose end is not remembered, newest first; without asking any engine.

    What cannot be read is nothing remembered: a status must not fail for it, nor make a file that is not there.

    Args:
        path: File of the records; None takes the usual one.
    """
    from gpuconsole.core.paths import STORE, state_folder

    file = path or os.path.join(state_folder(), STORE)
    return _records(file) if os.path.exists(file) else ()


def _records(file: Path | str) -> tuple[Launched, ...]:
    import sqlite3

    from gpuconsole.core.jsontext import parsed
    from gpuconsole.core.text import plain_line

    found = []
    try:
        # These three mean something in the address of a file; the rest of a path may stand in it as it is.
        address = os.path.realpath(file).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        connection = sqlite3.connect(f"file:{address}?mode=ro", uri=True, timeout=_QUICK_S)
        try:
            rows = connection.execute(
                "SELECT container_id, name, gpus FROM launches WHERE ended_at IS NULL AND container_id IS NOT NULL"
                " ORDER BY number DESC LIMIT ?",
                (_NEWEST,),
            ).fetchall()
        finally:
            connection.close()
        for container_id, name, gpus in rows:
            uuids = tuple(str(uuid) for uuid in parsed(str(gpus).encode()))
            found.append(Launched(str(container_id), plain_line(str(name), limit=200), uuids))
    except (sqlite3.Error, ValueError, TypeError):
        return ()
    return tuple(found)


def _running(ids: set[str], proc: Path | str) -> set[str]:
    """Those of ``ids`` that are containers with a process: the name of its control group says so, wherever it is."""
    found: set[str] = set()
    missing = {one.encode(): one for one in ids if len(one) == 64 and one.isalnum()}
    until = time.monotonic() + _SEARCH_S
    for name in _names(proc) if missing else ():
        try:
            with open(os.path.join(proc, name, "cgroup"), "rb") as file:
                group = file.read()
        except OSError:
            continue
        for text in [text for text in missing if text in group]:
            found.add(missing.pop(text))
        if not missing or time.monotonic() > until:
            break
    return found


def _names(proc: Path | str) -> list[str]:
    """Processes, the newest first."""
    try:
        return sorted(filter(str.isdecimal, os.listdir(proc)), key=int, reverse=True)
    except OSError:
        return []
