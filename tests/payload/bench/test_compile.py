"""B08: eager beside compiled, cold and warm; wrong results and images that cannot compile are told as what they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from gpuconsole.probes import archive
from gpuconsole.probes.payload.bench import compile as compiling
from gpuconsole.probes.payload.bench import ranks
from gpuconsole.probes.payload.bench.context import BenchContext
from gpuconsole.probes.payload.bench.measurement import ERROR, OK, SKIPPED, TIMEOUT, WRONG, Measurement

NO_COMPILER = "Failed to find C compiler. Please specify via CC environment variable."


def context(place: Path, *, budget_s: float) -> BenchContext:
    """A context without GPUs; compilation is left at what Python does of it, which needs no compiler."""
    (place / "payload.pyz").write_bytes(archive.build().data)
    config: dict[str, Any] = {"archive": str(place / "payload.pyz"), "folder": str(place)}
    config["options"] = {"backend": "eager", "slice_s": 0.1}
    made = BenchContext(config, lambda text: None, torch, device="cpu", gpus=0)
    made.begin(budget_s)
    return made


def test_a_case_is_compiled_cold_and_once_more_warm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "CASES", ("block",))
    found: list[Any] = list(compiling.run(context(tmp_path, budget_s=90.0)))
    assert [(one.params["case"], one.params.get("cache"), one.status) for one in found] == [
        ("block", None, OK),
        ("block", "warm", OK),
    ], [one.why for one in found]
    cold, warm = found
    assert (cold.unit, cold.headline, warm.unit, warm.headline) == ("x", True, "s", False)
    assert cold.score == pytest.approx(cold.values["eager_ms"] / cold.values["compiled_ms"], rel=1e-3)
    assert cold.cold_s == cold.values["cold_compile_s"]
    assert [path.name for path in tmp_path.iterdir()] == ["payload.pyz"]


def off_by(factor: float) -> Callable[[Any, Any], Any]:
    """A compiler whose results are so many times as large."""

    def backend(graph: Any, inputs: Any) -> Any:
        return lambda *arguments: tuple(
            part * factor if part.is_floating_point() else part for part in graph.forward(*arguments)
        )

    return backend


@pytest.mark.parametrize(("factor", "wrong"), [(1.0, False), (1.01, True), (float("nan"), True)])
def test_a_compiler_that_computes_something_else_is_wrong(factor: float, wrong: bool) -> None:
    case = compiling.Case(torch, "cpu", compiling.chain)
    facts = case.cold("default", {"backend": off_by(factor), "slice_s": 0.01})
    assert ("wrong" in facts) == wrong
    if wrong:
        record = {"case": "block", "mode": "default", "stage": "cold", "began": 1.0, "ended": 2.0, **facts}
        told = compiling.measurement_of(record, cuda=False)
        assert (told.status, told.score, told.headline) == (WRONG, None, True)
        assert "the output compiled is off by" in told.why


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (f"BackendCompilerFailed: {NO_COMPILER}", "the image has no compiler"),
        (
            "InvalidCxxCompiler: No working C++ compiler found in torch._inductor.config.cpp.cxx",
            "the image has no compiler",
        ),
        ("fatal error: Python.h: No such file or directory", "the image has no Python headers (Python.h)"),
        ("TritonMissing: Cannot find a working triton installation.", "the image has no working Triton"),
        ("RuntimeError: Dynamo is not supported on Python 3.12+", "this torch does not compile on this Python"),
        (
            "ImportError: /dev/shm/x/c.so: failed to map segment from shared object",
            "what is compiled must not be run: its folder is mounted noexec",
        ),
        ("GPUTooOldForTriton: Found Tesla P4 which is too old to be supported", "this GPU is too old for Triton"),
        ("RuntimeError: triton kernel launch failed", ""),
    ],
)
def test_what_an_image_lacks_is_told_and_is_no_error(text: str, cause: str) -> None:
    record = {"case": "chain", "mode": "default", "stage": "cold", "began": 1.0, "ended": 2.0, "why": text}
    told = compiling.measurement_of(record, cuda=True)
    assert (told.status, told.why) == ((SKIPPED, cause) if cause else (ERROR, text))
    assert told.gpu == [0]


def test_the_line_that_names_the_cause_is_the_one_told() -> None:
    error = RuntimeError(f"backend='inductor' raised:\nRuntimeError: {NO_COMPILER}\n\nSet TORCHDYNAMO_VERBOSE=1")
    assert compiling.telling_line(error) == f"RuntimeError: {NO_COMPILER}"
    assert compiling.telling_line(ValueError("one\ntwo")) == "one"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ranks.RanksLate("rank 0 of 1 did not end within 117 s, at compiling the block"), TIMEOUT),
        (ranks.RanksFailed("died of SIGSEGV"), ERROR),
        (ranks.RanksFailed("OutOfMemoryError: CUDA out of memory"), SKIPPED),
    ],
)
def test_what_was_not_reached_is_told_and_nothing_is_compiled_warm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, status: str
) -> None:
    started: list[str] = []

    def run_ranks(where: str, told: dict[str, Any], **options: Any) -> Any:
        started.append(told["stage"])
        yield {"t": "at", "text": "compiling"}
        raise error

    monkeypatch.setattr(compiling, "run_ranks", run_ranks)
    found: list[Measurement] = list(compiling.run(context(tmp_path, budget_s=90.0)))
    assert [(one.params["case"], one.status, one.headline) for one in found] == [
        ("chain", status, False),
        ("block", status, True),
    ]
    assert started == ["cold"]


def test_an_old_torch_is_skipped(tmp_path: Path) -> None:
    made = context(tmp_path, budget_s=90.0)
    made.torch = type("Old", (), {"__version__": "1.13.1"})
    (told,) = compiling.run(made)
    assert (told.status, told.why) == (SKIPPED, "torch 1.13.1 has no torch.compile")
