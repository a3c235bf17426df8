"""The texts of single launch options, each read into its value; a wrong one says what to write instead.

Every function raises :class:`ValueError` with a sentence that follows the option's name and a colon.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import ClassVar

from gpuconsole.core.errors import ExitCode
from gpuconsole.core.text import plain_line
from gpuconsole.core.users import caller_groups, caller_ids, caller_name
from gpuconsole.engine.model import Mount
from gpuconsole.engine.request import PortRequest
from gpuconsole.images.reference import is_image_id, parse
from gpuconsole.launch.labels import PREFIX
from gpuconsole.launch.limits import is_number, number_up_to

LOOPBACK = "127.0.0.1"
_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]+")
_SHORTEST_NAME = 2
"""Characters of a container's or volume's name, for Docker."""
_LONGEST_NAME = 128
"""Characters of a container's name, for us: Docker takes any number, of which no table and no terminal shows all."""


class PathProblem(ValueError):
    """Something about a path that was written rightly."""

    exit_code: ClassVar[ExitCode]


class MissingPath(PathProblem):
    """A path that is not there."""

    exit_code = ExitCode.NOT_FOUND


class BadContent(PathProblem):
    """A file that cannot be read, or holds what it must not."""

    exit_code = ExitCode.BAD_FILE


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where the options were written: what relative paths, ``~`` and ``-e NAME`` mean."""

    cwd: str
    home: str
    environment: Mapping[str, str]
    uid: int
    gid: int
    user: str = "user"
    """Login name of the caller."""
    groups: tuple[int, ...] = ()
    """All groups the caller is in."""
    engine_is_local: bool = True
    """Paths are this machine's, so that a missing one can be told."""

    @classmethod
    def current(cls, *, engine_is_local: bool = True) -> Surroundings:
        """Those of this process."""
        uid, gid = caller_ids()
        return cls(
            cwd=os.getcwd(),
            home=os.path.expanduser("~"),
            environment=dict(os.environ),
            uid=uid,
            gid=gid,
            user=caller_name(),
            groups=caller_groups(uid, gid),
            engine_is_local=engine_is_local,
        )

    def group_of(self, path: str) -> int | None:
        """The group that owns ``path``; None when it cannot be seen."""
        try:
            return os.stat(path).st_gid
        except OSError:
            return None

    def absolute(self, path: str) -> str:
        """``path`` from the root, ``~`` expanded."""
        if path == "~" or path.startswith("~/"):
            path = self.home + path[1:]
        elif path.startswith("~"):
            path = os.path.expanduser(path)
        return os.path.normpath(os.path.join(self.cwd, path))


def shown(text: str) -> str:
    """``text`` for a sentence: as it is, or quoted with escapes where a terminal would not show it as it is."""
    return text if text and plain_line(text) == text else repr(text)


def not_text(text: str) -> str | None:
    """What is in ``text`` that cannot be sent to an engine; None when there is no such thing."""
    if "\0" in text:
        return "a NUL byte"
    # Bytes of the command line and the shell's variables that cannot be decoded come as lone surrogates.
    return "bytes that are no UTF-8 text" if any("\ud800" <= char <= "\udfff" for char in text) else None


def parse_name(text: str) -> str:
    """A container's name, as the engine allows it."""
    if reason := _wrong_name(text):
        raise ValueError(f"{text!r} cannot be a name; {reason}")
    if len(text) > _LONGEST_NAME:
        raise ValueError(f"a name of {len(text):,} characters is too long; use {_LONGEST_NAME} at most")
    return text


def _wrong_name(text: str) -> str | None:
    """What to do about a text that is no name; None when it is one."""
    if _NAME.fullmatch(text):
        return None
    if 0 < len(text) < _SHORTEST_NAME and text.isascii() and text.isalnum():
        return f"use {_SHORTEST_NAME} characters at least"
    return "use letters, digits, _ . - and begin with a letter or digit"


def parse_volume(text: str, around: Surroundings) -> Mount:
    """``HOST:CONTAINER[:ro]``, or a named volume in the host's place."""
    parts = text.split(":")
    if len(parts) == 1:
        raise ValueError(f"{text!r} says only one side; write HOST:CONTAINER or HOST:CONTAINER:ro")
    if len(parts) > 3:
        raise ValueError(f"{text!r} has too many ':'; a path that has one in it cannot be mounted this way")
    source, target, option = parts[0], parts[1], parts[2] if len(parts) == 3 else "rw"
    if option not in ("ro", "rw"):
        raise ValueError(f"{option!r} is no mount option that is known here; write ro or rw")
    if not source:
        raise ValueError(f"{text!r} names nothing to mount; write HOST:CONTAINER")
    return mount_of(source, target, around, read_only=option == "ro")


def mount_of(source: str, target: str, around: Surroundings, *, read_only: bool) -> Mount:
    """A folder of the host, or a named volume, at ``target`` of the container."""
    target = container_path(target)
    if _is_path(source):
        return Mount("bind", _host_path(source, around), target, read_only)
    if reason := _wrong_name(source):
        raise ValueError(f"{source!r} can be no volume's name; {reason}, or write {shown(f'./{source}')} for a folder")
    return Mount("volume", source, target, read_only)


def container_path(target: str) -> str:
    """A place in the container where something can be mounted."""
    if not target.startswith("/"):
        raise ValueError(f"{target!r} is no absolute path; the container's side begins with /")
    target = os.path.normpath(target).replace("//", "/")
    if target == "/":
        raise ValueError("nothing can be mounted on / of a container")
    return target


def host_file(path: str, around: Surroundings) -> str:
    """A file on the engine's machine, from the root."""
    found = _host_path(path, around)
    if around.engine_is_local and not os.path.isfile(found):
        raise BadContent(f"{shown(found)} is no file")
    return found


def _is_path(source: str) -> bool:
    return source.startswith((".", "~")) or "/" in source


def _host_path(source: str, around: Surroundings) -> str:
    if not around.engine_is_local:
        if not source.startswith("/"):
            raise ValueError(f"{source!r} is no absolute path, and the engine is not on this machine")
        return os.path.normpath(source).replace("//", "/")
    path = around.absolute(source)
    if not os.path.exists(path):
        raise MissingPath(f"{shown(path)} is not there")
    return path


def parse_port(text: str) -> PortRequest:
    """``[[IP:]HOST:]CONTAINER[/PROTOCOL]``: on loopback unless an address is written."""
    body, _, protocol = text.partition("/")
    protocol = protocol.lower() or "tcp"
    if protocol not in ("tcp", "udp", "sctp"):
        raise ValueError(f"{protocol!r} is no protocol; write tcp, udp or sctp")
    address = LOOPBACK
    match = re.fullmatch(r"(?:(\[[^\]]*\]|[^:\[\]]*):)?(?:([^:]*):)?([^:]+)", body)
    if match is None:
        raise ValueError(f"{text!r} is no port; write 8888, 8888:8888 or 127.0.0.1:8888:8888")
    first, second, container = match.groups()
    host = second if second is not None else first
    if second is not None and first:
        address = _address(first)
    return PortRequest(
        container_port=_port(container), host_port=_port(host) if host else 0, host_ip=address, protocol=protocol
    )


def _address(text: str) -> str:
    try:
        return str(ip_address(text.strip("[]")))
    except ValueError as error:
        raise ValueError(f"{text!r} is no IP address") from error


def _port(text: str) -> int:
    if "-" in text:
        raise ValueError(f"{text!r} is a range; give --publish once for each port")
    if not (is_number(text) and number_up_to(text, 65535)):
        raise ValueError(f"{text!r} is no port number from 1 to 65535")
    return int(text)


def parse_ipc(text: str) -> str:
    """Whose shared memory the container uses."""
    if text in ("none", "private", "shareable", "host") or re.fullmatch(r"container:.+", text):
        return text
    raise ValueError(f"{text!r} is no ipc mode; write private, host, shareable, none or container:NAME")


def parse_working_dir(text: str) -> str:
    """An absolute path in the container."""
    if not text.startswith("/"):
        raise ValueError(f"{text!r} is no absolute path")
    return text


def parse_label(text: str) -> tuple[str, str]:
    """``KEY=VALUE``, or ``KEY`` with an empty value."""
    key, _, value = text.partition("=")
    if not key:
        raise ValueError(f"{text!r} has no key; write KEY=VALUE")
    if key.startswith(PREFIX):
        raise ValueError(f"{key!r} is kept for gpuconsole's own labels")
    return key, value


def parse_hostname(text: str) -> str:
    """The name a container gives itself."""
    if not re.fullmatch(r"[a-zA-Z0-9]([a-zA-Z0-9.-]{0,61}[a-zA-Z0-9])?", text):
        raise ValueError(f"{text!r} is no host name")
    return text


def parse_network(text: str) -> str:
    """A network's name, or ``host``, ``bridge``, ``none``, ``container:NAME``."""
    if not text.strip() or any(char.isspace() for char in text) or text == "container:":
        raise ValueError(f"{text!r} is no network; write bridge, host, none, container:NAME or a network's name")
    return text


def parse_image(text: str) -> str:
    """An image reference or id, as written; the engine has the last word."""
    if not text.strip():
        raise ValueError("empty; name an image such as pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime")
    if not is_image_id(text):
        parse(text)
    return text
