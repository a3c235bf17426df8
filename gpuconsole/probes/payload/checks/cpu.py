"""C21: processors enough for each GPU, and on its side of the machine."""

from __future__ import annotations

import os
from typing import Any

from gpuconsole.probes.payload import environment, libcuda
from gpuconsole.probes.payload.outcome import OK, SKIP, WARN, Context, Outcome, count_of

CORES_PER_GPU = 4
_NODE = "/sys/bus/pci/devices/{}/numa_node"
_CPUS_OF_NODE = "/sys/devices/system/node/node{}/cpulist"


def run(context: Context) -> Outcome:
    """Count the processors that may be used, and compare their place with that of the GPUs."""
    cores, quota = environment.cpus(), environment.cpu_quota()
    gpus = int(context.torch.cuda.device_count()) if context.cuda else (context.asked_count or 0)
    value: dict[str, Any] = {
        "cpus": cores,
        "cpu_quota": quota,
        "gpus": gpus,
        "numa_nodes": nodes_of_gpus() if context.cuda else [],
        "far": [],
    }
    allowed = _allowed()
    for node in sorted({node for node in value["numa_nodes"] if node is not None}):
        near = cpu_list(environment.read(_CPUS_OF_NODE.format(node)) or "")
        if near and allowed and not near & allowed:
            value["far"].append(node)
    outcome = judge(value)
    outcome.value = value
    return outcome


def _allowed() -> set[int]:
    try:
        return set(os.sched_getaffinity(0))
    except (OSError, AttributeError):
        return set()


def nodes_of_gpus() -> list[int | None]:
    """The NUMA node of each GPU in CUDA's order; None where there are no nodes, or it is not told."""
    nodes: list[int | None] = []
    for bus_id in libcuda.ask().get("bus_ids") or []:
        text = (environment.read(_NODE.format(bus_id.lower())) or "").strip() if bus_id else ""
        nodes.append(int(text) if text.isdigit() else None)  # the kernel writes -1 where there is one node only
    return nodes


def cpu_list(text: str) -> set[int]:
    """The numbers in ``0-3,8``."""
    found: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and (not last or last.isdigit()):
            found.update(range(int(first), int(last or first) + 1))
    return found


def judge(value: dict[str, Any]) -> Outcome:
    """The outcome for the processors and the GPUs."""
    cores, quota, gpus = value["cpus"], value["cpu_quota"], value["gpus"]
    if cores is None:
        return Outcome(SKIP, "how many processors there are cannot be told")
    share = float(cores) if quota is None else min(float(cores), quota)
    told = count_of(cores, "processor") if quota is None else "time of {:g} processors".format(share)
    if gpus and share < CORES_PER_GPU * gpus:
        why = "{} for {}, less than {} each".format(told, count_of(gpus, "GPU"), CORES_PER_GPU)
        fix = "Launch it with more of them: --cpus." if quota is not None else "DataLoader workers will be few."
        return Outcome(WARN, why, fix)
    if not gpus and share < 1:
        return Outcome(WARN, "it may use the time of {:g} processors only".format(share), "Launch it with --cpus 2.")
    if value["far"]:
        nodes = ", ".join(str(node) for node in value["far"])
        why = "none of its processors is on the side of the GPU (NUMA node {})".format(nodes)
        return Outcome(WARN, why, "Launch it with --cpuset-cpus of that node: lscpu lists them.")
    return Outcome(OK, told + (" for {}".format(count_of(gpus, "GPU")) if gpus else ""))
