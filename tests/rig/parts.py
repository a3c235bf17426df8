"""The rig's parts by name: what each is, and how it is started."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.rig import images
from tests.rig.client import EngineClient
from tests.rig.engines import start_engine
from tests.rig.gpus import TWO_GPUS
from tests.rig.kinds import KINDS
from tests.rig.nvml.build import NoCompiler
from tests.rig.nvml.presets import box
from tests.rig.nvml.simulated import STATE_VARIABLE, open_box
from tests.rig.owner import Rig
from tests.rig.places import RigError, RigUnavailable
from tests.rig.podman import Podman
from tests.rig.registry import PASSWORD, USER, Registry
from tests.rig.ssh import SshServer
from tests.rig.tmux import Tmux


@dataclass(slots=True)
class Running:
    """What has been started so far, and the environment that leads to it."""

    rig: Rig
    engines: list[EngineClient] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Part:
    """Something the rig can start."""

    name: str
    text: str
    start: Callable[[Running], None]


def _engine(name: str, *, toolkit: bool | None) -> Callable[[Running], None]:
    def start(running: Running) -> None:
        engine = start_engine(running.rig, name, toolkit=toolkit)
        running.engines.append(engine)
        for key, value in engine.env().items():
            running.environment.setdefault(key, value)  # the first engine is the one DOCKER_HOST names
        suffix = engine.name.upper().replace(".", "_").replace("-", "_")
        running.environment[f"GPUCONSOLE_RIG_ENGINE_{suffix}"] = engine.host

    return start


def _podman(running: Running) -> None:
    podman = Podman(running.rig)
    running.engines.append(podman)
    for key, value in podman.env().items():
        running.environment.setdefault(key, value)
    running.environment["GPUCONSOLE_RIG_PODMAN"] = podman.host


def _image(name: str) -> Callable[[Running], None]:
    def load(running: Running) -> None:
        if not running.engines:
            raise RigError(f"{name} is an image: name an engine before it")
        for engine in running.engines:
            engine.load(name)

    return load


def _registry(*, password: bool) -> Callable[[Running], None]:
    def start(running: Running) -> None:
        registry = Registry(running.rig, password=password)
        name = "GPUCONSOLE_RIG_REGISTRY_WITH_PASSWORD" if password else "GPUCONSOLE_RIG_REGISTRY"
        running.environment[name] = registry.address

    return start


def _nvml(running: Running) -> None:
    try:
        simulated = open_box(running.rig.subfolder("n"), box(len(TWO_GPUS)))
    except NoCompiler as error:
        raise RigUnavailable(str(error)) from error
    found = simulated.env(running.environment)
    running.environment |= {name: found[name] for name in ("LD_LIBRARY_PATH", STATE_VARIABLE)}


def _tmux(running: Running) -> None:
    server = Tmux(running.rig, env={**os.environ, **running.environment})
    server.session()
    running.environment |= server.environment()


def _sshd(running: Running) -> None:
    server = SshServer(running.rig, env=running.environment)
    running.environment["GPUCONSOLE_RIG_SSH"] = shlex.join(server.command())


def _parts() -> tuple[Part, ...]:
    found = []
    for kind in KINDS.values():
        ways = "CDI" if kind.has_cdi else "the toolkit's hook"
        found.append(Part(kind.name, f"a Docker engine; GPUs by {ways}", _engine(kind.name, toolkit=None)))
        other = "+toolkit" if kind.has_cdi else "-toolkit"
        text = "the same with the toolkit's hook too" if kind.has_cdi else "the same without the toolkit: no GPUs"
        found.append(Part(f"{kind.name}{other}", text, _engine(kind.name, toolkit=kind.has_cdi)))
    found += [
        Part(name, f"the image {recipe.reference}, in every engine named before it", _image(name))
        for name, recipe in images.RECIPES.items()
    ]
    found += [
        Part("podman", "Podman's Docker-compatible service; no GPUs", _podman),
        Part("registry", "a registry on loopback", _registry(password=False)),
        Part("registry-password", f"a registry for user {USER}, password {PASSWORD}", _registry(password=True)),
        Part("nvml", "a simulated NVIDIA driver with the GPUs the engines hand out", _nvml),
        Part("tmux", "a tmux server with one session; $TMUX leads to it", _tmux),
        Part("sshd", "an SSH server on loopback; $GPUCONSOLE_RIG_SSH is the command", _sshd),
    ]
    return tuple(found)


PARTS = {part.name: part for part in _parts()}


def start(rig: Rig, names: list[str]) -> Running:
    """Start parts in the order they are named."""
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        raise RigError(f"no such part: {', '.join(unknown)} (see `python -m tests.rig list`)")
    running = Running(rig)
    for name in names:
        PARTS[name].start(running)
    return running
