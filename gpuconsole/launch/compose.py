"""A request as a compose file that makes the same container, for Docker Compose 2.24 and newer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpuconsole.engine.model import GpuPath, Mount
from gpuconsole.engine.request import CreateRequest, PortRequest
from gpuconsole.launch.gpupath import RUNTIME_NAME
from gpuconsole.launch.labels import PREFIX
from gpuconsole.launch.references import NO_REFERENCES, References
from gpuconsole.launch.spec import LaunchSpec, PullPolicy, VariableSource
from gpuconsole.launch.together import GPU_VARIABLE

COMPOSE = "2.24"
"""The first that reads all of the file."""
_PLAIN = re.compile(r"[A-Za-z0-9_./:@%+,=-]*")
"""A value that compose reads from an environment file as docker does: without quotes, blanks, ``$`` and ``#``."""
_BARE_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")


def compose_text(request: CreateRequest, spec: LaunchSpec, references: References = NO_REFERENCES) -> str:
    """The file; ``docker compose up --detach`` makes the container, with what ``references`` name from its shell."""
    name = request.name or "container"
    document: dict[str, Any] = {"services": {name: {key: value for key, value in _service(request, spec, references)}}}
    if volumes := {mount.source: {"name": mount.source} for mount in request.mounts if mount.kind == "volume"}:
        document["volumes"] = volumes
    if _own_network(request.network):
        document["networks"] = {request.network: {"external": True}}
    return "\n".join([*_yaml(document, references), ""])


def compose_notes(request: CreateRequest, spec: LaunchSpec) -> tuple[str, ...]:
    """Sentences about what the file does not say."""
    notes = []
    if request.auto_remove:
        notes.append("Compose removes no container at its end (--rm): 'docker compose down' does.")
    if inline := [path for path in spec.env_files if not _is_plain(spec)]:
        notes.append(f"The values of {', '.join(inline)} stand in the file, since compose would read some otherwise.")
    return tuple(notes)


def _service(request: CreateRequest, spec: LaunchSpec, references: References) -> Iterator[tuple[str, Any]]:
    """The service's fields; empty ones are left out."""
    fields: dict[str, Any] = {
        "image": request.image,
        "container_name": request.name,
        "pull_policy": None if spec.pull is PullPolicy.MISSING else spec.pull.value,
        # An entrypoint that is emptied is one empty word for the engine, and an empty list for compose.
        "entrypoint": None if request.entrypoint is None else [word for word in request.entrypoint if word],
        "command": None if request.command is None else list(request.command),
        "working_dir": request.working_dir,
        "user": request.user,
        "group_add": list(request.group_add),
        "hostname": request.hostname,
        "environment": _environment(request, spec, references),
        "env_file": list(spec.env_files) if _is_plain(spec) else None,
        "volumes": [_mount(mount) for mount in request.mounts],
        "tmpfs": [":".join([one.target, *([",".join(one.options)] if one.options else [])]) for one in request.tmpfs],
        "ports": [_port(port) for port in request.ports],
        "devices": [f"{one.host_path}:{one.container_path}:{one.permissions}" for one in request.devices],
        "extra_hosts": [f"{name}={address}" for name, address in request.extra_hosts],
        "shm_size": request.shm_bytes,
        "ipc": request.ipc_mode,
        "mem_limit": request.memory_bytes,
        "cpus": request.cpus,
        "ulimits": {limit.name: {"soft": limit.soft, "hard": limit.hard} for limit in request.ulimits},
        "restart": request.restart_policy,
        "init": request.init or None,
        "read_only": request.read_only or None,
        "privileged": request.privileged or None,
        "tty": request.tty or None,
        "stdin_open": request.open_stdin or None,
        "labels": {key: value for key, value in request.labels.items() if not key.startswith(PREFIX)},
        "runtime": RUNTIME_NAME if request.gpu_path is GpuPath.RUNTIME else None,
        "deploy": _gpus(request),
    }
    if _own_network(request.network):
        fields["networks"] = [request.network]
    else:
        fields["network_mode"] = request.network or "bridge"  # else compose makes a network of its own
    for key, value in fields.items():
        if value is not None and (value not in ([], {}) or key == "entrypoint"):
            yield key, value


def _own_network(network: str | None) -> bool:
    return network is not None and network not in ("bridge", "host", "none", "default") and ":" not in network


def _is_plain(spec: LaunchSpec) -> bool:
    """Whether compose reads the environment files as docker does."""
    values = [one.value for one in spec.variables if one.source is VariableSource.FILE]
    return bool(spec.env_files) and all(_PLAIN.fullmatch(value) for value in values)


def _environment(request: CreateRequest, spec: LaunchSpec, references: References) -> dict[str, str | None]:
    """Variables; None is one that compose takes from the shell."""
    sources = {variable.name: variable.source for variable in spec.variables}
    found: dict[str, str | None] = {}
    for name, value in request.environment:
        source = sources.get(name)
        if source is VariableSource.FILE and _is_plain(spec):
            continue
        found[name] = None if source is VariableSource.SHELL or name in references.by_name else value
    if request.gpu_path is GpuPath.RUNTIME:
        found[GPU_VARIABLE] = ",".join(request.gpu_uuids)
    return found


def _mount(mount: Mount) -> dict[str, Any]:
    made: dict[str, Any] = {"type": mount.kind, "source": mount.source, "target": mount.target}
    if mount.read_only:
        made["read_only"] = True
    if mount.kind == "bind":
        made["bind"] = {"create_host_path": False}  # a folder that is gone is an error, not made anew by root
    return made


def _port(port: PortRequest) -> dict[str, Any]:
    published = {"published": str(port.host_port)} if port.host_port else {}
    return {
        "target": port.container_port,
        "host_ip": port.host_ip,
        "protocol": port.protocol,
        "mode": "host",
    } | published


def _gpus(request: CreateRequest) -> dict[str, Any] | None:
    if request.gpu_path is GpuPath.CDI:
        # Where it has no driver "cdi", compose refuses the field: then it is too old.
        device = {"driver": "cdi", "device_ids": list(request.cdi_devices), "capabilities": ["gpu"]}
    elif request.gpu_path is GpuPath.HOOK:
        device = {"driver": "nvidia", "device_ids": list(request.gpu_uuids), "capabilities": ["gpu"]}
    else:
        return None
    return {"resources": {"reservations": {"devices": [device]}}}


def _yaml(value: Mapping[str, Any] | Sequence[Any], references: References, depth: int = 0) -> Iterator[str]:
    """Block YAML whose texts are all in double quotes, with ``$`` doubled as compose wants it."""
    pad = "  " * depth
    if isinstance(value, Mapping):
        for key, item in value.items():
            name = key if _BARE_KEY.fullmatch(key) else _quoted(key)
            if isinstance(item, Mapping | list) and item:
                yield f"{pad}{name}:"
                yield from _yaml(item, references, depth + 1)
            else:
                yield f"{pad}{name}:{_scalar(item, references)}"
        return
    for item in value:
        if isinstance(item, Mapping):
            first, *rest = _yaml(item, references, depth + 1)
            yield f"{pad}- {first.lstrip()}"
            yield from rest
        else:
            yield f"{pad}-{_scalar(item, references)}"


def _scalar(value: object, references: References) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return " true" if value else " false"
    if isinstance(value, int | float):
        return f" {value:.9f}".rstrip("0").rstrip(".") if isinstance(value, float) else f" {value}"
    return " []" if value == [] else f" {_quoted(str(value), references)}"


def _quoted(text: str, references: References = NO_REFERENCES) -> str:
    """A text as YAML has it: JSON's escapes are YAML's."""
    return f'"{references.written(text, _escaped)}"'


def _escaped(text: str) -> str:
    escaped = json.dumps(text.replace("$", "$$"), ensure_ascii=False)[1:-1]
    return re.sub(
        r"[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]", lambda match: f"\\u{ord(match[0]):04x}", escaped
    )
