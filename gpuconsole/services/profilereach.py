"""What a project's profile reaches outside of its folder: it may have come with a clone, so the caller is asked first.

A profile runs nothing on this machine. But it chooses an image, whose programs may be anybody's, and hands it folders,
files, variables and devices. Within its own folder it may do so; what is beyond is named.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gpuconsole.core.paths import config_dir, state_dir
from gpuconsole.core.text import plain_line
from gpuconsole.core.users import user_name
from gpuconsole.engine.model import Mount
from gpuconsole.launch.fields import LOOPBACK, Surroundings, parse_port, parse_volume
from gpuconsole.launch.places import parse_mount
from gpuconsole.launch.profiles import Layer, ResolvedProfile
from gpuconsole.launch.variables import read_env_file
from gpuconsole.services.secrets import is_secret_name, mask_value

_SYSTEM = ("/etc", "/root", "/boot", "/dev", "/proc", "/sys", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/var", "/run")
_INSIDE_SYSTEM = ("/etc", "/root", "/boot", "/dev", "/proc", "/sys", "/run", "/var/run", "/var/lib/docker")
"""Folders of which nothing below is anybody's data."""


@dataclass(frozen=True, slots=True)
class Reach:
    """One thing outside of the project's folder."""

    words: str
    """``mounts /data, to be written``."""
    dangerous: bool = False
    """It would hand over this machine, or the caller's account: never by a question alone."""


def reaches(profile: ResolvedProfile, around: Surroundings) -> tuple[Reach, ...]:
    """All that a project's profile reaches outside of its folder; nothing for the user's own profiles.

    What it takes from a profile of the user's counts as well: the project chooses the image that gets it.
    """
    if not any(layer.source.of_project for layer in profile.layers):
        return ()
    return tuple(dict.fromkeys(reach for layer in profile.layers for reach in _of_layer(layer, around)))


def refusal(found: Iterable[Reach]) -> str:
    """What of it is refused, and why, as it stands after a profile's name; empty where a question decides, or nothing.

    ``mounts /: that hands this machine, or your account, to whatever is in its image``.
    """
    dangerous = "; ".join(reach.words for reach in found if reach.dangerous)
    return f"{dangerous}: that hands this machine, or your account, to whatever is in its image" if dangerous else ""


def _of_layer(layer: Layer, around: Surroundings) -> Iterator[Reach]:
    fields, folder = layer.fields, Path(os.path.realpath(layer.source.folder))
    yield from _owner(layer)
    for mount in _mounts(layer, around):
        yield from _mount(mount, folder, around)
    for path in (*fields.get("env_files", ()), *(text.partition("=")[2] for text in fields.get("secrets", ()))):
        real = os.path.realpath(around.absolute(path))
        if not _within(real, str(folder)):
            yield Reach(f"reads {plain_line(real)}")
    passed = layer.used | _named_in_files(layer, around)
    yield from (Reach(f"passes {plain_line(name)} of this shell") for name in sorted(passed) if _secret(name, around))
    yield from (Reach(f"gives the device {plain_line(text)}", dangerous=True) for text in fields.get("devices", ()))
    if fields.get("privileged"):
        yield Reach("has every device and every right of this machine (privileged)", dangerous=True)
    for field, word in (("network", "network"), ("ipc", "shared memory")):
        value = str(fields.get(field, ""))
        if value == "host" or value.startswith("container:"):
            yield Reach(f"uses the {word} of {'this machine' if value == 'host' else plain_line(value[10:])}")
    yield from (Reach(f"opens {plain_line(text)} to the network") for text in _public(fields.get("ports", ())))


def _named_in_files(layer: Layer, around: Surroundings) -> set[str]:
    """Variables of the shell that the environment files name: a line without ``=`` passes one on."""
    found: set[str] = set()
    for path in layer.fields.get("env_files", ()):
        with contextlib.suppress(ValueError):  # told as a wrong field
            found |= {name for name, value in read_env_file(around.absolute(path)) if value is None}
    return found


def _secret(name: str, around: Surroundings) -> bool:
    """Whether the shell's variable looks like a secret: by its name, or by what is in it."""
    value = around.environment.get(name)
    return value is not None and (is_secret_name(name) or mask_value(name, value) != value)


def _owner(layer: Layer) -> Iterator[Reach]:
    try:
        owner = os.stat(layer.source.path).st_uid
    except OSError:
        return
    if owner not in (0, os.getuid(), int(os.environ.get("SUDO_UID") or os.getuid())):
        yield Reach(f"was written by {plain_line(user_name(owner))}")


def _mounts(layer: Layer, around: Surroundings) -> Iterator[Mount]:
    """What it mounts; what cannot be read is told as a wrong field, and mounts nothing."""
    for field in ("volumes", "mounts"):
        for text in layer.fields.get(field, ()):
            try:
                mount = parse_mount(text, around) if text.startswith("type=") else parse_volume(text, around)
            except ValueError:
                continue
            if isinstance(mount, Mount):
                yield mount


def _mount(mount: Mount, folder: Path, around: Surroundings) -> Iterator[Reach]:
    how = "to be read" if mount.read_only else "to be written"
    if mount.kind == "volume":
        yield Reach(f"mounts the volume {mount.source}, {how}")
        return
    real = os.path.realpath(mount.source)
    if is_dangerous(real, home=around.home):
        yield Reach(f"mounts {plain_line(real)}, {how}", dangerous=True)
    elif not _within(real, str(folder)):
        yield Reach(f"mounts {plain_line(real)}, {how}")


def is_dangerous(real: str, *, home: str) -> bool:
    """Whether whoever has this path has the machine, or the account of the one who launches."""
    home = os.path.realpath(home)
    if real == "/" or _within(home, real) or real in _SYSTEM:
        return True
    if any(_within(real, place) for place in (*_INSIDE_SYSTEM, str(state_dir()), str(config_dir()))):
        return True
    # ~/.ssh, ~/.bashrc: what programs of the account obey.
    if _within(real, home) and os.path.relpath(real, home).startswith("."):
        return True
    try:
        return stat.S_ISSOCK(os.stat(real).st_mode)
    except OSError:
        return False


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _public(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        try:
            address = parse_port(text).host_ip
        except ValueError:
            continue
        if address not in (LOOPBACK, "::1") and not re.match(r"127\.", address):
            yield text
