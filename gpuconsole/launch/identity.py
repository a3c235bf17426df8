"""Who ``me`` is inside a container: ids, a name, a home, caches, and the files that programs look them up in.

A bare ``--user 1000:1000`` leaves a process without a name and with ``/`` as its home: ``getpwuid`` fails, ssh
refuses, torch, Triton and Jupyter have no place to write. So it gets an entry in a ``passwd`` made of the image's own,
and a home in ``/tmp``, which all may write in every image, which is on the container's disk, and goes with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpuconsole.engine.model import EngineInfo
from gpuconsole.engine.request import Tmpfs
from gpuconsole.launch.spec import Caller, LaunchSpec

PASSWD, GROUP = "/etc/passwd", "/etc/group"
_HOME, _OTHER_HOME = "/tmp", "/var/tmp"  # noqa: S108  # in the container
_ROOT = "0:0"
_CACHES = {
    "XDG_CACHE_HOME": ".cache",
    "TORCH_HOME": ".cache/torch",
    "HF_HOME": ".cache/huggingface",
    "TRITON_CACHE_DIR": ".cache/triton",
    "TORCHINDUCTOR_CACHE_DIR": ".cache/torchinductor",
}
"""Variable → folder below the home."""
IDENTITY_VARIABLES = ("HOME", "USER", "LOGNAME", *_CACHES)
"""What the caller's container is told beside its ids."""
_ORDINARY_USERS = (
    "root:x:0:0:root:/root:/bin/sh\n"
    "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
)
_ORDINARY_GROUPS = "root:x:0:\ndaemon:x:1:\nnogroup:x:65534:\n"


@dataclass(frozen=True, slots=True)
class Identity:
    """What a container is told about who runs it."""

    user: str
    """``uid:gid``."""
    environment: tuple[tuple[str, str], ...] = ()
    group_add: tuple[str, ...] = ()
    tmpfs: tuple[Tmpfs, ...] = ()
    needs_files: bool = False
    """Its name stands in a ``passwd`` and a ``group`` of ours."""
    home: str = ""
    working_dir: str | None = None
    """Where its command starts, unless that is written; None leaves it to the image."""
    reason: str = ""
    """One sentence for the person who launches; empty when there is nothing to say."""
    notes: tuple[str, ...] = ()


def identity_of(
    spec: LaunchSpec, info: EngineInfo, *, image_environment: Mapping[str, str | None], image_folder: str = ""
) -> Identity | None:
    """Who runs the container of ``spec``; None when it is the image's user, or one that was written.

    Args:
        spec: What was asked for.
        info: The engine it is for.
        image_environment: The image's own variables; empty when they are not known.
        image_folder: Where the image starts; empty when that is not known.
    """
    caller = spec.caller
    if caller is None:
        return None
    notes = _notes(info, caller)
    if info.rootless:
        # There the engine's root is the caller: any other id inside is one of the caller's subordinate ids outside.
        return Identity(_ROOT, notes=notes)
    if caller.uid == 0:
        return Identity(f"0:{caller.gid}", notes=notes)
    targets = {mount.target for mount in spec.mounts}
    home = _OTHER_HOME if _HOME in targets else _HOME
    covered = targets | {tmpfs.target for tmpfs in spec.tmpfs}
    scratch = (Tmpfs(home, ("exec", "mode=1777")),) if spec.read_only and home not in covered else ()
    return Identity(
        user=f"{caller.uid}:{caller.gid}",
        environment=_environment(caller, home, image_environment),
        group_add=tuple(str(group) for group in caller.groups),
        tmpfs=scratch,
        needs_files=info.local and not {PASSWD, GROUP} & targets,
        home=home,
        working_dir=_working_dir(spec, image_folder, home),
        reason=f"It runs as {_entry_name(caller)} ({caller.uid}:{caller.gid}), who owns what it writes; "
        "--user image keeps the image's own user.",
        notes=notes,
    )


def _working_dir(spec: LaunchSpec, image_folder: str, home: str) -> str | None:
    """A place to start in an image that starts in root's own folder, which is closed to others."""
    if spec.working_dir is not None or not f"{image_folder}/".startswith("/root/"):
        return None
    return next((mount.target for mount in spec.mounts if mount.kind == "bind"), home)


def _environment(caller: Caller, home: str, of_image: Mapping[str, str | None]) -> tuple[tuple[str, str], ...]:
    name = _entry_name(caller)
    found = {"HOME": home, "USER": name, "LOGNAME": name}
    for name, folder in _CACHES.items():
        # An image that has its models in a place of its own keeps it, unless that place is closed to all but root.
        if not (set_by_image := of_image.get(name)) or set_by_image.startswith("/root"):
            found[name] = f"{home}/{folder}"
    return tuple(found.items())


def _notes(info: EngineInfo, caller: Caller) -> tuple[str, ...]:
    if info.rootless:
        return (f"The engine runs without root, so the container's root is {caller.name}: files come out as theirs.",)
    if any("name=userns" in option for option in info.security_options):
        return (
            "The engine shifts user ids (userns-remap): what the container writes belongs to a shifted id, not to "
            f"{caller.name}.",
        )
    if not info.local:
        return (f"The container runs as {caller.uid}:{caller.gid}, which may be another user on the engine's machine.",)
    return ()


def passwd_for(caller: Caller, home: str, own: str | None) -> str:
    """The image's ``passwd`` with the caller in it.

    Args:
        caller: Who.
        home: Their home in the container.
        own: The image's own; None when it cannot be read.
    """
    lines = _lines(own if own is not None else _ORDINARY_USERS)
    shell = next((line.split(":")[6] for line in lines if re.match(r"root:.*:0:", line) and line.count(":") == 6), "")
    name = _entry_name(caller)
    kept = [line for line in lines if not _is_entry(line, name, caller.uid)]
    return "\n".join([*kept, f"{name}:x:{caller.uid}:{caller.gid}:{name}:{home}:{shell or '/bin/sh'}", ""])


def group_for(caller: Caller, own: str | None) -> str:
    """The image's ``group`` with the caller's group, and their further ones, named in it where it names none."""
    lines = _lines(own if own is not None else _ORDINARY_GROUPS)
    known = {line.split(":")[2] for line in lines if line.count(":") >= 3}
    names = {line.split(":")[0] for line in lines}
    for number in (caller.gid, *caller.groups):
        if str(number) not in known:
            name = _entry_name(caller) if number == caller.gid else f"group{number}"
            name = name if name not in names else f"group{number}"
            lines.append(f"{name}:x:{number}:")
    return "\n".join([*lines, ""])


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _is_entry(line: str, name: str, uid: int) -> bool:
    parts = line.split(":")
    return len(parts) >= 3 and (parts[0] == name or parts[2] == str(uid))


def _entry_name(caller: Caller) -> str:
    """A login name that fits into a line: a directory service may allow what a file cannot hold."""
    name = re.sub(r"[^A-Za-z0-9_.@-]", "_", caller.name)[:32].lstrip("-")
    return name if name and name != "root" else f"user{caller.uid}"


def free_of(names: Iterable[str], wanted: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Of ``wanted`` what is not among ``names``: what a person writes comes before what we think good."""
    taken = frozenset(names)
    return tuple((name, value) for name, value in wanted if name not in taken)
