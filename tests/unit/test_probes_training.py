"""What the checks of training make of their results: convolutions, attention, mixed precision, compile, many GPUs."""

from __future__ import annotations

import math
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpuconsole.probes.payload.cards import Card
from gpuconsole.probes.payload.checks import (
    amp,
    attention,
    bf16,
    collective,
    compiling,
    convolution,
    gpu_pattern,
    peers,
)

GIB = 1 << 30
H200 = Card("cuda:0", "GPU 0 (NVIDIA H200)", 0, (9, 0))
OLD = Card("cuda:0", "GPU 0 (Tesla V100)", 0, (7, 0))
CPU = Card("cpu", "the CPU")


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (1e-6, "ok", "by cuDNN 9.1.0"),
        (1e-4, "fail", "off by 1e-04"),
        (math.inf, "fail", "not a number"),
        (math.nan, "fail", "not a number"),
    ],
)
def test_convolutions(error: float, status: str, words: str) -> None:
    found = convolution.judge({"GPU 0": {"3x3": 1e-7, "grouped": error}}, "GPU 0", "9.1.0")
    assert found.status == status
    assert words in found.why
    assert ("grouped convolution on GPU 0" in found.why) is (status == "fail")


NONE = "No available kernel. Aborting execution."


@pytest.mark.parametrize(
    ("card", "results", "status", "words"),
    [
        (
            H200,
            {"flash": 1e-3, "efficient": 1e-3, "cudnn": 1e-3, "math": 1e-3},
            "ok",
            "flash, efficient, cudnn and math",
        ),
        (H200, {"flash": 1e-3, "efficient": NONE, "math": 1e-3}, "ok", "flash and math on GPU 0"),
        (H200, {"flash": NONE, "efficient": NONE, "math": 1e-3}, "warn", "only plain attention works on GPU 0"),
        (OLD, {"flash": NONE, "efficient": NONE, "math": 1e-3}, "ok", "math on GPU 0"),
        (CPU, {"math": 1e-7}, "ok", "math on the CPU"),
        (H200, {"flash": 0.5, "math": 1e-3}, "fail", "flash attention gives wrong results"),
        (H200, {"flash": math.inf, "math": 1e-3}, "fail", "flash attention gives wrong results"),
        (H200, {"flash": NONE, "math": "CUDA error: misaligned address"}, "fail", "misaligned address"),
        (H200, {"flash": NONE}, "fail", "no back end works"),
    ],
)
def test_attention(card: Card, results: dict[str, Any], status: str, words: str) -> None:
    found = attention.judge(card, results)
    assert found.status == status
    assert words in found.why
    assert bool(found.fix) is (status != "ok")


GOOD = {"dtype": "float16", "loss": 0.2, "finite": True, "moved": True, "skipped": True, "scale": 512.0}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, ""),
        ({"skipped": None, "scale": None}, ""),
        ({"finite": False}, "no finite numbers"),
        ({"moved": False}, "changes nothing"),
        ({"skipped": False}, "is taken although a gradient is infinite"),
        ({"scale": 1024.0}, "does not halve the scale"),
    ],
)
def test_mixed_precision(changes: dict[str, Any], words: str) -> None:
    found = amp.judge("GPU 0", {**GOOD, **changes})
    assert found.status == ("fail" if words else "ok")
    assert words in found.why


def test_bfloat16_that_is_emulated() -> None:
    assert bf16.judge({"GPU 0": True}).why == "1 GPU computes bfloat16"
    found = bf16.judge({"GPU 0": True, "GPU 1": False})
    assert (found.status, found.why) == ("warn", "GPU 1 only emulates bfloat16, which is slow")
    assert bf16.judge({"GPU 0": False, "GPU 1": False}).why.startswith("GPU 0, GPU 1 only emulate")


def pieces(**changes: Any) -> dict[str, Any]:
    return {
        "error": None, "compile_s": None, "failure": None, "kind": None, "compiler": "/usr/bin/gcc",
        "python_header": "/usr/include/python3.11/Python.h", "triton": True, "cache": "/tmp/torchinductor_root",
        "cache_problem": "", "device": "cuda",
    } | changes  # fmt: skip


CPU_WORDS = "InvalidCxxCompiler: No working C++ compiler found in torch._inductor.config.cpp.cxx: (None, 'g++')"
TRITON_WORDS = "RuntimeError: Failed to find C compiler. Please specify via CC environment variable."


@pytest.mark.parametrize(
    ("value", "text", "status", "why", "fix"),
    [
        (pieces(error=1e-7, compile_s=12.0), "", "ok", "works on the GPU, the first time in 12 s", ""),
        (pieces(error=1e-7, device="cpu"), "", "ok", "on the CPU (no GPU took part)", ""),
        (pieces(error=0.1), "", "warn", "off by 1e-01", "without torch.compile"),
        (pieces(error=math.nan), "", "warn", "off by nan", "without torch.compile"),
        (pieces(error=1e-7, cache=None, cache_problem="its user has no name"), "", "warn", "no name", "TORCHINDUCTOR"),
        (pieces(compiler=None, failure="x"), TRITON_WORDS, "warn", "there is no C compiler (gcc", "build-essential"),
        (pieces(failure="x"), TRITON_WORDS, "warn", "its compiler /usr/bin/gcc does not work", "build-essential"),
        (pieces(compiler=None, device="cpu", failure="x"), CPU_WORDS, "warn", "no C++ compiler (g++", "build-ess"),
        (pieces(python_header=None, failure="x"), "main.c:1: fatal error: Python.h: No such file", "warn", "Python.h",
         "python3-dev"),
        (pieces(triton=False, failure="x"), "Cannot find a working triton installation.", "warn", "Triton is missing",
         "triton that this torch"),
        (pieces(failure="x"), "AssertionError: libcuda.so cannot found!", "warn", "libcuda.so", "ldconfig"),
        (pieces(failure="x"), "KeyError: 'getpwuid(): uid not found: 1000'", "warn", "no name", "USER"),
        (pieces(failure="x", cache_problem="programs in it may not be run"), "a.so: failed to map segment from shared",
         "warn", "programs in it may not be run", "TORCHINDUCTOR_CACHE_DIR"),
        (pieces(failure="x"), "a.so: failed to map segment from shared object", "skip", "folder of this check", ""),
        (pieces(failure="x"), "OSError: [Errno 30] Read-only file system: '/root'", "warn", "cannot be written",
         "TORCHINDUCTOR_CACHE_DIR"),
        (pieces(failure="Dynamo is not supported on Python 3.15+"), "Dynamo is not supported on Python 3.15+", "warn",
         "Dynamo is not supported", "another version of torch"),
        (pieces(exit_code=-9), "", "warn", "died of SIGKILL", "memory ran out"),
        (pieces(exit_code=1), "", "warn", "ended without a word", "another version"),
        (pieces(), "", "warn", "ended without a word", "another version"),
        (pieces(compiler=None), "", "warn", "there is no C compiler", "build-essential"),
        (pieces(triton=False), "", "warn", "Triton is missing", "triton"),
    ],
)  # fmt: skip
def test_the_missing_piece_of_compile(value: dict[str, Any], text: str, status: str, why: str, fix: str) -> None:
    found = compiling.judge(value, ended=True, text=text, stray="")
    assert found.status == status
    assert why in found.why
    assert fix in found.fix


def test_a_compile_that_does_not_end() -> None:
    found = compiling.judge(pieces(), ended=False, text="", stray="")
    assert found.status == "warn"
    assert "not come to its end after 60 s" in found.why
    found = compiling.judge(pieces(compiler=None), ended=False, text="", stray="")
    assert "and there is no C compiler (gcc, clang)" in found.why
    assert "build-essential" in found.fix


def test_without_a_compiler_the_cpu_is_not_tried(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not compiling.can_begin("cpu")
    assert compiling.can_begin("cuda")
    tool = tmp_path / "my-g++"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.setenv("CXX", "my-g++ -std=c++17")
    assert compiling.compiler_of("cpu") == str(tool)
    assert compiling.can_begin("cpu")


def test_the_cache_of_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compiling.cache_problem(str(tmp_path / "a" / "b")) == ""
    assert compiling.cache_problem(None) == "its user has no name"
    with monkeypatch.context() as patch:
        patch.setattr("os.access", lambda path, mode: path != str(tmp_path))
        assert compiling.cache_problem(str(tmp_path / "a" / "b")) == "it cannot be written"
        patch.setattr("os.access", lambda path, mode: True)
        patch.setattr("os.statvfs", lambda path: os.statvfs_result((4096,) * 8 + (os.ST_NOEXEC, 255)))
        assert compiling.cache_problem(str(tmp_path)) == "programs in it may not be run"
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/cache")
    assert compiling.cache_folder("/tmp/gpuconsole-check-1") == "/cache"
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/tmp/gpuconsole-check-1/inductor")
    assert "gpuconsole" not in (compiling.cache_folder("/tmp/gpuconsole-check-1") or "")


def ranks(*exact: bool | None, **changes: Any) -> dict[str, Any]:
    return {
        "back_end": "nccl", "ranks": len(exact), "version": "2.27.5", "exact": list(exact), "late": [],
        "stages": ["left"] * len(exact), "failure": None, "died": [], "exit_codes": [0] * len(exact),
        "words": "", "seconds": 5.0,
    } | changes  # fmt: skip


HUNG = {"late": [0, 1], "stages": ["joined", "joined"]}
NO_SHM = "Error: failed to extend /dev/shm/nccl-abc to 9637892 bytes, error: No space left on device (28)"


@pytest.mark.parametrize(
    ("result", "again", "status", "why", "fix"),
    [
        (ranks(True, True), None, "ok", "the sum over 2 GPUs by NCCL 2.27.5 is exact", ""),
        (ranks(True), None, "ok", "the sum over 1 GPU by NCCL", ""),
        (ranks(True, True, back_end="gloo", version=None), None, "ok", "by gloo is exact (no GPU took part)", ""),
        (ranks(True, True, late=[1]), None, "ok", "exact", ""),
        (ranks(True, False), None, "fail", "is wrong", "dcgmi"),
        (ranks(None, None, **HUNG), None, "fail", "over 2 GPUs hangs: rank 0 after joined", "NCCL_DEBUG=INFO"),
        (ranks(None, None, **HUNG), ranks(True, True), "fail", "works without direct traffic", "NCCL_P2P_DISABLE=1"),
        (ranks(None, None, **HUNG), ranks(None, None, **HUNG), "fail", "hangs", "NCCL_DEBUG=INFO"),
        (ranks(None, None, words=NO_SHM, failure="NCCL error"), None, "fail", "/dev/shm is too small", "--shm-size"),
        (ranks(None, None, failure="unhandled system error"), None, "fail", "fails: unhandled system", "NCCL_DEBUG"),
        (ranks(None, None, words="CUDA out of memory"), None, "skip", "no memory is free", "check.gpu-memory"),
        (ranks(None, None, died=[1], words="a\nSegfault\n"), None, "fail", "dies in rank 1: Segfault", "NCCL_DEBUG"),
        (ranks(None, None, died=[1], exit_codes=[0, -9]), None, "fail", "rank 1 died of SIGKILL", "memory ran out"),
        (ranks(None, failure="broken", late=[]), None, "warn", "over 1 GPU fails: broken", "NCCL_DEBUG"),
        (ranks(None, None, back_end="gloo", failure="no host"), None, "warn", "gloo over 2 processes of the", "getent"),
    ],
)  # fmt: skip
def test_a_sum_over_gpus(result: dict[str, Any], again: dict[str, Any] | None, status: str, why: str, fix: str) -> None:
    found = collective.judge(result, again)
    assert found.status == status
    assert why in found.why
    assert fix in found.fix


def pair(**changes: Any) -> dict[str, Any]:
    return {"from": "GPU 0", "to": "GPU 1", "direct": True, "right": True} | changes


@pytest.mark.parametrize(
    ("pairs", "status", "why"),
    [
        ([pair(), pair()], "ok", "2 pairs reach each other directly"),
        ([pair(direct=False), pair(direct=False)], "warn", "through the host's memory"),
        (
            [pair(), pair(direct=False), pair(direct=False)],
            "warn",
            "GPU 0 does not reach GPU 1 directly (and 1 more pair)",
        ),
        ([pair(direct=False), pair(right=False)], "fail", "what GPU 0 sends to GPU 1 arrives changed"),
        (
            [pair(), {"from": "GPU 1", "to": "GPU 0", "direct": None, "error": "CUDA error"}],
            "fail",
            "fails: CUDA error",
        ),
    ],
)
def test_peers(pairs: list[dict[str, Any]], status: str, why: str) -> None:
    found = peers.judge(pairs)
    assert found.status == status
    assert why in found.why


def test_the_part_of_memory_that_is_tested_is_bounded() -> None:
    assert gpu_pattern.bytes_to_test(140 * GIB) == 4 * GIB
    for free in (0, 1 << 20, 300 << 20, GIB, 5 * GIB, 11 * GIB):
        count = gpu_pattern.bytes_to_test(free)
        assert count % (64 << 20) == 0
        assert count + 2 * (64 << 20) <= max(0.4 * free, 2 * (64 << 20))
    assert gpu_pattern.bytes_to_test(GIB) == 256 << 20


def test_memory_that_gives_back_something_else() -> None:
    good, bad = {"gpu": "GPU 0", "bytes": GIB, "wrong": 0}, {"gpu": "GPU 1", "bytes": GIB, "wrong": 3}
    assert gpu_pattern.judge([good]).why == "1 GiB gave back two patterns"
    found = gpu_pattern.judge([good, bad])
    assert found.status == "fail"
    assert "GPU 1 (3 of 536870912 numbers)" in found.why
    assert "GPU 0" not in found.why


def of_two_gpus(check: str, monkeypatch: pytest.MonkeyPatch, *, full: set[str], wrong: set[str]) -> Any:
    """What a check makes of two GPUs of which some are full and some compute wrongly."""
    two = [Card(f"cuda:{number}", f"GPU {number}", number, (9, 0)) for number in (0, 1)]

    def looked(device: str, good: Any, bad: Any) -> Any:
        if device in full:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2 MiB")
        return bad if device in wrong else good

    def of_pair(_: Any, one: Card, other: Card) -> dict[str, Any]:
        told = {"from": one.label, "to": other.label, "direct": True, "right": True}
        pair: dict[str, Any] = looked(one.device, told, told | {"right": False})
        return pair

    monkeypatch.setattr(gpu_pattern, "mismatches", lambda torch, card, count: looked(card.device, 0, 3))
    monkeypatch.setattr(peers, "pair", of_pair)
    monkeypatch.setattr(convolution, "cudnn_problem", lambda torch, value: None)
    monkeypatch.setattr(convolution, "allow_tf32", lambda torch, on: None)
    monkeypatch.setattr(convolution, "_wanted", lambda torch, name: [])
    monkeypatch.setattr(convolution, "error_of", lambda torch, device, name, wanted: looked(device, 1e-7, 0.5))
    monkeypatch.setattr(attention, "compare", lambda torch, device, dtype: looked(
        device, {"flash": 1e-3, "math": 1e-3}, {"flash": 0.5, "math": 1e-3}))  # fmt: skip
    for module in (gpu_pattern, peers, convolution):
        monkeypatch.setattr(module, "cards", lambda context: two)
    monkeypatch.setattr(attention, "one_of_each", lambda context: two)
    cuda = SimpleNamespace(mem_get_info=lambda position: (9 * GIB, 10 * GIB), empty_cache=lambda: None)
    functional = SimpleNamespace(scaled_dot_product_attention=None)
    torch = SimpleNamespace(cuda=cuda, nn=SimpleNamespace(functional=functional), bfloat16=None, float16=None)
    checks = {"gpu-pattern": gpu_pattern, "p2p": peers, "cudnn": convolution, "attention": attention}
    context: Any = SimpleNamespace(torch=torch, cuda=True, report=lambda text: None)
    return checks[check].run(context)


@pytest.mark.parametrize("check", ["gpu-pattern", "p2p", "cudnn", "attention"])
@pytest.mark.parametrize(("full", "wrong"), [("cuda:0", "cuda:1"), ("cuda:1", "cuda:0")])
def test_a_full_gpu_does_not_hide_the_fault_of_another(
    check: str, full: str, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = of_two_gpus(check, monkeypatch, full={full}, wrong={wrong})
    assert found.status == "fail"
    assert f"GPU {wrong[-1]}" in found.why


@pytest.mark.parametrize("check", ["gpu-pattern", "p2p", "cudnn", "attention"])
@pytest.mark.parametrize("full", [{"cuda:0"}, {"cuda:1"}, {"cuda:0", "cuda:1"}])
def test_what_a_full_gpu_could_not_show_is_not_called_good(
    check: str, full: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = of_two_gpus(check, monkeypatch, full=full, wrong=set())
    assert found.status == "skip"
    assert "no memory is free on" in found.why
