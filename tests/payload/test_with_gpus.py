"""The checks' way where CUDA works, walked on this machine's CPU.

torch is told that ``cuda:0`` and ``cuda:1`` are there, both being the CPU, and libcuda is the stand-in. It shows that
the way can be walked and that each check on it can say no; what a real card answers is shown on a real card.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.payload.driving import Payload, of_type, result
from tests.payload.libcuda import build

PRETENDED = """
import types
import torch

torch.version.cuda = "12.8"
GIB = 1 << 30
FREE = [139 * GIB, 139 * GIB]
BUILT = ["sm_80", "sm_90"]


def on_cpu(device):
    return "cpu" if isinstance(device, str) and device.startswith("cuda") else device


def without_device(function):
    def call(*arguments, **options):
        if "device" in options:
            options["device"] = on_cpu(options["device"])
        return function(*arguments, **options)
    return call


def moved(function):
    def call(self, *arguments, **options):
        return function(self, *map(on_cpu, arguments), **options)
    return call


torch.arange, torch.ones = without_device(torch.arange), without_device(torch.ones)
torch.Tensor.to, torch.nn.Module.to = moved(torch.Tensor.to), moved(torch.nn.Module.to)
# The CPU's own takes half a minute.
torch._scaled_mm = lambda one, other, out_dtype, **scales: torch.mm(one.double(), other.double()).to(out_dtype)
cuda = torch.cuda
cuda.is_available = lambda: True
cuda.device_count = lambda: 2
cuda.synchronize = lambda device: None
cuda.get_arch_list = lambda: BUILT
cuda.get_device_capability = lambda device: (9, 0)
cuda.mem_get_info = lambda device: (FREE[device], 140 * GIB)
cuda.get_device_properties = lambda device: types.SimpleNamespace(
    name="NVIDIA H200", major=9, minor=0, total_memory=140 * GIB, multi_processor_count=132
)
"""
UUIDS = ["00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000001"]
GIB = 1 << 30


def asked(**first: Any) -> list[dict[str, Any]]:
    """The two GPUs as the host describes them; ``first`` changes the first."""
    both: list[dict[str, Any]] = [
        {
            "uuid": f"GPU-{uuid}",
            "index": index,
            "name": "NVIDIA H200",
            "minor": index,
            "memory_total_bytes": 140 * GIB,
            "memory_used_bytes": 0,
        }
        for index, uuid in ((4, UUIDS[0]), (5, UUIDS[1]))
    ]
    both[0] |= first
    return both


GPU_CHECKS = (
    "check.torch", "check.cuda-available", "check.devices", "check.driver", "check.gpu-memory", "check.kernel",
    "check.numerics",
)  # fmt: skip


@pytest.fixture
def box(payload: Payload, tmp_path: Path) -> Payload:
    """The payload where two GPUs are pretended."""
    payload.extra = {"LD_LIBRARY_PATH": str(build(tmp_path / "driver")), "STUB_COUNT": "2"}
    payload.module("sitecustomize", PRETENDED)
    return payload


def pretend(box: Payload, more: str) -> None:
    """Change what is pretended."""
    box.module("sitecustomize", PRETENDED + more)


def test_all_is_well_on_both(box: Payload) -> None:
    records = box.run(*GPU_CHECKS, asked=asked())
    assert {record["id"]: record["status"] for record in of_type(records, "check")} == dict.fromkeys(GPU_CHECKS, "ok")
    assert result(records, "check.devices")["why"].endswith("GPU 4 (NVIDIA H200), GPU 5 (NVIDIA H200)")
    assert result(records, "check.devices")["value"]["seen"] == UUIDS
    assert result(records, "check.gpu-memory")["why"] == "140 GiB free or more on each GPU"
    assert result(records, "check.kernel")["why"] == "kernels run on 2 GPUs"
    numerics = result(records, "check.numerics")
    assert set(numerics["value"]["errors"]) == {"GPU 4 (NVIDIA H200)", "GPU 5 (NVIDIA H200)"}
    assert set(numerics["value"]["errors"]["GPU 4 (NVIDIA H200)"]) == {
        "float32", "tf32", "float16", "bfloat16", "float8", "network",
    }  # fmt: skip
    (gpus,) = [record["env"]["gpus"] for record in of_type(records, "env") if "gpus" in record["env"]]
    assert [gpu["uuid"] for gpu in gpus] == UUIDS
    assert gpus[0] == gpus[0] | {"name": "NVIDIA H200", "compute_capability": "9.0", "multiprocessors": 132}
    assert any("a kernel on GPU 5" in record["text"] for record in of_type(records, "progress"))


def test_more_gpus_than_were_given(box: Payload) -> None:
    found = result(box.run(*GPU_CHECKS[:3], asked=asked()[:1]), "check.devices")
    assert found["status"] == "warn"


def test_a_card_the_build_has_no_code_for(box: Payload) -> None:
    pretend(
        box,
        "def fails(*a): raise RuntimeError('CUDA error: no kernel image is available for execution on the device')\n"
        "cuda.get_device_capability = lambda device: (12, 0)\ncuda.synchronize = fails\n",
    )
    found = result(box.run("check.torch", "check.cuda-available", "check.kernel", asked=asked()), "check.kernel")
    assert found["status"] == "fail"
    assert "torch has no code for GPU 4 (NVIDIA H200): it is sm_120, the build is for sm_80, sm_90" in found["why"]
    assert "newer CUDA build" in found["fix"]
    assert "no kernel image" in found["value"]["gpus"][0]["error"]


def test_a_kernel_that_fails_on_one_card(box: Payload) -> None:
    pretend(
        box,
        "def fails(device):\n    if device == 'cuda:1': raise RuntimeError('CUDA error: an illegal access')\n"
        "cuda.synchronize = fails\n",
    )
    found = result(box.run("check.torch", "check.cuda-available", "check.kernel", asked=asked()), "check.kernel")
    assert found["why"] == "a kernel fails on GPU 5 (NVIDIA H200): CUDA error: an illegal access"


def test_a_reduction_that_is_wrong(box: Payload) -> None:
    pretend(
        box,
        "whole = torch.arange\n"
        "def wrong(*arguments, **options):\n"
        "    found = whole(*arguments, **options)\n"
        "    return found + (found == 17) if options.get('dtype') == torch.int64 and 'device' in options else found\n"
        "torch.arange = wrong\n",
    )
    found = result(box.run("check.torch", "check.cuda-available", "check.kernel", asked=asked()), "check.kernel")
    assert found["status"] == "fail"
    assert "wrong result on GPU 4" in found["why"]


def test_memory_that_others_hold(box: Payload) -> None:
    given = asked(memory_used_bytes=100 * GIB, holders=["python train.py (100 GiB)"])
    found = result(box.run("check.torch", "check.cuda-available", "check.gpu-memory", asked=given), "check.gpu-memory")
    assert found["status"] == "warn"
    assert found["why"] == "GPU 4 (NVIDIA H200): 100 GiB of 140 GiB are in use, held by python train.py (100 GiB)"


def test_a_card_without_any_memory_left_is_not_called_broken(box: Payload) -> None:
    pretend(
        box,
        "def full(*a, **o): raise RuntimeError('CUDA out of memory. Tried to allocate 20.00 MiB')\n"
        "cuda.mem_get_info = full\ncuda.synchronize = full\n"
        "whole = torch.mm\n"
        "torch.mm = full\n",
    )
    records = box.run(*GPU_CHECKS, asked=asked())
    assert result(records, "check.gpu-memory")["status"] == "warn"
    assert result(records, "check.kernel")["status"] == "skip"
    assert result(records, "check.numerics")["status"] == "skip"


def test_results_that_are_wrong_on_one_card_alone(box: Payload) -> None:
    pretend(
        box,
        "ends = torch.Tensor.to\n"
        "def to(self, *arguments, **options):\n"
        "    found = ends(self, *arguments, **options)\n"
        "    return found * 1.01 if arguments[:1] == ('cuda:1',) and found.dtype == torch.float16 else found\n"
        "torch.Tensor.to = to\n",
    )
    records = box.run("check.torch", "check.cuda-available", "check.numerics", asked=asked())
    found = result(records, "check.numerics")
    assert found["status"] == "fail"
    assert "float16 on GPU 5 (NVIDIA H200) is off by" in found["why"]
    assert "GPU 4" not in found["why"]
    assert "dcgmi" in found["fix"]


def test_a_card_before_ampere_is_not_asked_for_tf32(box: Payload) -> None:
    pretend(box, "cuda.get_device_capability = lambda device: (7, 5)\n")
    records = box.run("check.torch", "check.cuda-available", "check.numerics", asked=asked())
    errors = result(records, "check.numerics")["value"]["errors"]
    assert set(errors["GPU 4 (NVIDIA H200)"]) == {"float32", "float16", "network"}


def test_a_driver_too_old_for_the_build(box: Payload) -> None:
    box.extra["STUB_VERSION"] = "11040"
    found = result(box.run("check.torch", "check.cuda-available", "check.driver", asked=asked()), "check.driver")
    assert found["status"] == "fail"
    assert "offers CUDA 11.4" in found["why"]
