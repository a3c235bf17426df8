"""Which container a process belongs to, by its control group: ``/proc/<pid>/cgroup``.

Engines name a container's group after its id of 64 hex digits; where in the tree, and with what around it, depends on
engine, cgroup version and cgroup driver:

========================== =========================================================================================
docker, cgroupfs driver    ``/docker/<id>``, or ``/<--cgroup-parent>/<id>``
docker, systemd driver     ``/system.slice/docker-<id>.scope``; rootless below ``/user.slice/…/user@1000.service/``
podman                     ``/machine.slice/libpod-<id>.scope/container``, ``/libpod_parent/libpod-<id>``,
                           ``/….service/libpod-payload-<id>``; its own helper sits in ``libpod-conmon-<id>.scope``
kubernetes                 ``/kubepods/…/pod<uid>/<id>``, ``/kubepods.slice/…/cri-containerd-<id>.scope``, ``crio-<id>``
containerd, nerdctl        ``/<namespace>/<id>``, ``/system.slice/nerdctl-<id>.scope``
========================== =========================================================================================

A container within a container (an engine of its own, kind) has a path with both. The outermost is the answer: it is
the one this machine's engine knows and can stop, and what runs inside it can name groups below its own only, so it
cannot pass itself off as another container.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

_ID = r"[0-9a-f]{64}"
_ID_LENGTH = 64
_PREFIXES = ("docker-", "libpod-", "libpod-payload-", "cri-containerd-", "crio-", "nerdctl-")
"""Before the id, and then ``.scope`` may come after it."""
_HELPERS = ("libpod-conmon-", "crio-conmon-")
_HEX = frozenset("0123456789abcdef")
_INITIAL_NAMESPACE = "cgroup:[4026531835]"
"""The kernel's fixed number of the namespace it booted in (PROC_CGROUP_INIT_INO)."""
_MOUNTED = rf"/(?:containers|overlay-containers)/({_ID})/"
"""Engines mount a container's own ``/etc/hostname`` from a folder named by its id."""


def container_ids(cgroup: str) -> tuple[str, ...]:
    """Ids of the containers around a process, the outermost first; empty outside any.

    Args:
        cgroup: What ``/proc/<pid>/cgroup`` says.
    """
    for path in _paths(cgroup):
        segments = path.removesuffix(" (deleted)").split("/")
        if max(map(len, segments)) < _ID_LENGTH:
            continue
        if any(segment == "conmon" or _id_after(segment, _HELPERS) for segment in segments):
            continue  # podman's and cri-o's helper runs beside the container, not in it
        found = [one for segment in segments if (one := segment if _is_id(segment) else _id_after(segment, _PREFIXES))]
        if found:
            return tuple(dict.fromkeys(found))
    return ()


def _is_id(text: str) -> bool:
    return len(text) == _ID_LENGTH and _HEX.issuperset(text)


def _id_after(segment: str, prefixes: Collection[str]) -> str:
    """The id in a group's name behind one of ``prefixes``; empty when there is none."""
    name = segment.removesuffix(".scope")
    ids = (name.removeprefix(prefix) for prefix in prefixes if name.startswith(prefix))
    return next((one for one in ids if _is_id(one)), "")


def container_id(cgroup: str) -> str | None:
    """Id of the container a process belongs to as this machine's engine sees it; None outside any."""
    return next(iter(container_ids(cgroup)), None)


def _paths(cgroup: str) -> list[str]:
    """The group in each hierarchy: cgroup v2's first, then systemd's own, then v1's controllers as listed.

    On machines with both versions the v2 hierarchy may hold no containers, and v1's controllers do.
    """
    ranked: list[tuple[int, str]] = []
    for line in cgroup.splitlines():
        _, _, rest = line.partition(":")
        controllers, colon, path = rest.partition(":")
        if colon:
            ranked.append(({"": 0, "name=systemd": 1}.get(controllers, 2), path))
    return [path for _, path in sorted(ranked, key=lambda entry: entry[0])]


def read_text(path: str) -> str:
    """A file of the kernel's, whatever names of strangers are in it."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


class UnknownContainer(LookupError):
    """A process is in the same container as this program, and nothing tells which one that is."""


def read_container_id(process: Path | str, *, known: Collection[str] = ()) -> str | None:
    """Id of the container that the process with the folder ``process`` below ``/proc`` belongs to; None outside any.

    Args:
        process: Its folder.
        known: Ids of the engine's containers. Where the engine itself runs in a container, its own are further in than
            the outermost; one that it knows is believed before.

    Raises:
        OSError: The process is gone, or the file may not be read.
        UnknownContainer: It is in this program's own container, whose id cannot be found.
    """
    text = read_text(os.path.join(process, "cgroup"))
    proc = os.path.dirname(process)
    found = container_ids(text)
    if not found and _is_beside_us(proc, text):
        own = own_container_id(proc)
        if own is None:
            raise UnknownContainer
        return own
    return next((one for one in found if one in known), next(iter(found), None))


def _is_beside_us(proc: str, cgroup: str) -> bool:
    """Whether a group without an id in it is below our own container's, which a namespace shows as the root.

    What is outside of the namespace begins with ``/..`` there.
    """
    try:
        namespace = os.readlink(os.path.join(proc, "self/ns/cgroup"))
    except OSError:
        return False
    return namespace != _INITIAL_NAMESPACE and not any(path.startswith("/..") for path in _paths(cgroup))


def own_container_id(proc: Path | str = "/proc") -> str | None:
    """Id of the container this program runs in; None outside any, and where nothing tells it."""
    try:
        known = container_id(read_text(os.path.join(proc, "self/cgroup")))
        mounts = read_text(os.path.join(proc, "self/mountinfo"))
    except OSError:
        return None
    import re

    mounted = re.search(_MOUNTED, mounts)
    return known or (mounted[1] if mounted else None)
