"""Where a GPU hangs: its NUMA node, and how many of the processors that may be used are on it."""

from __future__ import annotations

import os
from typing import Any

from gpuconsole.probes.payload import environment

_DEVICES = "/sys/bus/pci/devices"
_NODES = "/sys/devices/system/node"


def placement(torch: Any, device: str, *, devices: str = _DEVICES, nodes: str = _NODES) -> dict[str, Any]:
    """What is known, as values of a record; nothing on a machine of one node or where torch tells no PCI address."""
    properties = torch.cuda.get_device_properties(device)
    bus = getattr(properties, "pci_bus_id", None)
    if not isinstance(bus, int):
        return {}
    domain, slot = getattr(properties, "pci_domain_id", 0), getattr(properties, "pci_device_id", 0)
    text = environment.read(os.path.join(devices, "{:04x}:{:02x}:{:02x}.0".format(domain, bus, slot), "numa_node"))
    node = (text or "").strip()
    if not node.isdigit():  # -1 where there is one node only
        return {}
    found: dict[str, Any] = {"numa_node": int(node)}
    near = numbers(environment.read(os.path.join(nodes, "node" + node, "cpulist")) or "")
    allowed = os.sched_getaffinity(0)
    if near and allowed:
        found["cpus_on_node_share"] = round(len(allowed & near) / len(allowed), 3)
    return found


def numbers(text: str) -> set[int]:
    """The numbers of a list as the kernel writes it: ``0-3,8``."""
    found: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and (last or first).isdigit():
            found.update(range(int(first), int(last or first) + 1))
    return found
