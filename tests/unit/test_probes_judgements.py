"""What the checks make of their readings, at the edges."""

from __future__ import annotations

import errno
import math
import os
from typing import Any

import pytest

from gpuconsole.probes.payload import environment
from gpuconsole.probes.payload.checks import numerics, shm, torch_build, traps, workspace
from gpuconsole.probes.payload.outcome import first_line, size
from gpuconsole.probes.payload.stream import harmless

MIB, GIB = 1 << 20, 1 << 30


@pytest.mark.parametrize(
    ("value", "asked", "status", "why"),
    [
        (
            {"version": "2.9.0", "cuda": "12.8", "import_s": 3.0},
            2,
            "ok",
            "torch 2.9.0, CUDA 12.8 build, imported in 3.0 s",
        ),
        ({"version": "2.9.0+cpu", "cuda": None, "import_s": 1.0}, 0, "ok", "CPU build"),
        ({"version": "2.9.0+cpu", "cuda": None, "import_s": 1.0}, None, "ok", "CPU build"),
        ({"version": "2.9.0+cpu", "cuda": None, "import_s": 1.0}, 1, "fail", "cannot use the 1 GPU given"),
        ({"version": "2.9.0+rocm6.4", "cuda": None, "hip": "6.4", "import_s": 1.0}, 1, "fail", "ROCm build"),
        ({"version": "1.12.1+cu113", "cuda": "11.3", "import_s": 1.0}, 1, "warn", "older than 1.13"),
        ({"version": "1.13.0a0+git", "cuda": "11.8", "import_s": 1.0}, 1, "ok", "1.13.0a0"),
        ({"version": "2.9.0", "cuda": "12.8", "import_s": 45.0}, 1, "warn", "slow"),
        ({"version": "main", "cuda": "12.8", "import_s": 1.0}, 1, "ok", "torch main"),
    ],
)
def test_the_build_of_torch(value: dict[str, Any], asked: int | None, status: str, why: str) -> None:
    found = torch_build.judge(value, asked)
    assert found.status == status
    assert why in found.why


@pytest.mark.parametrize(
    ("total", "free", "problem", "gpu", "status"),
    [
        (64 * MIB, 64 * MIB, "", True, "fail"),
        (64 * MIB, 64 * MIB, "", False, "warn"),
        (65 * MIB, 65 * MIB, "", True, "warn"),
        (GIB - 1, GIB - 1, "", True, "warn"),
        (GIB, GIB, "", True, "ok"),
        (8 * GIB, GIB, "", True, "warn"),
        (8 * GIB, 8 * GIB, "DataLoader worker (pid 7) is killed by signal: Bus error.", False, "fail"),
        (8 * GIB, 8 * GIB, "no module named mmap", False, "fail"),
    ],
)
def test_shared_memory(total: int, free: int, problem: str, gpu: bool, status: str) -> None:
    found = shm.judge(total=total, free=free, problem=problem, wants_gpu=gpu)
    assert found.status == status
    assert bool(found.fix) == (status != "ok")


@pytest.mark.parametrize(("free", "count"), [(8 * GIB, 128 * MIB), (64 * MIB, 32 * MIB), (0, 4096)])
def test_the_tensor_passed_never_fills_shared_memory(free: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "memory_limit", lambda: None)
    assert shm.tensor_bytes(free) == count
    monkeypatch.setattr(environment, "memory_limit", lambda: 256 * MIB)
    assert shm.tensor_bytes(free) == min(count, 32 * MIB)


@pytest.mark.parametrize(
    ("number", "why", "fix"),
    [
        (errno.EROFS, "is read-only", "without :ro"),
        (errno.EACCES, "user 1000 may not write", "--user"),
        (errno.ENOSPC, "no room", "Free"),
        (errno.EDQUOT, "no room", "Free"),
        (errno.ENOENT, "does not exist", "--workdir"),
        (errno.EIO, "cannot be written", "disk"),
    ],
)
def test_a_workspace_that_cannot_be_used(number: int, why: str, fix: str) -> None:
    found = workspace.cannot("/workspace", OSError(number, os.strerror(number)), 1000)
    assert why in found[0]
    assert fix in found[1]


def place(**fields: Any) -> dict[str, Any]:
    """A workspace in which all is well."""
    return {
        "path": "/workspace",
        "file_system": "ext4",
        "user": 0,
        "owner": 0,
        "root_is_root": True,
        "free_bytes": 100 * GIB,
        "temporary": "/tmp",
    } | fields


@pytest.mark.parametrize(
    ("value", "ephemeral", "words"),
    [
        (place(), False, []),
        (place(free_bytes=3 * GIB), False, ["3 GiB free"]),
        (place(file_system="overlay"), False, ["goes away"]),
        (place(file_system="overlay"), True, []),
        (place(file_system="tmpfs"), False, ["in memory"]),
        (place(file_system="nfs4"), False, ["on the network"]),
        (place(owner=1000), False, ["will belong to root"]),
        (place(owner=1000, root_is_root=False), False, []),
        (place(owner=1000, user=1000), False, []),
        (place(owner=1000, file_system="overlay"), True, []),
        (place(temporary=None, free_bytes=GIB), False, ["1 GiB free", "temporary"]),
    ],
)
def test_a_workspace_worth_a_warning(value: dict[str, Any], ephemeral: bool, words: list[str]) -> None:
    found = workspace.judge(value, ephemeral=ephemeral)
    assert len(found) == len(words)
    for (why, fix), word in zip(found, words, strict=True):
        assert word in why
        assert fix


MOUNTS = """\
22 1 0:21 / / rw,relatime - overlay overlay rw,lowerdir=/a
30 22 8:1 /home/x /workspace rw - ext4 /dev/sda1 rw
31 22 0:9 / /scratch rw - tmpfs tmpfs rw
32 30 0:44 / /workspace/my\\040data rw - nfs4 server:/data rw
nonsense
"""


@pytest.mark.parametrize(
    ("folder", "kind", "point"),
    [
        ("/workspace/run", "ext4", "/workspace"),
        ("/workspace/my data/x", "nfs4", "/workspace/my data"),
        ("/workspaces", "overlay", "/"),
        ("/scratch", "tmpfs", "/scratch"),
        ("/", "overlay", "/"),
    ],
)
def test_the_file_system_under_a_folder(folder: str, kind: str, point: str) -> None:
    assert workspace.file_system(folder, MOUNTS) == (kind, point)


def test_no_mounts_no_answer() -> None:
    assert workspace.file_system("/", "") == (None, None)


def test_root_is_root() -> None:
    assert workspace.root_is_root("         0          0 4294967295\n")
    assert not workspace.root_is_root("         0       1000          1\n")
    assert workspace.root_is_root("")


@pytest.mark.parametrize(
    ("environ", "asked", "names"),
    [
        ({}, 1, []),
        ({"CUDA_LAUNCH_BLOCKING": "1"}, 1, ["CUDA_LAUNCH_BLOCKING"]),
        ({"CUDA_LAUNCH_BLOCKING": "0", "PYTORCH_NO_CUDA_MEMORY_CACHING": "", "NCCL_P2P_DISABLE": "False"}, 1, []),
        ({"CUDA_INJECTION64_PATH": "/x.so"}, 1, ["CUDA_INJECTION64_PATH"]),
        ({"CUDA_VISIBLE_DEVICES": "0,1"}, 2, []),
        ({"CUDA_VISIBLE_DEVICES": "0,1"}, None, []),
        ({"CUDA_VISIBLE_DEVICES": "GPU-5a1d,MIG-5a1d"}, 2, []),
        ({"CUDA_VISIBLE_DEVICES": "3"}, 1, ["CUDA_VISIBLE_DEVICES"]),
        ({"CUDA_VISIBLE_DEVICES": ""}, 1, ["CUDA_VISIBLE_DEVICES"]),
        ({"CUDA_VISIBLE_DEVICES": "0,-1"}, 1, ["CUDA_VISIBLE_DEVICES"]),
        ({"CUDA_VISIBLE_DEVICES": "all"}, 1, ["CUDA_VISIBLE_DEVICES"]),
        ({"CUDA_VISIBLE_DEVICES": "0,0"}, 2, ["CUDA_VISIBLE_DEVICES"]),
        ({"CUDA_VISIBLE_DEVICE": "0"}, 1, ["CUDA_VISIBLE_DEVICE"]),
        ({"PYTORCH_HIP_ALLOC_CONF": "x", "CUDA_HOME": "/usr", "CUDA_VERSION": "12.8"}, 1, []),
    ],
)
def test_traps(environ: dict[str, str], asked: int | None, names: list[str]) -> None:
    found = traps.traps(environ, asked)
    assert [name for name, _, _ in found] == names
    assert all(effect and fix for _, effect, fix in found)


def test_a_libcuda_that_is_not_the_drivers_is_seen(tmp_path: Any) -> None:
    stubs = tmp_path / "cuda/lib64/stubs"
    stubs.mkdir(parents=True)
    assert not traps.shadows(f"/usr/lib:{stubs}")
    (stubs / "libcuda.so").touch()
    assert [name for name, _, _ in traps.shadows(f"/usr/lib:{stubs}:")] == ["LD_LIBRARY_PATH"]


@pytest.mark.parametrize(
    ("errors", "status", "why"),
    [
        ({"float32": 1e-6, "network": 1e-6}, "ok", "agree"),
        ({"float32": 2e-5}, "fail", "float32 on CPU is off by 2e-05"),
        ({"float32": math.nan}, "fail", "not a number"),
        ({"network": math.inf}, "fail", "not a number"),
        ({"bfloat16": "CUDA error: misaligned address"}, "fail", "misaligned"),
        ({"float32": "CUDA out of memory. Tried to allocate"}, "skip", "out of memory"),
        ({"float32": 1e-3, "network": "out of memory"}, "fail", "float32"),
    ],
)
def test_results(errors: dict[str, Any], status: str, why: str) -> None:
    found = numerics.judge({"CPU": errors}, on_cpu=True)
    assert found.status == status
    assert why in found.why


def test_forced_tf32_is_named_as_the_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "1")
    found = numerics.judge({"GPU 0": {"float32": 3e-4, "network": 3e-4, "float16": 1e-3}}, on_cpu=False)
    assert found.status == "fail"
    assert "NVIDIA_TF32_OVERRIDE" in found.fix


@pytest.mark.parametrize(
    ("number", "text"), [(90100, "9.1.0"), (91002, "9.10.2"), (8902, "8.9.2"), (8500, "8.5.0"), (None, None)]
)
def test_cudnn_versions(number: int | None, text: str | None) -> None:
    assert environment.dotted_cudnn(number) == text


def test_sizes_and_lines_are_short() -> None:
    assert [size(n) for n in (0, 1023, 64 * MIB, 3 * GIB // 2, None)] == [
        "0 B", "1023 B", "64 MiB", "1.5 GiB", "an unknown size",
    ]  # fmt: skip
    assert first_line("\n\n  one  two \nthree") == "one two"
    assert first_line(ValueError()) == "ValueError"
    assert len(first_line("x" * 999)) == 300


def test_records_hold_nothing_json_cannot_say() -> None:
    nested: dict[Any, Any] = {"a": math.nan, "b": [math.inf, 1, "x\udc80"], "c": {"d": ("e", None, True)}, 1: object}
    found = harmless(nested)
    assert isinstance(found, dict)
    assert found["a"] is None
    assert found["b"] == [None, 1, "x?"]
    assert found["c"] == {"d": ["e", None, True]}
    assert isinstance(found["1"], str)
    assert len(str(harmless("y" * 9999))) == 2000
