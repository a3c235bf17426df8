"""C02: CUDA starts; and when it does not, why."""

from __future__ import annotations

import glob
import os
import re
import sys
import warnings
from typing import Any

from gpuconsole.probes.payload import environment, libcuda
from gpuconsole.probes.payload.outcome import FAIL, OK, SKIP, WARN, Context, Outcome, count_of, first_line

_RELAUNCH = "Launch it again with GPUs: gpuconsole launch IMAGE --gpus 1."


def run(context: Context) -> Outcome:
    """Ask torch; when it says no, ask the driver and look around for the reason."""
    torch = context.torch
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        available = bool(torch.cuda.is_available())
        count = int(torch.cuda.device_count()) if available else 0
    words = [first_line(warning.message) for warning in caught]
    for text in words:
        sys.stderr.write(text + "\n")
    value: dict[str, Any] = {"available": available, "count": count}
    if available and count:
        uuids = libcuda.ask()["uuids"]
        value["uuids"] = uuids
        context.environment({"gpus": environment.of_gpus(torch, uuids)})
        return Outcome(OK, "CUDA starts and shows {}".format(count_of(count, "GPU")), "", value)
    if torch.version.cuda is None:
        return Outcome(SKIP, "torch is a CPU build", "", value)
    facts = look_around(context, " ".join(words))
    value.update(facts)
    outcome = explain(facts)
    outcome.value = value
    return outcome


def look_around(context: Context, words: str) -> dict[str, Any]:
    """The facts :func:`explain` decides on."""
    archive = str(context.config.get("archive", ""))
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    driver = libcuda.ask_apart(archive)
    unhidden = None
    if hidden is not None:
        unhidden = libcuda.ask_apart(archive, without=("CUDA_VISIBLE_DEVICES",))
    nodes = device_nodes()
    return {
        "words": words,
        "asked": context.asked_count,
        "nodes": nodes,
        "closed_nodes": closed_nodes(nodes),
        "uvm": os.path.exists("/dev/nvidia-uvm"),
        "wsl": os.path.exists("/dev/dxg"),
        "tegra": bool(glob.glob("/dev/nvhost-*")) or os.path.exists("/dev/nvmap"),
        "cuda_visible_devices": hidden,
        "nvidia_visible_devices": os.environ.get("NVIDIA_VISIBLE_DEVICES"),
        "capabilities": os.environ.get("NVIDIA_DRIVER_CAPABILITIES"),
        "library": None if driver is None else driver["library"],
        "library_path": None if driver is None else driver.get("path"),
        "init": None if driver is None else driver["init"],
        "seen": None if driver is None else len(driver["uuids"]),
        "hung": driver is None,
        "driver_cuda": None if driver is None else driver["version"],
        "torch_cuda": context.torch.version.cuda,
        "seen_unhidden": None if unhidden is None else len(unhidden["uuids"]),
    }


def device_nodes() -> list[str]:
    """Device nodes of GPUs in this container."""
    return sorted(path for path in glob.glob("/dev/nvidia*") if re.fullmatch(r"/dev/nvidia\d+", path))


def closed_nodes(nodes: list[str]) -> list[str]:
    """Those of ``nodes`` that this container may not open."""
    closed = []
    for path in nodes:
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
        except PermissionError:
            closed.append(path)
        except OSError:
            pass  # a GPU that does not answer is the driver's matter
    return closed


def explain(facts: dict[str, Any]) -> Outcome:
    """Why CUDA does not start, from what was seen; the first cause that fits is told."""
    for rule in (_nothing_given, _taken_away, _hidden, _no_library, _by_code):
        outcome = rule(facts)
        if outcome is not None:
            return outcome
    words = facts.get("words") or "torch gives no reason"
    fix = "Restart the container, then look at gpuconsole doctor."
    return Outcome(FAIL, "CUDA does not start: {}".format(words), fix)


def _nothing_given(facts: dict[str, Any]) -> Outcome | None:
    if facts["nodes"] or facts["wsl"] or facts["tegra"]:
        return None
    if facts["asked"]:
        visible = facts["nvidia_visible_devices"]
        if visible is not None and visible.strip().lower() in ("", "void", "none"):
            return Outcome(
                FAIL,
                "no GPU is in the container: NVIDIA_VISIBLE_DEVICES is {!r}".format(visible),
                "Leave that variable out: GPUs are chosen at launch.",
            )
        return Outcome(FAIL, "no GPU is in the container, although it was given some", _RELAUNCH)
    if facts["asked"] is None:
        return Outcome(WARN, "there is no GPU in the container: no /dev/nvidia0 or other", _RELAUNCH)
    return Outcome(SKIP, "no GPU was given", "For GPUs launch it with --gpus.")


def _taken_away(facts: dict[str, Any]) -> Outcome | None:
    if not facts["closed_nodes"]:
        return None
    return Outcome(
        FAIL,
        "the container has lost the right to use {}".format(", ".join(facts["closed_nodes"])),
        "Restart the container; it happens when the host reloads its services (systemctl daemon-reload).",
    )


def _hidden(facts: dict[str, Any]) -> Outcome | None:
    hidden = facts["cuda_visible_devices"]
    if hidden is None:
        return None
    unhidden = facts["seen_unhidden"]
    hides_all = hidden.strip() == "" or hidden.strip().startswith("-")
    if not unhidden and not (hides_all and unhidden is None):
        return None
    return Outcome(
        FAIL,
        "CUDA_VISIBLE_DEVICES is {!r} and hides every GPU".format(hidden[:80]),
        "Unset it in the container: GPUs are chosen at launch, and count from 0 inside.",
    )


def _no_library(facts: dict[str, Any]) -> Outcome | None:
    if facts["library"] is not False:
        return None
    capabilities = facts["capabilities"]
    if capabilities and "compute" not in capabilities and "all" not in capabilities:
        return Outcome(
            FAIL,
            "the driver's libcuda.so.1 is not in the container: NVIDIA_DRIVER_CAPABILITIES is {!r}".format(
                capabilities
            ),
            "Add compute to it: NVIDIA_DRIVER_CAPABILITIES=compute,utility.",
        )
    return Outcome(
        FAIL,
        "the driver's libcuda.so.1 is not in the container",
        "Give GPUs through the NVIDIA Container Toolkit or CDI (gpuconsole launch does), not by device nodes alone.",
    )


def _by_code(facts: dict[str, Any]) -> Outcome | None:
    if facts["hung"]:
        return Outcome(
            FAIL,
            "the CUDA driver does not answer",
            "Look at gpuconsole doctor; the host may have to be restarted.",
        )
    code = facts["init"]
    if code in (None, 0):
        return _too_old(facts)
    compat = "compat" in (facts["library_path"] or "")
    table = {
        3: ("the driver is not initialised", "Reload nvidia_uvm on the host (modprobe nvidia_uvm), or reboot it."),
        34: ("libcuda is a stub for building", "Take the stubs folder out of LD_LIBRARY_PATH."),
        100: ("the driver finds no GPU it may use", "Restart the container; then look at gpuconsole doctor."),
        101: ("the driver is asked for a GPU it does not have", "Unset CUDA_VISIBLE_DEVICES in the container."),
        802: (
            "the system is not ready: the fabric manager does not run",
            "Start it on the host: systemctl start nvidia-fabricmanager, of the driver's own version.",
        ),
        803: (
            "the driver's library and its kernel module do not fit",
            "Update the driver of the host, and restart the container so that it gets the new library.",
        ),
        804: (
            "forward compatibility was tried on a GPU that has none",
            "Update the driver of the host, or take the compat folder out of LD_LIBRARY_PATH.",
        ),
        999: (
            "the driver fails for no reason it names" + ("" if facts["uvm"] else ", and /dev/nvidia-uvm is missing"),
            "Reload nvidia_uvm on the host, then restart the container; else reboot the host.",
        ),
    }
    why, fix = table.get(code, ("cuInit answers {}".format(code), "Look at gpuconsole doctor."))
    if compat and code in (803, 804):
        why += ", with the compat library " + facts["library_path"]
    return Outcome(FAIL, "CUDA does not start: {} (code {})".format(why, code), fix)


def _too_old(facts: dict[str, Any]) -> Outcome | None:
    driver, built = facts["driver_cuda"], facts["torch_cuda"]
    if "too old" not in facts["words"] and not _older(driver, built):
        return None
    offers = "" if driver is None else " (it offers CUDA {}.{})".format(driver // 1000, driver % 1000 // 10)
    return Outcome(
        FAIL,
        "the driver of the host is too old for a CUDA {} build{}".format(built, offers),
        "Update the driver of the host, or take an image of an older CUDA.",
    )


def _older(driver: int | None, built: str | None) -> bool:
    if driver is None or not built or not built.split(".")[0].isdigit():
        return False
    return driver // 1000 < int(built.split(".")[0])
