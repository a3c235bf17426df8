"""CDI specifications on this machine: which devices an engine can be asked for by name."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpuconsole.core.text import plain_line
from gpuconsole.host.blockyaml import YamlError, read_yaml

NVIDIA_KIND = "nvidia.com/gpu"
DEFAULT_DIRS = ("/etc/cdi", "/var/run/cdi")
"""Where engines look unless their configuration says otherwise."""
_MAX_BYTES = 4 * 2**20


@dataclass(frozen=True, slots=True)
class CdiDevice:
    """One device of a specification."""

    name: str
    """Fully qualified, as the engine wants it: ``nvidia.com/gpu=0``."""
    nodes: tuple[str, ...] = ()
    """Device nodes as they appear in the container: ``/dev/nvidia0``."""
    source: str = ""
    """The file it stands in."""

    @property
    def short_name(self) -> str:
        """What follows the ``=``: an index, a UUID, ``all``."""
        return self.name.partition("=")[2]


@dataclass(frozen=True, slots=True)
class CdiDevices:
    """What the specifications of some folders offer."""

    devices: tuple[CdiDevice, ...] = ()
    problems: tuple[str, ...] = ()
    """Files that could not be read, one sentence each."""


def read_cdi(folders: Iterable[str], *, root: Path = Path("/"), kind: str = NVIDIA_KIND) -> CdiDevices:
    """The devices of ``kind`` in the specifications of ``folders``; a later folder overrides an earlier one."""
    devices: dict[str, CdiDevice] = {}
    problems: list[str] = []
    for folder in folders:
        for path in _files(root / folder.lstrip("/"), problems):
            try:
                found = list(_devices(_load(path), kind, str(path)))
            except (OSError, ValueError, RecursionError) as error:
                problems.append(plain_line(f"{path} cannot be read: {_reason(error)}."))
                continue
            devices.update((device.name, device) for device in found)
    return CdiDevices(tuple(devices.values()), tuple(problems))


def _files(folder: Path, problems: list[str]) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix in (".json", ".yaml"))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        problems.append(plain_line(f"{folder} cannot be read: {_reason(error)}."))
        return []


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def _load(path: Path) -> object:
    if path.stat().st_size > _MAX_BYTES:
        raise YamlError("it is larger than any specification")
    text = path.read_bytes().decode("utf-8")
    return json.loads(text) if path.suffix == ".json" else read_yaml(text)


def _devices(content: object, kind: str, source: str) -> Iterator[CdiDevice]:
    """The devices of one specification; whatever is not as the format says is passed over."""
    if not isinstance(content, Mapping):
        raise YamlError("it is no CDI specification")
    if content.get("kind") != kind:
        return
    for device in _list(content.get("devices")):
        name = device.get("name") if isinstance(device, Mapping) else None
        if not isinstance(device, Mapping) or not isinstance(name, str) or not name:
            continue
        edits = device.get("containerEdits")
        nodes = _list(edits.get("deviceNodes")) if isinstance(edits, Mapping) else []
        paths = [node.get("path") for node in nodes if isinstance(node, Mapping)]
        yield CdiDevice(
            name=plain_line(f"{kind}={name}"),
            nodes=tuple(plain_line(path) for path in paths if isinstance(path, str)),
            source=source,
        )


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
