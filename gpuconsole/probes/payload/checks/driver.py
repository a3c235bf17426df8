"""C03: the versions of driver and CUDA, and whether they fit."""

from __future__ import annotations

import re
from typing import Any

from gpuconsole.probes.payload import environment, libcuda
from gpuconsole.probes.payload.outcome import FAIL, OK, SKIP, WARN, Context, Outcome

LOWEST = {11: 450, 12: 525, 13: 580}
"""CUDA major → the lowest driver branch that runs it, apart from forward compatibility on data-centre cards."""
_VERSION = re.compile(r"Kernel Module(?: for \w+)?\s+(\d+\.\d+(?:\.\d+)*)")


def run(context: Context) -> Outcome:
    """Read the versions from the kernel module, libcuda and torch."""
    built = context.torch.version.cuda
    module = kernel_module(environment.read("/proc/driver/nvidia/version") or "")
    context.environment({"driver": module})
    if built is None:
        return Outcome(SKIP, "torch is a CPU build", "", {"driver": module})
    if context.cuda:
        answer: Any = libcuda.ask()
    else:
        answer = libcuda.ask_apart(str(context.config.get("archive", "")), timeout_s=10.0)
        if answer is None:
            return Outcome(SKIP, "the driver does not answer", "", {"driver": module, "torch_cuda": built})
    offers, path = answer["version"], answer.get("path")
    value = {"driver": module, "driver_cuda": offers, "torch_cuda": built, "libcuda": path}
    context.environment({"driver_cuda": None if offers is None else dotted(offers)})
    outcome = judge(module=module, offers=offers, built=built, path=path)
    outcome.value = value
    return outcome


def kernel_module(text: str) -> str | None:
    """The driver's version in ``/proc/driver/nvidia/version``."""
    match = _VERSION.search(text)
    return match.group(1) if match else None


def dotted(number: int) -> str:
    """``12.4`` of 12040."""
    return "{}.{}".format(number // 1000, number % 1000 // 10)


def judge(*, module: str | None, offers: int | None, built: str, path: Any) -> Outcome:
    """The outcome for the driver's version, the CUDA it offers, torch's CUDA, and where libcuda came from."""
    if module is None and offers is None:
        return Outcome(SKIP, "no driver is to be seen in the container")
    major = int(built.split(".")[0]) if built.split(".")[0].isdigit() else 0
    what = "driver {}, offers CUDA {}, torch is built for {}".format(
        module or "unknown", "unknown" if offers is None else dotted(offers), built
    )
    branch = int(module.split(".")[0]) if module else None
    lowest = LOWEST.get(major)
    compat = isinstance(path, str) and "compat" in path
    if branch is not None and lowest is not None and branch < lowest:
        if compat:
            fix = "Update the driver of the host to {} or newer.".format(lowest)
            return Outcome(WARN, what + ", by forward compatibility", fix)
        return Outcome(
            FAIL,
            what + ", which needs driver {} or newer".format(lowest),
            "Update the driver of the host, or take an image of an older CUDA.",
        )
    if offers is not None and offers // 1000 < major and not compat:
        return Outcome(
            FAIL,
            what + ", which is too new for it",
            "Update the driver of the host, or take an image of an older CUDA.",
        )
    if compat:
        return Outcome(WARN, what + ", by forward compatibility", "It works on data-centre GPUs only.")
    return Outcome(OK, what)
