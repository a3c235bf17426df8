"""A request as the ``docker run`` line that does the same: pasted into a shell, it makes the same container.

Left out are our own labels, which say who launched a container through gpuconsole: that would not be true of one
started by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gpuconsole.engine.model import GpuPath, Mount
from gpuconsole.engine.request import CreateRequest, PortRequest
from gpuconsole.launch.gpupath import RUNTIME_NAME
from gpuconsole.launch.labels import PREFIX
from gpuconsole.launch.references import NO_REFERENCES, References, needs_bash
from gpuconsole.launch.references import quote as quote
from gpuconsole.launch.spec import LaunchSpec, PullPolicy, VariableSource
from gpuconsole.launch.together import GPU_VARIABLE

CDI_CLIENT = "25.0"
"""The first docker client that takes CDI devices by ``--device``."""
_ASSIGNABLE = re.compile(r"(?!DOCKER_|LD_|PATH$|HOME$)[A-Za-z_][A-Za-z0-9_]*")
"""A variable that a shell can set for one command, and that means nothing to the docker client itself."""


@dataclass(frozen=True, slots=True)
class DockerRun:
    """A ``docker run`` command."""

    words: tuple[str, ...]
    """Its arguments, ``docker`` first."""
    client: str | None = None
    """The docker client it needs at least; None is any."""
    assigned: tuple[tuple[str, str], ...] = ()
    """Variables of the container whose values have a secret of the shell in them: set before the command, so that they
    are in no list of processes."""
    references: References = NO_REFERENCES
    """What is named and not printed."""

    @property
    def needs_bash(self) -> bool:
        """It holds line breaks or the like, which only bash and shells like it read from one line."""
        return needs_bash((*self.words, *(value for _, value in self.assigned)))

    def __str__(self) -> str:
        before = [f"{name}={quote(value, self.references)}" for name, value in self.assigned]
        return " ".join([*before, *(quote(word, self.references) for word in self.words)])


def render(
    request: CreateRequest,
    spec: LaunchSpec,
    *,
    foreground: bool = False,
    hide_values: bool = False,
    references: References = NO_REFERENCES,
) -> DockerRun:
    """The command that makes the container of ``request``.

    Args:
        request: What the engine is told.
        spec: Where it came from: which variables are taken from the shell or from files.
        foreground: Follow it and return its exit code, as ``--wait`` does.
        hide_values: Name every variable that was written and leave its value to the shell, for a place that is kept.
        references: What is not to be printed.
    """
    words = ["docker", "run", *([] if foreground else ["--detach"])]
    words += _options(request, spec, hide_values=hide_values, references=references)
    words += _entrypoint(request)
    client = CDI_CLIENT if request.gpu_path is GpuPath.CDI else None
    assigned = () if hide_values else tuple(_assigned(request, spec, references))
    return DockerRun(tuple(words), client=client, assigned=assigned, references=references)


def _options(request: CreateRequest, spec: LaunchSpec, *, hide_values: bool, references: References) -> Iterator[str]:
    single: list[tuple[str, str | None]] = [
        ("--name", request.name),
        ("--pull", None if spec.pull is PullPolicy.MISSING else spec.pull.value),
    ]
    yield from _pairs(single)
    yield from (flag for flag, on in _switches(request) if on)
    yield from _gpus(request)
    yield from _pairs(_limits(request))
    for mount in request.mounts:
        yield from ("--mount", _mount(mount))
    for tmpfs in request.tmpfs:
        yield from ("--tmpfs", ":".join([tmpfs.target, *([",".join(tmpfs.options)] if tmpfs.options else [])]))
    for device in request.devices:
        yield from ("--device", f"{device.host_path}:{device.container_path}:{device.permissions}")
    for port in request.ports:
        yield from ("--publish", _port(port))
    yield from _environment(request, spec, hide_values=hide_values, references=references)
    for key, value in request.labels.items():
        if not key.startswith(PREFIX):
            yield from ("--label", f"{key}={value}")


def _switches(request: CreateRequest) -> tuple[tuple[str, bool], ...]:
    return (
        ("--rm", request.auto_remove),
        ("--interactive", request.open_stdin),
        ("--tty", request.tty),
        ("--init", request.init),
        ("--read-only", request.read_only),
        ("--privileged", request.privileged),
    )


def _limits(request: CreateRequest) -> list[tuple[str, str | None]]:
    return [
        ("--shm-size", size_text(request.shm_bytes)),
        ("--ipc", request.ipc_mode),
        ("--memory", size_text(request.memory_bytes)),
        ("--cpus", None if request.cpus is None else f"{request.cpus:.9f}".rstrip("0").rstrip(".")),
        *(("--ulimit", f"{limit.name}={limit.soft}:{limit.hard}") for limit in request.ulimits),
        ("--network", request.network),
        ("--restart", request.restart_policy),
        ("--user", request.user),
        *(("--group-add", group) for group in request.group_add),
        *(("--add-host", f"{name}:{address}") for name, address in request.extra_hosts),
        ("--hostname", request.hostname),
        ("--workdir", request.working_dir),
    ]


def _pairs(options: Iterable[tuple[str, str | None]]) -> Iterator[str]:
    for option, value in options:
        if value is not None:
            yield from (option, value)


def _gpus(request: CreateRequest) -> Iterator[str]:
    if request.gpu_path is GpuPath.CDI:
        for device in request.cdi_devices:
            yield from ("--device", device)
    elif request.gpu_path is GpuPath.HOOK:
        # The inner quotes are docker's: without them it reads the comma as the end of the list.
        yield from ("--gpus", f'"device={",".join(request.gpu_uuids)}"')
    elif request.gpu_path is GpuPath.RUNTIME:
        yield from ("--runtime", RUNTIME_NAME, "--env", f"{GPU_VARIABLE}={','.join(request.gpu_uuids)}")


def _environment(
    request: CreateRequest, spec: LaunchSpec, *, hide_values: bool, references: References
) -> Iterator[str]:
    sources = {variable.name: variable.source for variable in spec.variables}
    assigned = dict(_assigned(request, spec, references))
    for path in spec.env_files:
        yield from ("--env-file", path)
    for name, value in request.environment:
        source = sources.get(name)
        if source is VariableSource.FILE:
            continue
        by_name = source is VariableSource.SHELL or (hide_values and source is VariableSource.WRITTEN)
        by_name = by_name or name in assigned or name in references.by_name or references.names.get(value) == name
        yield from ("--env", name if by_name else f"{name}={value}")


def _assigned(request: CreateRequest, spec: LaunchSpec, references: References) -> Iterator[tuple[str, str]]:
    """Variables that the shell can make from others that hold a secret."""
    written = {variable.name for variable in spec.variables if variable.source is VariableSource.WRITTEN}
    for name, value in request.environment:
        own = name in references.by_name or references.names.get(value) == name
        if name in written and not own and references.holds(value) and _ASSIGNABLE.fullmatch(name):
            yield name, value


def _entrypoint(request: CreateRequest) -> list[str]:
    """Entrypoint, image and command: docker's option takes one word, the others go before the command."""
    command = list(request.command or ())
    if request.entrypoint is None:
        return [request.image, *command]
    first, *others = request.entrypoint or ("",)
    return ["--entrypoint", first, request.image, *others, *command]


def _mount(mount: Mount) -> str:
    """For ``--mount``, which unlike ``-v`` makes no folder when the source is gone, and takes a ``:`` in a path."""
    fields = [f"type={mount.kind}", f"source={mount.source}", f"target={mount.target}"]
    if mount.read_only:
        fields.append("readonly")
    return csv_fields(fields)


def csv_fields(fields: Iterable[str]) -> str:
    """Fields of ``--mount``."""
    return ",".join(_csv(field) for field in fields)


def _csv(field: str) -> str:
    return '"' + field.replace('"', '""') + '"' if any(char in field for char in ',"\n\r') else field


def _port(port: PortRequest) -> str:
    address = f"[{port.host_ip}]" if ":" in port.host_ip else port.host_ip
    return f"{address}:{port.host_port or ''}:{port.container_port}/{port.protocol}"


def size_text(count: int | None) -> str | None:
    """A size as docker reads it: ``8g``; None stays None."""
    if count is None:
        return None
    for unit, factor in (("g", 2**30), ("m", 2**20), ("k", 2**10)):
        if count % factor == 0:
            return f"{count // factor}{unit}"
    return str(count)
