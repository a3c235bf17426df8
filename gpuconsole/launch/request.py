"""From a spec and the GPUs chosen for it to what the engine is told."""

from __future__ import annotations

import json
import posixpath
import re
import secrets
from collections.abc import Sequence

from gpuconsole import __version__
from gpuconsole.core.users import caller_name
from gpuconsole.engine.model import EngineInfo, GpuPath, Mount
from gpuconsole.engine.request import CreateRequest, PortRequest
from gpuconsole.images.reference import is_image_id, parse
from gpuconsole.launch import labels
from gpuconsole.launch.fields import LOOPBACK
from gpuconsole.launch.gpupath import RUNTIME_NAME, GpuRoute
from gpuconsole.launch.gpus import GpuChoice
from gpuconsole.launch.identity import Identity, free_of
from gpuconsole.launch.spec import LaunchSpec
from gpuconsole.launch.together import GPU_VARIABLE, own_shm
from gpuconsole.launch.variables import secret_variables
from gpuconsole.launch.work import EVERYWHERE, Kind, command_of

DEFAULT_SHM_BYTES = 8 * 2**30
"""Size of ``/dev/shm`` unless asked otherwise. The engine's own 64 MiB kill DataLoader workers and NCCL, while a size
costs nothing until it is used; half of the memory bounds it, so that a full one leaves room to work."""
_SMALLEST_SHM_BYTES = 64 * 2**20
_SHELLS = frozenset(("sh", "bash", "zsh", "fish", "dash", "ash", "python", "python3", "ipython"))
_SUFFIX_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
_NO_ROUTE = GpuRoute(GpuPath.NONE, "")


def build_request(
    spec: LaunchSpec,
    *,
    name: str,
    info: EngineInfo,
    choice: GpuChoice | None = None,
    route: GpuRoute | None = None,
    identity: Identity | None = None,
    files: Sequence[Mount] = (),
    port: int = 0,
    word: str | None = None,
) -> CreateRequest:
    """What the engine is told to make ``spec`` come true.

    Args:
        spec: What was asked for.
        name: The container's name, also where the spec leaves it open.
        info: The engine it is for.
        choice: The GPUs it gets; None or empty is none.
        route: The way they take; needed with GPUs.
        identity: Who runs it, when that is the caller.
        files: Small files of ours that are mounted for that, and for the kind of work.
        port: The host's port of a kind of work that is used through one; 0 lets the engine choose.
        word: The launch's own random word; None has one made.
    """
    choice, route = choice or GpuChoice(), route or _NO_ROUTE
    this_launch = {labels.LAUNCH: word or secrets.token_hex(8)}
    interactive = _interactive(spec)
    return CreateRequest(
        image=spec.image,
        name=name,
        command=_command(spec, choice, port) or None,
        entrypoint=spec.entrypoint,
        gpu_path=route.path if choice.units else GpuPath.NONE,
        gpu_uuids=choice.uuids,
        cdi_devices=route.cdi_devices if choice.units else (),
        environment=_environment(spec, info, route if choice.units else _NO_ROUTE, identity),
        mounts=(*spec.mounts, *(Mount("bind", one.path, one.target, True) for one in spec.secrets), *files),
        ports=(*spec.ports, *_work_ports(spec, port)),
        labels=dict(spec.labels) | _own_labels(spec, choice) | this_launch,
        volume_labels=this_launch,
        working_dir=spec.working_dir or (identity.working_dir if identity else None),
        user=identity.user if identity else spec.user,
        hostname=spec.hostname,
        shm_bytes=_shm_bytes(spec, info),
        ipc_mode=spec.ipc_mode,
        network=spec.network,
        memory_bytes=spec.memory_bytes,
        cpus=spec.cpus,
        ulimits=spec.ulimits,
        restart_policy=spec.restart_policy,
        tmpfs=(*spec.tmpfs, *(identity.tmpfs if identity else ())),
        devices=spec.devices,
        group_add=tuple(dict.fromkeys((*spec.group_add, *(identity.group_add if identity else ())))),
        extra_hosts=spec.extra_hosts,
        read_only=spec.read_only,
        privileged=spec.privileged,
        auto_remove=spec.auto_remove,
        init=spec.init and not hides_init(spec.mounts),
        tty=interactive,
        open_stdin=interactive,
    )


_INIT_FOLDERS = ("/", "/sbin", "/usr", "/usr/sbin")
"""The engine puts its init at ``/sbin/docker-init``, and in most images ``/sbin`` is a link into ``/usr``."""


def hides_init(mounts: Sequence[Mount]) -> bool:
    """A mount lies over the place of the engine's init, so that it could not be started."""
    return any(posixpath.normpath(mount.target) in _INIT_FOLDERS for mount in mounts)


def name_for(spec: LaunchSpec) -> str:
    """The name that was asked for, else one made from the image's: ``pytorch-k3wq``."""
    if spec.name is not None:
        return spec.name
    base = "container"
    if not is_image_id(spec.image):
        base = parse(spec.image).repository.rpartition("/")[2]
    base = re.sub(r"[^a-zA-Z0-9_.-]+", "-", base)[:40].strip("-._") or base
    return f"{base}-{''.join(secrets.choice(_SUFFIX_LETTERS) for _ in range(4))}"


def _interactive(spec: LaunchSpec) -> bool:
    """Whether it gets a terminal and open input: without them a shell ends the moment it starts."""
    if spec.interactive is not None:
        return spec.interactive
    if spec.work.kind is not None:
        return spec.work.kind is Kind.SHELL
    words = [*(word for word in spec.entrypoint or () if word), *spec.command]
    return not words or (len(words) == 1 and words[0].rpartition("/")[2] in _SHELLS)


def _command(spec: LaunchSpec, choice: GpuChoice, port: int) -> tuple[str, ...]:
    shares_host = spec.network == "host"
    return command_of(
        spec.work,
        spec.command,
        gpus=len(choice.units),
        # In the host's network everywhere would be everybody's; in its own, only the published port leads there.
        address=LOOPBACK if shares_host else EVERYWHERE,
        port=port if shares_host and port else spec.work.port,
    )


def _work_ports(spec: LaunchSpec, port: int) -> tuple[PortRequest, ...]:
    """The port that the kind of work is used through, on loopback, unless it was written or is the host's already."""
    inside = spec.work.port
    if inside is None or spec.network == "host" or any(one.container_port == inside for one in spec.ports):
        return ()
    return (PortRequest(inside, port),)


def _environment(
    spec: LaunchSpec, info: EngineInfo, route: GpuRoute, identity: Identity | None
) -> tuple[tuple[str, str], ...]:
    variables = tuple((variable.name, variable.value) for variable in spec.variables)
    ours = (*(identity.environment if identity else ()), *secret_variables(spec))
    variables += free_of((name for name, _ in variables), ours)
    asks_nvidia = route.path in (GpuPath.HOOK, GpuPath.RUNTIME)
    known = any(name == GPU_VARIABLE for name, _ in variables)
    if info.default_runtime == RUNTIME_NAME and not asks_nvidia and not known:
        # This runtime gives every GPU to an image that says NVIDIA_VISIBLE_DEVICES=all, as the official ones do.
        return (*variables, (GPU_VARIABLE, "void"))
    return variables


def _shm_bytes(spec: LaunchSpec, info: EngineInfo) -> int | None:
    if spec.ipc_mode is not None and not own_shm(spec.ipc_mode):
        return None
    if spec.shm_bytes is not None:
        return spec.shm_bytes
    halves = [limit // 2 for limit in (info.memory_bytes, spec.memory_bytes) if limit]
    size = min([DEFAULT_SHM_BYTES, *halves])
    unit = 2**30 if size >= 2**30 else 2**20
    return max(_SMALLEST_SHM_BYTES, size - size % unit)


def _own_labels(spec: LaunchSpec, choice: GpuChoice) -> dict[str, str]:
    return {
        labels.VERSION: __version__,
        labels.USER: caller_name(),
        labels.IMAGE: spec.image,
        labels.GPUS: ",".join(choice.uuids) or labels.NO_GPUS,
        labels.SPEC: _spec_text(spec),
    }


def _spec_text(spec: LaunchSpec) -> str:
    """What was asked for, as JSON, without what is the default and without what may hold a secret.

    The command and the values of variables stand in the container's own configuration, where the engine keeps them.
    """
    parts: dict[str, object] = {
        "image": spec.image,
        "gpus": None if spec.gpus is None else str(spec.gpus),
        "gpu_path": spec.gpu_path,
        "volumes": [f"{m.source}:{m.target}{':ro' if m.read_only else ''}" for m in spec.mounts],
        "ports": [f"{p.host_ip}:{p.host_port or ''}:{p.container_port}/{p.protocol}" for p in spec.ports],
        "env": [variable.name for variable in spec.variables],
        "env_files": list(spec.env_files),
        "workdir": spec.working_dir,
        "user": "me" if spec.caller else spec.user,
        "kind": spec.work.kind,
        "processes": spec.work.processes,
        "nodes": spec.work.nodes,
        "rendezvous": spec.work.rendezvous,
        "logdir": spec.work.logdir,
        "tmpfs": [":".join([t.target, *([",".join(t.options)] if t.options else [])]) for t in spec.tmpfs],
        "secrets": [f"{secret.name}={secret.path}" for secret in spec.secrets],
        "devices": [f"{d.host_path}:{d.container_path}:{d.permissions}" for d in spec.devices],
        "group_add": list(spec.group_add),
        "extra_hosts": [f"{name}:{address}" for name, address in spec.extra_hosts],
        "read_only": spec.read_only or None,
        "privileged": spec.privileged or None,
        "hostname": spec.hostname,
        "shm_bytes": spec.shm_bytes,
        "ipc": spec.ipc_mode,
        "network": spec.network,
        "memory_bytes": spec.memory_bytes,
        "cpus": spec.cpus,
        "ulimits": [f"{u.name}={u.soft}:{u.hard}" for u in spec.ulimits],
        "restart": spec.restart_policy,
        "rm": spec.auto_remove or None,
        "init": None if spec.init else False,
    }
    return json.dumps({key: value for key, value in parts.items() if value not in (None, [])}, separators=(",", ":"))
