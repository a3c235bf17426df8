"""Launch options for what is put into a container beside volumes and ports: mounts, memory, secrets, devices, names.

Every function raises :class:`ValueError` with a sentence that follows the option's name and a colon, as in ``fields``.
"""

from __future__ import annotations

import csv
import posixpath
import re
from ipaddress import ip_address

from gpuconsole.core.text import parse_size
from gpuconsole.engine.model import Mount
from gpuconsole.engine.request import DeviceRequest, Tmpfs
from gpuconsole.launch.fields import Surroundings, container_path, host_file, mount_of, shown
from gpuconsole.launch.limits import is_number, refuse_large_ids
from gpuconsole.launch.spec import Secret

_TMPFS_FLAGS = ("rw", "ro", "exec", "noexec", "suid", "nosuid", "dev", "nodev")
_TMPFS_NUMBERS = ("mode", "uid", "gid", "nr_inodes")
_SECRET = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,99}")
_HOST = re.compile(r"[a-zA-Z0-9_]([a-zA-Z0-9_.-]{0,251}[a-zA-Z0-9])?")
_GROUP = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9_.-]*")
_MOUNT_WORDS = {"type": "type", "source": "source", "src": "source", "target": "target", "dst": "target",
                "destination": "target", "readonly": "readonly", "ro": "readonly", "tmpfs-size": "tmpfs-size",
                "tmpfs-mode": "tmpfs-mode"}  # fmt: skip


def parse_mount(text: str, around: Surroundings) -> Mount | Tmpfs:
    """``type=bind,source=HOST,target=CONTAINER[,readonly]`` as docker has it; its paths may have a ``:``."""
    said = _mount_fields(text)
    kind, target = said.get("type", "volume"), said.get("target", "")
    if not target:
        raise ValueError(f"{text!r} has no target; write type=bind,source=HOST,target=CONTAINER")
    if kind == "tmpfs":
        return _tmpfs_mount(text, said)
    if kind not in ("bind", "volume"):
        raise ValueError(f"{kind!r} is no type of mount that is known here; write bind, volume or tmpfs")
    if not said.get("source"):
        raise ValueError(f"{text!r} has no source; write type={kind},source=…,target={target}")
    if any(word.startswith("tmpfs-") for word in said):
        raise ValueError(f"{text!r} has an option of type=tmpfs")
    read_only = said.get("readonly") is not None
    source = said["source"]
    if kind == "bind" and not source.startswith((".", "~", "/")):
        source = f"./{source}"
    if kind == "volume" and "/" in source:
        raise ValueError(f"{source!r} is no volume's name; write type=bind for a folder")
    return mount_of(source, target, around, read_only=read_only)


def _mount_fields(text: str) -> dict[str, str]:
    try:
        parts = next(csv.reader([text]), [])
    except csv.Error as error:
        raise ValueError(f"{text!r} cannot be read; write type=bind,source=HOST,target=CONTAINER") from error
    said: dict[str, str] = {}
    for part in parts:
        word, equals, value = part.partition("=")
        name = _MOUNT_WORDS.get(word.strip().lower())
        if name is None:
            raise ValueError(f"{word!r} is no option of a mount known here; write type, source, target, readonly")
        if name != "readonly":
            said[name] = value
        elif not equals or value.lower() in ("true", "1"):
            said[name] = ""
    return said


def _tmpfs_mount(text: str, said: dict[str, str]) -> Tmpfs:
    if "source" in said:
        raise ValueError(f"{text!r} has a source, and a tmpfs has none")
    options = [f"size={said['tmpfs-size']}"] if "tmpfs-size" in said else []
    options += [f"mode={said['tmpfs-mode']}"] if "tmpfs-mode" in said else []
    options += ["ro"] if "readonly" in said else []
    return parse_tmpfs(":".join([said["target"], *([",".join(options)] if options else [])]))


def parse_tmpfs(text: str) -> Tmpfs:
    """``CONTAINER[:OPTIONS]``: memory as a folder, such as ``/scratch:size=16g``."""
    target, colon, written = text.partition(":")
    options = tuple(part.strip() for part in written.split(",") if part.strip())
    if colon and not options:
        raise ValueError(f"{text!r} ends with a ':'; write {target} or {target}:size=16g")
    for option in options:
        _check_tmpfs(option)
    return Tmpfs(container_path(target), options)


def _check_tmpfs(option: str) -> None:
    name, equals, value = option.partition("=")
    if name == "size" and equals:
        if not re.fullmatch(r"[0-9]{1,3}%", value):
            parse_size(value)
    elif name in _TMPFS_NUMBERS and equals:
        if not (is_number(value) and len(value) < 12):
            raise ValueError(f"{option!r} is no number")
    elif option not in _TMPFS_FLAGS:
        known = ", ".join(("size=", *(f"{word}=" for word in _TMPFS_NUMBERS), *_TMPFS_FLAGS))
        raise ValueError(f"{option!r} is no option of a tmpfs; known: {known}")


def parse_secret(text: str, around: Surroundings) -> Secret:
    """``NAME=FILE``: the file is at ``/run/secrets/NAME`` in the container."""
    name, equals, path = text.partition("=")
    if not equals or not path:
        raise ValueError(f"{name!r} names no file; write NAME=FILE, the value itself is not written here")
    if not _SECRET.fullmatch(name):
        raise ValueError(f"{name!r} cannot be a secret's name; use letters, digits, _ . -")
    return Secret(name, host_file(path, around))


def parse_device(text: str) -> DeviceRequest:
    """``/dev/X[:/dev/Y[:rwm]]``: a device node of the engine's machine."""
    if "=" in text and not text.startswith("/"):
        raise ValueError(f"{text!r} is a CDI name; GPUs are chosen by --gpus")
    parts = text.split(":")
    host, inside = parts[0], parts[1] if len(parts) > 1 and parts[1] else parts[0]
    permissions = parts[2] if len(parts) > 2 else "rwm"
    if len(parts) == 2 and re.fullmatch(r"[rwm]{1,3}", parts[1]):
        inside, permissions = host, parts[1]
    if len(parts) > 3 or not host.startswith("/dev/") or ".." in host.split("/"):
        raise ValueError(f"{text!r} is no device; write /dev/X, /dev/X:/dev/Y or /dev/X:/dev/Y:rwm")
    if not re.fullmatch(r"r?w?m?", permissions) or not permissions:
        raise ValueError(f"{permissions!r} are no rights; write r, rw or rwm")
    real = posixpath.normpath(host)
    inside, host = real if inside == host else inside, real
    if re.match(r"/dev/nvidia(\d|-caps(/|$))", host):
        raise ValueError(f"{shown(host)} is a GPU; choose it by --gpus, which gives what belongs to it as well")
    return DeviceRequest(host, container_path(inside), permissions)


def parse_group(text: str) -> str:
    """A further group, by number or by its name in the image."""
    if not _GROUP.fullmatch(text):
        raise ValueError(f"{text!r} is no group; write a number, or a name of the image")
    refuse_large_ids(text)
    return text


def parse_host(text: str) -> tuple[str, str]:
    """``NAME:ADDRESS`` or ``NAME=ADDRESS``, for the container's hosts file; ``host-gateway`` is this machine."""
    match = re.fullmatch(r"([^:=]*)[:=](.*)", text)
    name, address = match.groups() if match else ("", "")
    if not _HOST.fullmatch(name):
        raise ValueError(f"{text!r} names no host; write NAME:ADDRESS")
    if address == "host-gateway":
        return name, address
    try:
        return name, str(ip_address(address.strip("[]")))
    except ValueError as error:
        raise ValueError(f"{address!r} is no IP address; write one, or host-gateway") from error
