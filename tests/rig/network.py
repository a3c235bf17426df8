"""Bridges for the rig's engines: own names, own address ranges, made and removed without touching others."""

from __future__ import annotations

import fcntl
import json
import random
import socket
import struct
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from tests.rig.places import CACHE, RigError, locked

# ioctl numbers of Linux (linux/sockios.h): the rig needs no iproute2 on the machine.
_SIOCGIFADDR, _SIOCSIFADDR, _SIOCSIFNETMASK = 0x8915, 0x8916, 0x891C
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _SIOCBRADDBR, _SIOCBRDELBR = 0x8913, 0x8914, 0x89A0, 0x89A1
_IFF_UP = 1
_RECORD = "networks.json"


def _ioctl(request: int, data: bytes) -> bytes:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        return fcntl.ioctl(control, request, data)


def _named(name: str, rest: bytes = b"") -> bytes:
    return struct.pack("16s24s", name.encode(), rest)


def _address(address: IPv4Address) -> bytes:
    return struct.pack("HH4s", socket.AF_INET, 0, address.packed)


def _set_up(name: str, *, up: bool) -> None:
    flags = struct.unpack("16sH22x", _ioctl(_SIOCGIFFLAGS, _named(name)))[1]
    flags = flags | _IFF_UP if up else flags & ~_IFF_UP
    _ioctl(_SIOCSIFFLAGS, _named(name, struct.pack("H", flags)))


def _routes() -> list[IPv4Network]:
    """Give every network this machine has a route to, the default route left out."""
    found = []
    for line in Path("/proc/net/route").read_text().splitlines()[1:]:
        fields = line.split()
        target, mask = (IPv4Address(struct.pack("<I", int(fields[i], 16))) for i in (1, 7))
        if int(mask):
            found.append(IPv4Network(f"{target}/{mask}", strict=False))
    return found


def _free_range() -> IPv4Network:
    taken = _routes()
    for _ in range(200):
        chosen = IPv4Network((f"10.{random.randrange(200, 250)}.{random.randrange(16) * 16}.0", 20))
        if not any(chosen.overlaps(network) for network in taken):
            return chosen
    raise RigError("no free private address range for the rig's bridge")


def create_bridge(folder: Path, name: str) -> IPv4Network:
    """Create a bridge and give its /20: the bridge has the first /24, networks made later the upper half.

    The range is noted in the rig's folder before anything is made, so that nothing can be left behind.
    """
    with locked(CACHE / "network.lock"):
        chosen = _free_range()
        record = folder / _RECORD
        ranges = json.loads(record.read_text()) if record.exists() else []
        record.write_text(json.dumps([*ranges, str(chosen)]))
        _ioctl(_SIOCBRADDBR, name.encode() + b"\0")
        _ioctl(_SIOCSIFADDR, _named(name, _address(chosen[1])))
        _ioctl(_SIOCSIFNETMASK, _named(name, _address(IPv4Address("255.255.255.0"))))
        _set_up(name, up=True)
    return chosen


def interfaces(prefix: str) -> list[str]:
    """Give the network interfaces whose name begins so."""
    return [name for _, name in socket.if_nameindex() if name.startswith(prefix)]


def _inside(name: str, ranges: list[IPv4Network]) -> bool:
    try:
        answer = _ioctl(_SIOCGIFADDR, _named(name))
    except OSError:  # no address, or gone meanwhile
        return False
    return any(IPv4Address(answer[20:24]) in network for network in ranges)


def bridges_of(folder: Path, prefix: str) -> list[str]:
    """Give the rig's bridges and those its engines made for networks of their own."""
    record = folder / _RECORD
    ranges = [IPv4Network(text) for text in json.loads(record.read_text())] if record.exists() else []
    bridges = [path.name for path in Path("/sys/class/net").iterdir() if (path / "bridge").exists()]
    return [name for name in bridges if name.startswith(prefix) or _inside(name, ranges)]


def remove_bridges(folder: Path, prefix: str) -> None:
    """Remove the rig's bridges and those its engines made for networks of their own."""
    for name in bridges_of(folder, prefix):
        _set_up(name, up=False)
        _ioctl(_SIOCBRDELBR, name.encode() + b"\0")
