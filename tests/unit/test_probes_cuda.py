"""Why CUDA does not start, and whether GPUs, driver and torch fit: the decisions, from facts."""

from __future__ import annotations

from typing import Any

import pytest

from gpuconsole.probes.payload.checks import available, devices, driver, gpu_memory, kernel
from gpuconsole.probes.payload.outcome import Asked, same_gpu

GIB = 1 << 30
SOUND: dict[str, Any] = {
    "words": "",
    "asked": 1,
    "nodes": ["/dev/nvidia0"],
    "closed_nodes": [],
    "uvm": True,
    "wsl": False,
    "tegra": False,
    "cuda_visible_devices": None,
    "nvidia_visible_devices": None,
    "capabilities": None,
    "library": True,
    "library_path": "/usr/lib/x86_64-linux-gnu/libcuda.so.570.1",
    "init": 0,
    "seen": 1,
    "hung": False,
    "driver_cuda": 12080,
    "torch_cuda": "12.8",
    "seen_unhidden": None,
}


@pytest.mark.parametrize(
    ("facts", "status", "why", "fix"),
    [
        ({"nodes": [], "asked": 0}, "skip", "no GPU was given", "--gpus"),
        ({"nodes": [], "asked": 2}, "fail", "although it was given some", "gpuconsole launch"),
        ({"nodes": [], "nvidia_visible_devices": "void"}, "fail", "NVIDIA_VISIBLE_DEVICES is 'void'", "Leave"),
        ({"nodes": [], "asked": None}, "warn", "there is no GPU in the container", "gpuconsole launch"),
        ({"closed_nodes": ["/dev/nvidia0"]}, "fail", "lost the right to use /dev/nvidia0", "Restart the container"),
        ({"cuda_visible_devices": "", "seen_unhidden": 1}, "fail", "CUDA_VISIBLE_DEVICES is ''", "Unset"),
        ({"cuda_visible_devices": "-1", "init": 100, "seen_unhidden": 1}, "fail", "hides every GPU", "Unset"),
        ({"cuda_visible_devices": "-1", "init": 100, "seen_unhidden": None}, "fail", "hides every GPU", "Unset"),
        ({"cuda_visible_devices": "5", "init": 100, "seen_unhidden": 2}, "fail", "hides every GPU", "Unset"),
        # Without the variable it fails as well, so the variable is not the cause.
        ({"cuda_visible_devices": "0", "init": 999, "seen_unhidden": 0}, "fail", "code 999", "nvidia_uvm"),
        ({"library": False, "init": None}, "fail", "libcuda.so.1 is not in the container", "Toolkit"),
        ({"library": False, "capabilities": "utility"}, "fail", "NVIDIA_DRIVER_CAPABILITIES is 'utility'", "compute"),
        ({"hung": True, "init": None, "library": None}, "fail", "does not answer", "doctor"),
        ({"init": 3}, "fail", "code 3", "nvidia_uvm"),
        ({"init": 34}, "fail", "stub", "stubs"),
        ({"init": 100}, "fail", "code 100", "Restart"),
        ({"init": 802}, "fail", "fabric manager", "nvidia-fabricmanager"),
        ({"init": 803}, "fail", "do not fit", "Update the driver"),
        (
            {"init": 804, "library_path": "/usr/local/cuda/compat/libcuda.so.1"},
            "fail",
            "/usr/local/cuda/compat",
            "compat",
        ),
        ({"init": 999, "uvm": False}, "fail", "/dev/nvidia-uvm is missing", "nvidia_uvm"),
        ({"init": 217}, "fail", "217", "doctor"),
        ({"driver_cuda": 11040}, "fail", "too old for a CUDA 12.8 build (it offers CUDA 11.4)", "older CUDA"),
        ({"words": "the driver is too old (found version 11040)", "driver_cuda": None}, "fail", "too old", "Update"),
        ({}, "fail", "torch gives no reason", "doctor"),
        ({"words": "something new"}, "fail", "something new", "doctor"),
        ({"nodes": [], "wsl": True, "init": 100}, "fail", "code 100", "Restart"),
        ({"nodes": [], "tegra": True, "init": 999}, "fail", "code 999", "nvidia_uvm"),
    ],
)
def test_why_cuda_does_not_start(facts: dict[str, Any], status: str, why: str, fix: str) -> None:
    found = available.explain(SOUND | facts)
    assert found.status == status
    assert why in found.why
    assert fix in found.fix


def asked(*numbers: int) -> list[Asked]:
    """GPUs as the host describes them."""
    return [Asked({"uuid": f"GPU-{n}", "index": n, "name": "NVIDIA H200", "minor": n}) for n in numbers]


@pytest.mark.parametrize(
    ("seen", "given", "count", "visible", "status", "why"),
    [
        (["0", "1"], asked(0, 1), 2, None, "ok", "GPU 0 (NVIDIA H200), GPU 1 (NVIDIA H200)"),
        (["1", "0"], asked(0, 1), 2, None, "ok", "what was given"),
        (["0"], asked(0, 1), 2, None, "fail", "GPU 1 (NVIDIA H200) missing"),
        (["0"], asked(0, 1), 2, "0", "fail", "CUDA_VISIBLE_DEVICES is '0'"),
        (["2"], asked(1), 1, None, "fail", "GPU 1 (NVIDIA H200) missing"),
        (["0", "1"], asked(1), 1, None, "warn", "not its own"),
        ([None, None], asked(0, 1), 2, None, "ok", "what was given"),
        ([None], asked(0, 1), 2, None, "fail", "1 of them missing"),
        ([None, None], None, 2, None, "ok", "2 GPUs"),
        (["0"], None, 2, None, "fail", "1 of them"),
        (["0"], None, None, None, "ok", "not known"),
        ([None], [], 0, None, "warn", "not its own"),
    ],
)
def test_the_gpus_seen_are_compared_with_those_given(
    seen: list[Any], given: list[Asked] | None, count: int | None, visible: str | None, status: str, why: str
) -> None:
    found = devices.compare(seen, given, count, visible)
    assert found.status == status
    assert why in found.why
    assert bool(found.fix) == (status != "ok")


@pytest.mark.parametrize(
    ("nodes", "given", "status", "why"),
    [
        (["/dev/nvidia0"], asked(0), "skip", "are there, but CUDA does not work"),
        (["/dev/nvidia0"], asked(0, 1), "fail", "device node of GPU 1"),
        ([], [], "skip", "no GPU was given"),
        ([], None, "skip", "not known"),
        ([], [Asked({"uuid": "MIG-1"})], "skip", "CUDA does not work"),
    ],
)
def test_device_nodes_are_compared_where_cuda_does_not_work(
    nodes: list[str], given: list[Asked] | None, status: str, why: str
) -> None:
    found = devices.compare_nodes(nodes, given)
    assert found.status == status
    assert why in found.why


def test_uuids_are_the_same_in_any_spelling() -> None:
    assert same_gpu("GPU-5A1D-00", "5a1d-00")
    assert same_gpu("MIG-5a1d-00", "mig-5a1d-00 ")
    assert not same_gpu("GPU-5a1d-00", "GPU-5a1d-01")


@pytest.mark.parametrize(
    ("built", "capability", "covered"),
    [
        (["sm_80", "sm_90"], (9, 0), True),
        (["sm_80", "sm_90"], (8, 6), True),
        (["sm_80", "sm_86"], (8, 0), True),
        (["sm_86"], (8, 0), False),
        (["sm_80", "sm_90"], (12, 0), False),
        (["sm_80", "compute_90"], (12, 0), True),
        (["compute_90"], (8, 0), False),
        (["sm_90a"], (9, 0), True),
        (["sm_90a"], (9, 2), False),
        (["sm_100f"], (10, 3), True),
        (["sm_75", "sm_120"], (12, 1), True),
        (["sm_75", "sm_120"], (6, 1), False),
        (["gfx90a", "nonsense"], (9, 0), False),
        ([], (9, 0), False),
    ],
)
def test_which_cards_a_build_covers(built: list[str], capability: tuple[int, int], covered: bool) -> None:
    assert kernel.covers(built, capability) is covered


@pytest.mark.parametrize(("capability", "words"), [((12, 0), "newer CUDA build"), ((6, 1), "older CUDA build")])
def test_a_card_the_build_does_not_cover_gets_the_right_advice(capability: tuple[int, int], words: str) -> None:
    card = {"gpu": "GPU 0", "capability": list(capability), "covered": False, "error": "no kernel image"}
    why, fix = kernel.describe(card, ["sm_70", "sm_90"])
    assert f"sm_{capability[0]}{capability[1]}" in why
    assert words in fix


@pytest.mark.parametrize(
    ("module", "offers", "built", "path", "status", "why"),
    [
        ("580.65.06", 13000, "12.8", "/usr/lib/libcuda.so.1", "ok", "driver 580.65.06, offers CUDA 13.0"),
        ("525.60.13", 12000, "12.8", "/usr/lib/libcuda.so.1", "ok", "12.8"),
        ("470.82.01", 11040, "12.1", "/usr/lib/libcuda.so.1", "fail", "needs driver 525"),
        ("550.54.14", 12040, "13.0", "/usr/lib/libcuda.so.1", "fail", "needs driver 580"),
        ("470.82.01", 12020, "12.1", "/usr/local/cuda/compat/libcuda.so.1", "warn", "forward compatibility"),
        ("550.54.14", 12080, "12.4", "/usr/local/cuda/compat/libcuda.so.1", "warn", "forward compatibility"),
        (None, 10020, "11.7", "/usr/lib/libcuda.so.1", "fail", "too new"),
        (None, 12080, "12.8", None, "ok", "driver unknown"),
        (None, None, "12.8", None, "skip", "no driver"),
        ("580.65.06", None, "14.0", None, "ok", "offers CUDA unknown"),
    ],
)
def test_driver_and_cuda_fit(
    module: str | None, offers: int | None, built: str, path: str | None, status: str, why: str
) -> None:
    found = driver.judge(module=module, offers=offers, built=built, path=path)
    assert found.status == status
    assert why in found.why


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\nGCC version: x",
            "535.183.01",
        ),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (dvs-builder@x)",
            "580.65.06",
        ),
        ("", None),
    ],
)
def test_the_kernel_module_s_version_is_read(text: str, version: str | None) -> None:
    assert driver.kernel_module(text) == version


def reading(**fields: Any) -> dict[str, Any]:
    """A GPU of 24 GiB."""
    return {"gpu": "GPU 0", "total_bytes": 24 * GIB, "free_bytes": 23 * GIB, "holders": []} | fields


@pytest.mark.parametrize(
    ("readings", "status", "why"),
    [
        ([reading(used_before_bytes=0)], "ok", "24 GiB free"),
        ([reading(used_before_bytes=2 * GIB)], "ok", "22 GiB free"),
        ([reading(used_before_bytes=3 * GIB, holders=["python train.py (3 GiB)"])], "warn", "held by python train.py"),
        ([reading(used_before_bytes=0, free_bytes=GIB)], "ok", "24 GiB free"),
        # Asked of torch alone, this check's own context is not held against the GPU.
        ([reading(total_bytes=8 * GIB, free_bytes=7 * GIB + 100)], "ok", "free"),
        ([reading(free_bytes=12 * GIB)], "warn", "12 GiB of 24 GiB are in use"),
        ([reading(used_before_bytes=0), reading(gpu="GPU 1", used_before_bytes=9 * GIB)], "warn", "GPU 1: 9 GiB"),
        ([reading(used_before_bytes=0), reading(used_before_bytes=GIB)], "ok", "23 GiB free or more on each GPU"),
        ([reading(error="CUDA error: out of memory")], "warn", "GPU 0: CUDA error: out of memory"),
    ],
)
def test_gpu_memory(readings: list[dict[str, Any]], status: str, why: str) -> None:
    found = gpu_memory.judge(readings)
    assert found.status == status
    assert why in found.why


def test_what_the_host_saw_before_the_check_counts() -> None:
    one = {"uuid": "GPU-1", "memory_total_bytes": 24 * GIB, "memory_used_bytes": 5 * GIB, "holders": ["x"]}
    found = reading(total_bytes=23 * GIB)
    gpu_memory.add_host(found, Asked(one))
    assert (found["used_before_bytes"], found["total_bytes"], found["holders"]) == (5 * GIB, 24 * GIB, ["x"])
