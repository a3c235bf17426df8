"""The options of a launch as texts, and the spec they amount to: every wrong one is named at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from gpuconsole.core.errors import ExitCode
from gpuconsole.core.text import parse_size
from gpuconsole.engine.model import GpuPath, Mount
from gpuconsole.engine.request import PortRequest
from gpuconsole.launch import fields, limits
from gpuconsole.launch.fields import PathProblem, Surroundings, shown
from gpuconsole.launch.spec import (
    FieldProblem,
    Force,
    GpuWishKind,
    LaunchSpec,
    PullPolicy,
    SpecInvalid,
    Variable,
    VariableSource,
)
from gpuconsole.launch.variables import parse_variable, read_env_file
from gpuconsole.launch.wish import parse_gpus

_T = TypeVar("_T")
_LONG_QUOTE = re.compile(r"'([^']{60})[^']{20,}'")
GPU_VARIABLE = "NVIDIA_VISIBLE_DEVICES"
"""NVIDIA's runtime reads the GPUs a container gets from it, so nobody else may set it."""


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """What was typed; a field is None or empty when its option was not given."""

    image: str
    command: tuple[str, ...] = ()
    entrypoint: str | None = None
    name: str | None = None
    gpus: str | None = None
    gpu_path: str | None = None
    volumes: tuple[str, ...] = ()
    ports: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    env_files: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    working_dir: str | None = None
    user: str = "image"
    hostname: str | None = None
    shm_size: str | None = None
    ipc: str | None = None
    network: str | None = None
    memory: str | None = None
    cpus: str | None = None
    ulimits: tuple[str, ...] = ()
    restart: str | None = None
    auto_remove: bool = False
    init: bool = True
    interactive: bool | None = None
    pull: str = "missing"
    force: tuple[str, ...] = ()


class _Collector:
    """Reads options one after the other and keeps what is wrong with each."""

    def __init__(self) -> None:
        self.problems: list[FieldProblem] = []

    def wrong(self, field: str, message: str, *, exit_code: ExitCode = ExitCode.USAGE) -> None:
        self.problems.append(FieldProblem(field, _LONG_QUOTE.sub(r"'\1…'", message), exit_code))

    def read(self, field: str, text: str | None, parse: Callable[[str], _T]) -> _T | None:
        """What ``parse`` makes of ``text``; None when it was not given or is wrong."""
        if text is None:
            return None
        try:
            if reason := fields.not_text(text):
                raise ValueError(f"it has {reason}, which the engine does not take")
            return parse(text)
        except PathProblem as error:
            self.wrong(field, str(error), exit_code=error.exit_code)
        except ValueError as error:
            self.wrong(field, str(error))
        return None

    def each(self, field: str, texts: Iterable[str], parse: Callable[[str], _T]) -> tuple[_T, ...]:
        """The same for an option that is given several times."""
        return tuple(value for text in texts if (value := self.read(field, text, parse)) is not None)


def read_options(options: LaunchOptions, around: Surroundings) -> LaunchSpec:
    """The spec that ``options`` amount to.

    Raises:
        SpecInvalid: With every field that cannot be used.
    """
    collect = _Collector()
    read, each = collect.read, collect.each
    spec = LaunchSpec(
        image=read("IMAGE", options.image, fields.parse_image) or "",
        command=each("COMMAND", options.command, str),
        entrypoint=_entrypoint(read("--entrypoint", options.entrypoint, str)),
        name=read("--name", options.name, fields.parse_name),
        gpus=read("--gpus", options.gpus, parse_gpus),
        gpu_path=read("--gpu-path", options.gpu_path, _gpu_path),
        mounts=each("--volume", options.volumes, lambda text: fields.parse_volume(text, around)),
        ports=each("--publish", options.ports, fields.parse_port),
        variables=_variables(collect, options, around),
        env_files=tuple(around.absolute(path) for path in options.env_files),
        labels=tuple(dict(each("--label", options.labels, fields.parse_label)).items()),
        working_dir=read("--workdir", options.working_dir, fields.parse_working_dir),
        user=read("--user", options.user, lambda text: limits.parse_user(text, uid=around.uid, gid=around.gid)),
        hostname=read("--hostname", options.hostname, fields.parse_hostname),
        shm_bytes=read("--shm-size", options.shm_size, parse_size),
        ipc_mode=read("--ipc", options.ipc, fields.parse_ipc),
        network=read("--network", options.network, fields.parse_network),
        memory_bytes=read("--memory", options.memory, limits.parse_memory),
        cpus=read("--cpus", options.cpus, limits.parse_cpus),
        ulimits=each("--ulimit", options.ulimits, limits.parse_ulimit),
        restart_policy=read("--restart", options.restart, limits.parse_restart),
        auto_remove=options.auto_remove,
        init=options.init,
        interactive=options.interactive,
        pull=read("--pull", options.pull, _choice(PullPolicy)) or PullPolicy.MISSING,
        force=frozenset(each("--force", options.force, _choice(Force))),
    )
    _check_together(collect, spec)
    if collect.problems:
        raise SpecInvalid(collect.problems)
    return spec


def _choice(choices: type[_T]) -> Callable[[str], _T]:
    def parse(text: str) -> _T:
        try:
            return choices(text)  # type: ignore[call-arg]
        except ValueError as error:
            known = ", ".join(str(choice) for choice in choices)  # type: ignore[attr-defined]
            raise ValueError(f"{text!r} is not known; known: {known}") from error

    return parse


def _gpu_path(text: str) -> GpuPath | None:
    if text == "auto":
        return None
    if text == GpuPath.NONE:
        raise ValueError("write --gpus none for a container without GPUs")
    return _choice(GpuPath)(text)


def _entrypoint(text: str | None) -> tuple[str, ...] | None:
    # An empty text empties the image's entrypoint; the engine's API spells that as one empty word.
    return None if text is None else (text,)


def _variables(collect: _Collector, options: LaunchOptions, around: Surroundings) -> tuple[Variable, ...]:
    """Files first, then ``-e``; the last one of a name wins, as docker has it."""
    found: dict[str, Variable] = {}
    for path in options.env_files:
        entries = collect.read("--env-file", around.absolute(path), read_env_file) or ()
        for name, value in entries:
            if value is None:
                value = around.environment.get(name)
            if value is None:
                continue
            if reason := fields.not_text(value):
                told = f"{shown(name)}, which {shown(path)} takes from this shell, has {reason} in it"
                collect.wrong("--env-file", told)
            found[name] = Variable(name, value, VariableSource.FILE)
    for variable in collect.each("--env", options.environment, lambda text: parse_variable(text, around.environment)):
        found[variable.name] = variable
    return tuple(found.values())


def _check_together(collect: _Collector, spec: LaunchSpec) -> None:
    """What is right alone and wrong beside another option."""
    wrong = collect.wrong
    if spec.entrypoint == ("",) and not spec.command:
        wrong("--entrypoint", "'' takes the image's command away as well; give a command after --")
    if spec.shm_bytes is not None and spec.ipc_mode is not None and not own_shm(spec.ipc_mode):
        wrong("--shm-size", f"has no effect with --ipc {spec.ipc_mode}; leave one of them out")
    if spec.auto_remove and spec.restart_policy is not None:
        wrong("--restart", "a container that is removed when it ends (--rm) cannot be restarted")
    if spec.hostname is not None and spec.network is not None and spec.network.startswith("container:"):
        wrong("--hostname", f"has no effect with --network {spec.network}")
    if spec.ports and spec.network is not None and spec.network.partition(":")[0] in ("host", "none", "container"):
        wrong("--publish", f"has no effect with --network {spec.network}")
    if (
        spec.memory_bytes is not None
        and spec.shm_bytes is not None
        and (spec.ipc_mode is None or own_shm(spec.ipc_mode))
        and spec.shm_bytes > spec.memory_bytes
    ):
        wrong("--shm-size", "is larger than --memory, which it counts against")
    without_gpus = spec.gpus is not None and spec.gpus.kind is GpuWishKind.NONE
    if not without_gpus and any(variable.name == GPU_VARIABLE for variable in spec.variables):
        wrong("--env", f"{GPU_VARIABLE} would override the choice of GPUs; use --gpus")
    _check_twice(collect, spec.mounts, spec.ports)


def own_shm(ipc_mode: str) -> bool:
    """Whether a container in this ipc mode has a ``/dev/shm`` of its own."""
    return ipc_mode in ("private", "shareable")


def _check_twice(collect: _Collector, mounts: tuple[Mount, ...], ports: tuple[PortRequest, ...]) -> None:
    targets = [mount.target for mount in mounts]
    for target in dict.fromkeys(target for target in targets if targets.count(target) > 1):
        collect.wrong("--volume", f"{shown(target)} is mounted twice")
    taken = [(port.host_ip, port.host_port, port.protocol) for port in ports if port.host_port]
    for place in dict.fromkeys(place for place in taken if taken.count(place) > 1):
        collect.wrong("--publish", f"{place[0]}:{place[1]}/{place[2]} is given twice")
