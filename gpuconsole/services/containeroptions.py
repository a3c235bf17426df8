"""A container as the options of the launch that makes such a one again; never a secret's value."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from gpuconsole.engine.model import Container, Image, Mount
from gpuconsole.launch import labels
from gpuconsole.launch.identity import IDENTITY_VARIABLES
from gpuconsole.launch.options import LaunchOptions
from gpuconsole.launch.render import csv_fields, size_text
from gpuconsole.launch.request import DEFAULT_SHM_BYTES
from gpuconsole.launch.together import GPU_VARIABLE
from gpuconsole.launch.variables import read_env_file
from gpuconsole.launch.work import Kind, words_of
from gpuconsole.services.imagenames import written_name
from gpuconsole.services.launchfiles import is_ours
from gpuconsole.services.secrets import mask_arguments, mask_text, mask_value

_ENGINES_SHM = 64 * 2**20
_ANONYMOUS = re.compile(r"[0-9a-f]{64}")
_SECRETS = "/run/secrets/"
_FOREIGN_LABELS = (labels.PREFIX, "com.docker.", "org.opencontainers.", "io.podman.")


def options_of(container: Container, image: Image | None) -> tuple[LaunchOptions, tuple[str, ...]]:
    """The options that make such a container again, and what is left open in them.

    Args:
        container: As the engine has it.
        image: Its image, whose own settings are left out; None when it is gone.
    """
    own = image or Image(id="")
    said = _said(container)
    notes: list[str] = []
    kind = _kind(said)
    secrets = tuple(_secret(m) for m in container.mounts if _is_secret(m))
    options = LaunchOptions(
        image=written_name(container, {own.id: own}),
        kind=kind,
        command=_command(container, own, kind, notes),
        entrypoint=container.entrypoint[0] if container.entrypoint and container.entrypoint != own.entrypoint else None,
        gpus=str(said["gpus"]) if "gpus" in said else _gpus(container),
        volumes=tuple(_volume(m) for m in container.mounts if _is_volume(m) and ":" not in m.source),
        mounts=tuple(_mount(m) for m in container.mounts if _is_volume(m) and ":" in m.source),
        tmpfs=_tmpfs(container, said),
        ulimits=container.ulimits,
        devices=_devices(container),
        group_add=_groups(container, said),
        extra_hosts=tuple(text.replace(":", "=", 1) for text in container.extra_hosts),
        secrets=secrets,
        environment=_environment(container, own, said, notes),
        env_files=tuple(str(path) for path in _listed(said, "env_files")),
        ports=_ports(container, said, kind),
        labels=tuple(
            f"{key}={value}"
            for key, value in container.labels.items()
            if not key.startswith(_FOREIGN_LABELS) and own.labels.get(key) != value and mask_value(key, value) == value
        ),
        working_dir=container.working_dir if container.working_dir not in ("", own.working_dir) else None,
        user=_user(container, own, said),
        hostname=container.hostname if container.hostname not in ("", container.short_id) else None,
        shm_size=_shm(container),
        ipc=container.ipc_mode if container.ipc_mode not in ("", "private") else None,
        network=_network(container),
        memory=size_text(container.memory_limit_bytes),
        cpus=f"{container.cpu_limit:g}" if container.cpu_limit else None,
        restart=container.restart_policy if container.restart_policy not in ("", "no") else None,
        auto_remove=container.auto_remove,
        interactive=True if container.tty and container.open_stdin and kind is None and container.command else None,
        **_more(said),
        **_flags(container, said),
    )
    return options, tuple(notes)


def _said(container: Container) -> Mapping[str, object]:
    """What was asked for when we launched it; empty for a container of others."""
    try:
        said = json.loads(container.labels.get(labels.SPEC, "{}"))
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _listed(said: Mapping[str, object], name: str) -> tuple[str, ...]:
    value = said.get(name)
    return tuple(str(each) for each in value) if isinstance(value, list) else ()


def _more(said: Mapping[str, object]) -> dict[str, Any]:
    """What the engine's description does not tell of a launch of ours."""
    single = {name: said.get(name) for name in ("gpu_path", "logdir", "processes", "nodes", "rendezvous")}
    return {name: str(value) for name, value in single.items() if value is not None}


def _tmpfs(container: Container, said: Mapping[str, object]) -> tuple[str, ...]:
    """Memory as a folder; of a launch of ours what was asked for, without the home that was added."""
    if said:
        return _listed(said, "tmpfs")
    others = (mount.target for mount in container.mounts if mount.kind == "tmpfs")
    known = {text.partition(":")[0] for text in container.tmpfs}
    return (*container.tmpfs, *(target for target in others if target not in known))


def _devices(container: Container) -> tuple[str, ...]:
    return tuple(text for text in container.devices if not text.startswith("/dev/nvidia"))


def _groups(container: Container, said: Mapping[str, object]) -> tuple[str, ...]:
    return _listed(said, "group_add") if said else container.group_add


def _flags(container: Container, said: Mapping[str, object]) -> dict[str, Any]:
    no_init = said.get("init") is False if said else container.init is False
    switches = {"read_only": container.read_only, "privileged": container.privileged}
    return ({"init": False} if no_init else {}) | {name: True for name, on in switches.items() if on}


def _kind(said: Mapping[str, object]) -> str | None:
    kind = said.get("kind")
    return str(kind) if kind in tuple(Kind) else None


def _command(container: Container, own: Image, kind: str | None, notes: list[str]) -> tuple[str, ...]:
    words = container.command
    if kind is not None:
        words = words_of(Kind(kind), words)
    elif words == own.command:
        return ()
    if container.entrypoint != own.entrypoint:
        words = (*container.entrypoint[1:], *words)
    if tuple(mask_arguments(words)) != tuple(words) or any(mask_text(word) != word for word in words):
        notes.append("The command has a secret in it and is left out; put that into a variable, and write the command.")
        return ()
    return tuple(words)


def _gpus(container: Container) -> str:
    if not container.gpu_claims:
        return "none"
    claim = container.gpu_claims[0]
    if claim.everything:
        return "all"
    return str(claim.count or len(claim.devices) or 1)


def _is_volume(mount: Mount) -> bool:
    if mount.kind not in ("bind", "volume") or _is_secret(mount) or _ANONYMOUS.fullmatch(mount.source):
        return False
    return not is_ours(mount.source)


def _is_secret(mount: Mount) -> bool:
    return mount.kind == "bind" and mount.target.startswith(_SECRETS) and not is_ours(mount.source)


def _secret(mount: Mount) -> str:
    return f"{mount.target.removeprefix(_SECRETS)}={mount.source}"


def _volume(mount: Mount) -> str:
    return f"{mount.source}:{mount.target}{':ro' if mount.read_only else ''}"


def _mount(mount: Mount) -> str:
    parts = (f"type={mount.kind}", f"source={mount.source}", f"target={mount.target}")
    return csv_fields((*parts, *(("readonly",) if mount.read_only else ())))


def _environment(container: Container, own: Image, said: Mapping[str, object], notes: list[str]) -> tuple[str, ...]:
    of_image, of_files = dict(own.environment), set(_names_in(_listed(said, "env_files")))
    written = set(_listed(said, "env"))
    ours = {GPU_VARIABLE, *(IDENTITY_VARIABLES if said.get("user") == "me" else ())} - written
    found: list[str] = []
    secret: list[str] = []
    for name, value in container.environment:
        if value is None or name in ours or name in of_files or (name in of_image and of_image[name] == value):
            continue
        if name not in written and value.startswith(_SECRETS):
            continue
        if mask_value(name, value) != value:
            secret.append(name)
            found.append(name)
        else:
            found.append(f"{name}={value}")
    if secret:
        notes.append(f"The value of {', '.join(secret)} is not written: it is taken from the shell that launches.")
    return tuple(found)


def _names_in(paths: Iterable[str]) -> Iterable[str]:
    for path in paths:
        try:
            yield from (name for name, _ in read_env_file(path))
        except ValueError:
            continue


def _ports(container: Container, said: Mapping[str, object], kind: str | None) -> tuple[str, ...]:
    if said:
        return tuple(
            text.removesuffix("/tcp").removeprefix("127.0.0.1:").lstrip(":") for text in _listed(said, "ports")
        )
    found = []
    for port in container.ports:
        if port.host_port:
            address = f"[{port.host_ip}]" if ":" in port.host_ip else port.host_ip or "0.0.0.0"  # noqa: S104  # as it is
            place = "" if address == "127.0.0.1" else f"{address}:"
            found.append(f"{place}{port.host_port}:{port.container_port}/{port.protocol}".removesuffix("/tcp"))
    return tuple(found)


def _user(container: Container, own: Image, said: Mapping[str, object]) -> str | None:
    if said.get("user") == "me":
        return "me"
    return container.user if container.user not in ("", own.user) else "image"


def _shm(container: Container) -> str | None:
    usual = (None, DEFAULT_SHM_BYTES, _ENGINES_SHM)
    return None if container.shm_bytes in usual or container.ipc_mode == "host" else size_text(container.shm_bytes)


def _network(container: Container) -> str | None:
    names = [name for name in container.networks if name not in ("bridge", "default")]
    return names[0] if names else None
