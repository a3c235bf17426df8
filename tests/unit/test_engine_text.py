"""Whatever text an engine sends, nothing of it that a terminal would obey gets past the adapter."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from gpuconsole.core.errors import ConsoleError
from gpuconsole.engine.docker.engine import DockerEngine
from gpuconsole.engine.endpoint import Endpoint
from tests.cli.engines import OBEYED
from tests.unit.canned import CannedEngine, answer

POISON = "\x1b]0;pwned\x07\x1b[2J\u202e\x9b31m\r\x08\u200b"
ID, IMAGE = "ab" * 32, "sha256:" + "cd" * 32
CLEAN = {"Id", "ID", "Created", "StartedAt", "FinishedAt", "Type", "ApiVersion", "MinAPIVersion", "HostPort", "State"}
"""Fields by which things are found and told apart; another value would only be another kind of answer."""
OPEN = {"Labels", "Annotations", "Runtimes", "Networks", "Tmpfs", "Attributes", "ExposedPorts"}
"""Objects whose keys, too, are text from outside."""

CONTAINER: dict[str, Any] = {
    "Id": ID, "Name": "/train", "Image": IMAGE, "Created": "2026-01-01T00:00:00Z", "RestartCount": 1,
    "State": {"Status": "exited", "Error": "broken", "ExitCode": 1, "FinishedAt": "2026-01-01T00:00:00Z",
              "Health": {"Status": "unhealthy"}},
    "Config": {"Image": "pytorch:1", "Env": ["NAME=value", "ALONE"], "Cmd": ["python", "x.py"], "Entrypoint": ["sh"],
               "WorkingDir": "/work", "User": "mei", "Hostname": "host", "Labels": {"key": "value"},
               "ExposedPorts": {"80/tcp": {}}},
    "HostConfig": {"Runtime": "runc", "IpcMode": "private", "RestartPolicy": {"Name": "always"},
                   "Tmpfs": {"/tmp": "ro"}, "Annotations": {"cdi.k8s.io/x": "nvidia.com/gpu=GPU-1"},
                   "Devices": [{"PathOnHost": "/dev/nvidia0"}, {"PathOnHost": "nvidia.com/gpu=1"}],
                   "DeviceRequests": [{"Driver": "nvidia", "DeviceIDs": ["GPU-2"], "Capabilities": [["gpu"]]}]},
    "Mounts": [{"Type": "bind", "Source": "/data", "Destination": "/data"},
               {"Type": "volume", "Name": "vol", "Source": "/x", "Destination": "/v"}],
    "NetworkSettings": {"Networks": {"bridge": {}},
                        "Ports": {"80/tcp": [{"HostIp": "127.0.0.1", "HostPort": "8080"}], "81/udp": None}},
}  # fmt: skip
SUMMARY = {"Id": ID, "Names": ["/train"], "Image": "pytorch:1", "ImageID": IMAGE, "State": "exited",
           "Status": "Exited (1)", "Labels": {"key": "value"}, "Created": 1}  # fmt: skip
PICTURE: dict[str, Any] = {
    "Id": IMAGE, "RepoTags": ["pytorch:1"], "RepoDigests": ["pytorch@sha256:1"], "Architecture": "amd64", "Os": "linux",
    "Created": "2026-01-01T00:00:00Z", "Size": 5,
    "Config": {"Env": ["PYTORCH_VERSION=2.9"], "Cmd": ["bash"], "Entrypoint": ["sh"], "Labels": {"k": "v"},
               "User": "mei", "WorkingDir": "/w"},
}  # fmt: skip
INFO: dict[str, Any] = {
    "ServerVersion": "28.0", "OSType": "linux", "OperatingSystem": "Debian", "KernelVersion": "6.1",
    "Architecture": "x86_64", "CgroupVersion": "2", "CgroupDriver": "systemd", "Driver": "overlay2",
    "DockerRootDir": "/var/lib/docker", "Runtimes": {"runc": {}, "nvidia": {}}, "DefaultRuntime": "runc",
    "CDISpecDirs": ["/etc/cdi"], "SecurityOptions": ["name=rootless"], "Warnings": ["careful"],
    "DiscoveredDevices": [{"Source": "cdi", "ID": "nvidia.com/gpu=0"}],
    "DriverStatus": [["driver-type", "io.containerd.snapshotter.v1"]],
}  # fmt: skip
HISTORY = [{"CreatedBy": "RUN pip install torch"}]


def poisoned(value: Any, *, name: str = "") -> Any:
    """``value`` with something for a terminal in every text of it."""
    if isinstance(value, dict):
        return {
            (key + POISON if name in OPEN else key): poisoned(item, name=key) if key not in CLEAN else item
            for key, item in value.items()
        } | {key: poisoned(item, name=key) for key, item in value.items() if key == "State" and isinstance(item, dict)}
    if isinstance(value, list):
        return [poisoned(item, name=name) for item in value]
    return f"{value[:1]}{POISON}{value[1:]}{POISON}" if isinstance(value, str) else value


def texts(value: object) -> Iterator[str]:
    """Every text in what an adapter gave."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from texts(getattr(value, field.name))
    elif isinstance(value, Enum):
        return
    elif isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from texts([*value.keys(), *value.values()])
    elif isinstance(value, (tuple, list, set, frozenset)):
        for item in value:
            yield from texts(item)


@pytest.fixture
def hostile(tmp_path: Path) -> Iterator[DockerEngine]:
    """An engine that poisons all it says."""
    replies = {
        "/containers/json": answer([poisoned(SUMMARY)]),
        f"/containers/{ID}/json": answer(poisoned(CONTAINER)),
        "/containers/refused/json": answer({"message": poisoned("it is broken")}, status="500 Internal Server Error"),
        "/containers/missing/json": answer({"message": poisoned("No such container")}, status="404 Not Found"),
        "/images/json": answer([{"Id": IMAGE, **poisoned({"RepoTags": ["pytorch:1"], "Labels": {"k": "v"}})}]),
        "/history": answer(poisoned(HISTORY)),
        "/images/": answer(poisoned(PICTURE)),
        "/info": answer(poisoned(INFO)),
        "/volumes": answer({"Volumes": [poisoned({"Name": "vol", "Driver": "local"})]}),
        "/events": answer(
            poisoned({"Type": "container", "Action": "die", "Actor": {"ID": ID, "Attributes": {"name": "train"}}})
        ),
    }
    server = CannedEngine(tmp_path, dict(replies))
    engine = DockerEngine.connect(Endpoint(server.url, "--host"))
    yield engine
    engine.close()
    server.close()


ASKED: dict[str, Callable[[DockerEngine], object]] = {
    "containers": lambda engine: engine.containers(),
    "container": lambda engine: engine.container(ID),
    "images": lambda engine: engine.images(),
    "image": lambda engine: engine.image("pytorch:1"),
    "info": lambda engine: engine.info(),
    "volumes": lambda engine: engine.volumes(),
    "events": lambda engine: list(engine.events()),
}


@pytest.mark.parametrize("question", ASKED)
def test_text_of_an_engine_is_harmless_whatever_was_asked(hostile: DockerEngine, question: str) -> None:
    found = list(texts(ASKED[question](hostile)))
    assert [text for text in found if OBEYED & set(text)] == []
    assert [text for text in found if "pwned" in text or "31m" in text] == []
    assert len(found) >= {"containers": 25, "container": 25, "images": 8, "image": 8, "info": 15}.get(question, 1)


@pytest.mark.parametrize("reference", ["refused", "missing"])
def test_so_are_its_refusals(hostile: DockerEngine, reference: str) -> None:
    with pytest.raises(ConsoleError) as refusal:
        hostile.container(reference)
    error = refusal.value
    assert not OBEYED & set(error.message + error.hint + error.detail)
