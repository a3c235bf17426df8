"""Facts about where the payload runs: the environment record, written as they become known."""

from __future__ import annotations

import os
import platform
import re
import resource
import sys
import time
from typing import Any

_VARIABLES = re.compile(r"^(NCCL_|CUDA_|NVIDIA_|PYTORCH_|TORCH_|OMP_|MKL_|CUBLAS_|TF32)")
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL", re.IGNORECASE)
_OURS = ("CUDA_CACHE_PATH",)


def of_container(workdir: str) -> dict[str, Any]:
    """What is known without torch."""
    return {
        "python": platform.python_version(),
        "python_path": sys.executable,
        "os": _os_name(),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "cpus": cpus(),
        "cpu_quota": cpu_quota(),
        "memory_bytes": memory_total(),
        "memory_limit_bytes": memory_limit(),
        "shm_bytes": shm_total(),
        "limits": {
            name: _limit(number)
            for name, number in (
                ("memlock", resource.RLIMIT_MEMLOCK),
                ("stack", resource.RLIMIT_STACK),
                ("nofile", resource.RLIMIT_NOFILE),
            )
        },
        "user": "{}:{}".format(os.getuid(), os.getgid()),
        "workdir": workdir or os.getcwd(),
        "variables": variables(dict(os.environ)),
        "taken_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def of_torch(torch: Any) -> dict[str, Any]:
    """What torch says of itself; starts no CUDA."""
    facts: dict[str, Any] = {
        "torch": str(torch.__version__),
        "torch_git": getattr(torch.version, "git_version", None),
        "torch_cuda": torch.version.cuda,
        "torch_path": os.path.dirname(str(torch.__file__)),
    }
    flags = getattr(getattr(torch, "_C", None), "_cuda_getArchFlags", None)  # answers without a GPU
    facts["torch_archs"] = str(flags() or "") if flags is not None else None
    try:
        facts["cudnn"] = dotted_cudnn(torch.backends.cudnn.version())
    except (RuntimeError, AttributeError):
        facts["cudnn"] = None  # torch raises when the cuDNN it finds does not fit
    return facts


def dotted_cudnn(number: int | None) -> str | None:
    """``9.1.0`` of 90100, ``8.9.2`` of 8902."""
    if number is None:
        return None
    major, rest = divmod(number, 10000) if number >= 90000 else divmod(number, 1000)
    minor, patch = divmod(rest, 100)
    return "{}.{}.{}".format(major, minor, patch)


def of_gpus(torch: Any, uuids: list[str | None]) -> list[dict[str, Any]]:
    """The GPUs torch sees."""
    gpus = []
    for position in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(position)
        gpus.append(
            {
                "position": position,
                "uuid": uuids[position] if position < len(uuids) else None,
                "name": properties.name,
                "compute_capability": "{}.{}".format(properties.major, properties.minor),
                "memory_total_bytes": properties.total_memory,
                "multiprocessors": properties.multi_processor_count,
            }
        )
    return gpus


def variables(environ: dict[str, str]) -> dict[str, str]:
    """The variables that matter to CUDA and torch, without those that look like secrets."""
    return {
        name: value[:300]
        for name, value in sorted(environ.items())
        if _VARIABLES.match(name) and not _SECRET.search(name) and name not in _OURS
    }


def read(path: str) -> str | None:
    """The text of a small file; None when it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(65536)
    except OSError:
        return None


def _os_name() -> str | None:
    for line in (read("/etc/os-release") or "").splitlines():
        if line.startswith("PRETTY_NAME="):
            return line.split("=", 1)[1].strip().strip("\"'")
    return None


def cpus() -> int | None:
    """Processors this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except (OSError, AttributeError):
        return os.cpu_count()


def cpu_quota() -> float | None:
    """Processors' worth of time the cgroup allows; None without a limit."""
    text = read("/sys/fs/cgroup/cpu.max")
    if text is not None:
        quota, _, period = text.strip().partition(" ")
        return None if quota == "max" else _ratio(quota, period)
    quota = (read("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") or "-1").strip()
    if quota.startswith("-"):
        return None
    return _ratio(quota, (read("/sys/fs/cgroup/cpu/cpu.cfs_period_us") or "").strip())


def _ratio(one: str, other: str) -> float | None:
    try:
        return round(int(one) / int(other), 2)
    except (ValueError, ZeroDivisionError):
        return None


def memory_total() -> int | None:
    """The machine's memory."""
    match = re.search(r"^MemTotal:\s+(\d+) kB", read("/proc/meminfo") or "", re.MULTILINE)
    return int(match.group(1)) * 1024 if match else None


def memory_limit() -> int | None:
    """What the cgroup allows; None without a limit."""
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        text = (read(path) or "").strip()
        if text.isdigit():
            # cgroup v1 writes "no limit" as a number near 2^63.
            return int(text) if int(text) < 1 << 60 else None
    return None


def shm_total() -> int | None:
    """Size of /dev/shm; None when there is none."""
    try:
        if not os.path.ismount("/dev/shm"):  # noqa: S108
            return None
        stat = os.statvfs("/dev/shm")  # noqa: S108
    except OSError:
        return None
    return stat.f_frsize * stat.f_blocks


def _limit(number: int) -> int | str:
    soft = resource.getrlimit(number)[0]
    return "unlimited" if soft == resource.RLIM_INFINITY else soft
