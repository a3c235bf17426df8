"""Preflight of what a container shares with the machine: its memory, its network, its devices, the engine's rights."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from gpuconsole.core.text import size
from gpuconsole.engine.request import DeviceRequest
from gpuconsole.launch.changes import Change
from gpuconsole.launch.fields import shown
from gpuconsole.launch.preflight import Facts, Finding, Rule, Severity
from gpuconsole.launch.work import Kind

_LITTLE_MEMORY = 2**30
"""PyTorch with CUDA takes as much before it has loaded anything."""
_DISK = "raw disks: all that is on them can be read and changed, whatever the modes of files say"
_DANGERS: tuple[tuple[str, str], ...] = (
    (r"(sd[a-z]|hd[a-z]|vd[a-z]|xvd[a-z]|nvme|dm-|md\d|md/|mapper/|disk/|loop|nbd|mmcblk|zd\d|zvol/|sr\d|sg\d|bsg/"
     r"|block/|raw|bcache|btrfs-control|pmem|ram\d|zram).*", _DISK),
    (r"mem|kmem|port|cpu/.*|mcelog|nvram", "the machine's memory or its processors' registers"),
    (r"kmsg", "the kernel's log, to be read and written"),
    (r"vfio(/.*)?|uio\d+|iommu", "whole PCI devices, which may reach all memory"),
    (r"uinput|input(/.*)?|hidraw\d+|console|tty\d*|vcs.*|fb\d+", "the machine's keyboards and screens"),
    (r"watchdog\d*|ipmi.*|ipmi/.*|mei\d*|tpm\w*", "what restarts or manages the machine"),
)  # fmt: skip
"""Name below ``/dev`` → what a container has with it."""
_ENGINE_GROUP = "docker"


def memory_group(facts: Facts) -> Iterator[Finding]:
    """The control groups above the containers of this engine allow less than the machine has."""
    group = facts.memory_group
    if group is None:
        return
    where = f"the control group {group.name}" if group.name != "/" else "the control group of this whole system"
    machine, limit = facts.info.memory_bytes, facts.spec.memory_bytes
    if limit is not None and limit > group.limit_bytes and (machine is None or limit <= machine):
        yield Finding(
            "memory-group",
            Severity.WARN,
            "--memory",
            f"{size(limit)} is more than the {size(group.limit_bytes)} that {where} allows all of the engine's "
            "containers together: the kernel ends processes before the limit is reached.",
            f"Give {size(group.limit_bytes)} at most, or have the group's limit lifted.",
            Change("memory", None),
        )
    shm = facts.spec.shm_bytes
    if shm is not None and shm > group.limit_bytes and (limit is None or shm <= limit):
        yield Finding(
            "memory-group",
            Severity.WARN,
            "--shm-size",
            f"{size(shm)} of /dev/shm count as memory, and {where} allows all of the engine's containers "
            f"{size(group.limit_bytes)}: a full one ends the work.",
            "Leave --shm-size out: it is then half of that at most.",
            Change("shm_size", None),
        )
    free = None if group.used_bytes is None else max(0, group.limit_bytes - group.used_bytes)
    little = max(_LITTLE_MEMORY, group.limit_bytes // 20)
    if free is not None and free < little and (limit is None or limit > free):
        yield Finding(
            "memory-group",
            Severity.WARN,
            "--memory",
            f"Of the {size(group.limit_bytes)} of memory that {where} allows all of the engine's containers "
            f"{size(free)} are free: the kernel may end processes in it, also those of others.",
            "End containers that are not needed ('gpuconsole ps'), or have the group's limit lifted.",
        )


def network_host(facts: Facts) -> Iterator[Finding]:
    """In the machine's own network nothing stands between the container's ports and everybody's."""
    # Machines that work together need it, and are told so.
    if facts.spec.network != "host" or (facts.spec.work.nodes or 1) > 1:
        return
    own = facts.spec.work.kind in (Kind.JUPYTER, Kind.TENSORBOARD)
    yield Finding(
        "network-host",
        Severity.WARN,
        "--network",
        "The container is in the machine's own network: "
        + ("other ports than its own on loopback" if own else "every port that it opens")
        + " can be open to all who reach the machine, and it reaches what trusts 127.0.0.1 here.",
        "Leave --network out" + ("." if own else ", and publish what is needed: -p 8888."),
        Change("network", None),
    )


def ipc_host(facts: Facts) -> Iterator[Finding]:
    """Shared memory of the whole machine, where a size of its own would do."""
    if facts.spec.ipc_mode != "host":
        return
    yield Finding(
        "ipc-host",
        Severity.HINT,
        "--ipc",
        "The container shares /dev/shm with all processes of the machine: they may read each other's, and what a "
        "killed run leaves in it stays.",
        "Leave --ipc out: it gets a /dev/shm of its own that is large enough for DataLoader workers and NCCL.",
        Change("ipc", None),
    )


def devices(facts: Facts) -> Iterator[Finding]:
    """Devices that give a container the machine, GPUs that were not chosen, or that are not there."""
    for device in facts.request.devices:
        known = facts.devices.get(device.host_path)
        if known is not None and known.exists is False:
            yield Finding(
                "device-missing",
                Severity.REFUSE,
                "--device",
                f"{shown(device.host_path)} is not there.",
                f"Look at 'ls -l {shown(posixpath.dirname(device.host_path))}', or leave it out.",
                _without(facts, device),
            )
            continue
        yield from _gpus(facts, device)
        if danger := _danger(facts, device):
            yield Finding(
                "dangerous-device",
                Severity.REFUSE,
                "--device",
                f"{_named(facts, device)} gives the container {danger}.",
                "Mount the folders that the work needs, or pass --force dangerous-device if this is meant.",
                _without(facts, device),
                forceable=True,
            )


def _gpus(facts: Facts, device: DeviceRequest) -> Iterator[Finding]:
    known = facts.devices.get(device.host_path)
    if known is None or not (known.gpus or known.graphics):
        return
    names = known.gpus or known.graphics
    told = f"{', '.join(map(shown, names[:3]))}{' …' if len(names) > 3 else ''}"
    whole = "" if names == (device.host_path,) else f"{shown(device.host_path)} is or holds "
    way = "" if known.gpus else " through its graphics"
    yield Finding(
        "gpu-device",
        Severity.REFUSE if known.gpus else Severity.WARN,
        "--device",
        f"{whole}{told}: that gives a GPU{way}, whichever --gpus has chosen.",
        "Choose GPUs by --gpus, which gives what belongs to them as well.",
        _without(facts, device),
    )


def _named(facts: Facts, device: DeviceRequest) -> str:
    known = facts.devices.get(device.host_path)
    led = known is not None and known.real not in ("", device.host_path) and known.names == (known.real,)
    return f"{shown(device.host_path)}{f' (it leads to {shown(known.real)})' if led and known else ''}"


def _danger(facts: Facts, device: DeviceRequest) -> str:
    """What a container has with a device, in words; empty when nothing that matters."""
    known = facts.devices.get(device.host_path)
    if known is not None and known.disks:
        return _DISK
    for name in (device.host_path, *(known.names if known is not None else ())):
        below = posixpath.normpath(name).removeprefix("/dev").lstrip("/")
        if not below:
            return "every device of the machine"
        for pattern, words in _DANGERS:
            if re.fullmatch(pattern, below):
                return words
    return ""


def _without(facts: Facts, device: DeviceRequest) -> Change | None:
    item = facts.item("devices", device.host_path, ":")
    return Change("devices", None, instead=item) if item else None


def engine_group(facts: Facts) -> Iterator[Finding]:
    """A group whose members command the engine."""
    numbers = {_ENGINE_GROUP, *([str(facts.engine_gid)] if facts.engine_gid else [])}
    for group in facts.spec.group_add:
        if group in numbers:
            yield Finding(
                "group-docker",
                Severity.WARN,
                "--group-add",
                f"Members of the group {group} command the engine where they reach its socket, and by it the whole "
                "machine as root.",
                "Leave it out: for GPUs and mounted folders it is not needed.",
                Change("group_add", None, instead=group),
            )


RULES: tuple[Rule, ...] = (devices, engine_group, network_host, ipc_host, memory_group)
"""In the order in which they are told."""
