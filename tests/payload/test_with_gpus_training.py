"""The checks of training on CUDA's way, walked on this machine's CPU; what a real card answers is shown on one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.payload.driving import Payload, of_type, result
from tests.payload.libcuda import build
from tests.payload.test_with_gpus import PRETENDED, asked

MORE = """
import contextlib
torch.empty, torch.full = without_device(torch.empty), without_device(torch.full)
cuda.empty_cache = lambda: None
cuda.can_device_access_peer = lambda one, other: True
cuda.is_bf16_supported = lambda including_emulation=True: True
cuda.device = lambda number: contextlib.nullcontext()
torch.Tensor.pin_memory = lambda self: self
torch.Tensor.is_pinned = lambda self: True
torch.backends.cudnn.version = lambda: 90100
torch.backends.cudnn.is_available = lambda: True
FREE[:] = [GIB, GIB]
"""
BROKEN = """
plain_add, plain_to = torch.add, torch.Tensor.to
def add(one, other, out=None, **options):
    plain_add(one, other, out=out, **options)
    if out is not None and "second" in place:
        out[12345] += 1
    return out
torch.add = add
place = []
sizes = cuda.mem_get_info
def free(position):
    place[:] = ["second"] if position == 1 else []
    return sizes(position)
cuda.mem_get_info = free
def to(self, *arguments, **options):
    found = plain_to(self, *arguments, **options)
    return found + 1 if arguments[:1] == ("cuda:1",) and found.dtype == torch.int32 else found
torch.Tensor.to = to
def no_version():
    raise RuntimeError("cuDNN version incompatibility: compiled against (9, 10) but found (8, 9)")
torch.backends.cudnn.version = no_version
cuda.is_bf16_supported = lambda including_emulation=True: including_emulation
def refused(self):
    raise RuntimeError("CUDA error: OS call failed or operation not supported on this OS")
torch.Tensor.pin_memory = refused
import torch.nn.attention as home
plain_kernel = home.sdpa_kernel
def math_alone(choice):
    if choice != home.SDPBackend.MATH:
        raise RuntimeError("No available kernel. Aborting execution.")
    return plain_kernel(choice)
home.sdpa_kernel = math_alone
"""
CHECKS = (
    "check.torch", "check.cuda-available", "check.gpu-pattern", "check.cudnn", "check.attention", "check.amp",
    "check.bf16", "check.optimizer", "check.determinism", "check.p2p", "check.limits",
)  # fmt: skip


@pytest.fixture
def box(payload: Payload, tmp_path: Path) -> Payload:
    """The payload where two GPUs are pretended."""
    payload.extra = {"LD_LIBRARY_PATH": str(build(tmp_path / "driver")), "STUB_COUNT": "2"}
    return payload


def test_all_is_well_on_both(box: Payload) -> None:
    box.module("sitecustomize", PRETENDED + MORE)
    records = box.run(*CHECKS, asked=asked())
    found = {record["id"]: record["status"] for record in of_type(records, "check")}
    assert found.pop("check.limits") in ("ok", "warn")
    assert found == dict.fromkeys(CHECKS[:-1], "ok")
    assert result(records, "check.limits")["value"]["pinned_bytes"] == 256 << 20
    assert result(records, "check.gpu-pattern")["why"] == "256 MiB on each GPU gave back two patterns"
    assert result(records, "check.p2p")["why"].startswith("2 pairs reach each other")
    assert result(records, "check.p2p")["value"] == {
        "gpus": ["GPU 4 (NVIDIA H200)", "GPU 5 (NVIDIA H200)"],
        "direct": [[None, True], [True, None]],
        "right": [[None, True], [True, None]],
    }
    assert result(records, "check.cudnn")["why"].endswith("on 2 GPUs, by cuDNN 9.1.0")
    assert result(records, "check.amp")["value"]["results"]["GPU 4 (NVIDIA H200)"]["dtype"] == "float16"
    assert len(result(records, "check.attention")["value"]["back_ends"]) == 1, "one of each model is enough"


def test_what_is_wrong_is_told_of_the_card_it_is_wrong_on(box: Payload) -> None:
    box.module("sitecustomize", PRETENDED + MORE + BROKEN)
    records = box.run(*CHECKS[:5], "check.bf16", "check.p2p", "check.limits", asked=asked())
    for slug, status, words in (
        ("check.gpu-pattern", "fail", "GPU 5 (NVIDIA H200) ("),
        ("check.cudnn", "fail", "compiled against (9, 10) but found (8, 9)"),
        ("check.attention", "warn", "only plain attention works on GPU 4"),
        ("check.bf16", "warn", "GPU 4 (NVIDIA H200), GPU 5 (NVIDIA H200) only emulate"),
        ("check.p2p", "fail", "what GPU 4 (NVIDIA H200) sends to GPU 5 (NVIDIA H200) arrives changed"),
        ("check.limits", "fail", "memory cannot be pinned: CUDA error: OS call failed"),
    ):
        found = result(records, slug)
        assert found["status"] == status, found
        assert words in found["why"]
        assert found["fix"]
    assert "GPU 4" not in result(records, "check.gpu-pattern")["why"]
