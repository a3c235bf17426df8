"""The benchmarks of one process, on the CPU and on GPUs that are pretended: what each tells, and that it can say no."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gpuconsole.probes.payload.bench import attn, data, h2d, launch, mem, mm, soak
from gpuconsole.probes.payload.bench.context import BenchContext
from gpuconsole.probes.payload.bench.lanes import Lane
from gpuconsole.probes.payload.bench.measurement import OK, SKIPPED, WRONG, Measurement, Skip, out_of_memory
from gpuconsole.probes.payload.benchworker import Worker
from tests.payload.bench.pretended import GIB, pretended

torch = pytest.importorskip("torch")
TINY = {
    "mm_size": 64, "buffer_bytes": 1 << 18, "attn_size": [1, 2, 64, 32], "soak_size": 64, "soak_s": 0.05,
    "link_bytes": 1 << 18, "launches": 50,
}  # fmt: skip
BUDGET_S = 0.05
BENCHMARKS = {"mm": mm.run, "mem": mem.run, "launch": launch.run, "attn": attn.run, "soak": soak.run}
ON_GPUS = {**BENCHMARKS, "h2d": h2d.run}
UNITS = {"mm": "TFLOP/s", "mem": "GB/s", "launch": "us", "attn": "TFLOP/s", "soak": "TFLOP/s", "h2d": "GB/s"}


@pytest.fixture(autouse=True)
def in_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left out for lack of time, and no time is spent on emptying a cache that is not there."""
    monkeypatch.setattr(mem, "_LEAST_SHARE", -1e9)
    monkeypatch.setattr(data, "flusher", lambda torch, device: None if device == "cpu" else lambda: None)


def measure(
    run: Callable[[BenchContext], Iterator[Measurement]], *, gpus: int = 0, full: bool = False, **options: Any
) -> list[Measurement]:
    """All it tells, in next to no time."""
    device = "cuda:0" if gpus else "cpu"
    config = {"mode": "full" if full else "quick", "options": {**TINY, **options}}
    context = BenchContext(config, lambda _: None, torch, device=device, gpus=gpus)
    context.begin(BUDGET_S)
    return list(run(context))


def look(name: str, found: list[Measurement]) -> None:
    """What holds for the records of every benchmark."""
    assert [one.headline for one in found].count(True) == 1
    assert len({str(sorted(one.params.items())) + str(one.gpu) for one in found}) == len(found)
    for one in found:
        if one.status == OK:
            assert one.score is not None
            assert one.unit in (UNITS[name], "share")
            assert math.isfinite(one.score)
            assert one.score > 0 or one.unit == "share"
            assert set(one.stat or ()) >= {"median_ms", "p20", "p80", "min", "max", "n", "riqr"}
            assert one.began is not None
            assert one.ended is not None
            assert one.began <= one.ended
        else:
            assert one.status == SKIPPED
            assert one.why
            assert not one.why.endswith(".") or "not available here" in one.why


@pytest.mark.parametrize("name", BENCHMARKS)
def test_on_the_cpu(name: str) -> None:
    found = measure(BENCHMARKS[name])
    look(name, found)
    assert next(one for one in found if one.headline).status == OK


@pytest.mark.parametrize("gpus", [1, 2])
@pytest.mark.parametrize("name", ON_GPUS)
def test_the_way_on_gpus(name: str, gpus: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with pretended(monkeypatch, count=gpus):
        found = measure(ON_GPUS[name], gpus=gpus, full=gpus == 2)
    look(name, found)
    seen = {tuple(one.gpu) for one in found if one.gpu}
    if gpus == 2 and name in ("mm", "mem", "soak"):
        assert seen == {(0,), (1,)}  # both at the same time, so that they can be told apart
    if gpus == 2 and name == "h2d":
        assert seen == {(1,)}


def test_products_go_by_what_the_card_has(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {
        (6, 1): "fp32 fp16",
        (7, 5): "fp16 fp32 bf16",
        (8, 6): "bf16 fp16 tf32 fp32",
        (9, 0): "bf16 fp16 tf32 fp32 fp8",
    }
    for capability, wanted in kinds.items():
        with pretended(monkeypatch, capability=capability):
            assert mm.kinds_of(torch, "cuda:0") == wanted.split()
            assert attn.kind_of(torch, "cuda:0") == ("bf16" if capability >= (8, 0) else "fp16")
            assert soak.kind_of(torch, "cuda:0") == wanted.split()[0]
    assert mm.kinds_of(torch, "cpu")[0] == attn.kind_of(torch, "cpu") == soak.kind_of(torch, "cpu") == "fp32"


def test_formulas() -> None:
    assert mm.tflops((8192, 8192, 8192), 1.0) == pytest.approx(1099.5, rel=1e-4)
    assert mem.bandwidth("copy", 10**9, 1.0) == pytest.approx(2000)
    assert mem.bandwidth("triad", 10**9, 1.0) == pytest.approx(3000)
    assert attn.flop((4, 16, 4096, 128)) == pytest.approx(3.5 * 2 * 4 * 16 * 4096**2 * 128)
    assert h2d.overlap(1.0, 1.0, 1.0) == 1.0
    assert h2d.overlap(1.0, 1.0, 2.0) == 0.0
    assert h2d.overlap(1.0, 3.0, 3.5) == 0.5
    assert soak.quarters((64, 64, 64), [1.0] * 7) == {}
    cooled = soak.quarters((8192, 8192, 8192), [1.0] * 10 + [2.0] * 10)
    assert cooled["last_over_first"] == 0.5


def test_ratios_stand_beside_the_figure_that_completes_them() -> None:
    best = {("bf16", mm.SQUARE): 800.0}
    measured = Measurement({}, score=100.0)
    best["fp32", mm.SMALL] = 100.0
    mm.add_ratios(measured, "fp32", mm.SMALL, best)
    assert measured.values == {"bf16_over_fp32": 8.0}


def test_a_copy_to_the_host_leaves_room_there() -> None:
    assert h2d.bytes_to_copy(GIB, 64 * GIB) == GIB
    assert h2d.bytes_to_copy(GIB, 4 * GIB) == GIB // 4
    with pytest.raises(Skip, match="the host has 100 MiB free"):
        h2d.bytes_to_copy(GIB, 100 << 20)


def spoil(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, damage: Callable[[Any], object], *, at: int) -> None:
    """From call ``at`` on, ``damage`` what comes out of ``owner.name``."""
    whole, calls = getattr(owner, name), [0]

    def spoiled(*arguments: Any, **options: Any) -> Any:
        result = whole(*arguments, **options)
        calls[0] += 1
        if calls[0] >= at:
            damage(options.get("out", result))
        return result

    monkeypatch.setattr(owner, name, spoiled)


@pytest.mark.parametrize(
    ("damage", "words"), [(1.05, "the product is off by"), (math.nan, "the product is off by nan")]
)
def test_a_product_that_is_wrong_has_no_speed(monkeypatch: pytest.MonkeyPatch, damage: float, words: str) -> None:
    spoil(monkeypatch, torch, "mm", lambda out: out.mul_(damage), at=1)
    found = measure(mm.run)
    assert [one.status for one in found] == [WRONG, WRONG]
    assert all(words in one.why and one.score is None for one in found)
    assert found[0].headline


def test_a_type_that_fails_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = mm.Product

    def product(torch: Any, kind: str, *arguments: Any, **options: Any) -> Any:
        if kind == "fp16":
            raise RuntimeError("CUBLAS_STATUS_NOT_SUPPORTED\nand a long story")
        if kind == "tf32":
            raise RuntimeError("CUDA out of memory. Tried to allocate 1 GiB")
        return whole(torch, kind, *arguments, **options)

    monkeypatch.setattr(mm, "Product", product)
    with pretended(monkeypatch, capability=(8, 0)):
        found = {one.params["dtype"]: one for one in measure(mm.run, gpus=1)}
    assert found["fp16"].status == "error"
    assert found["fp16"].why == "RuntimeError: CUBLAS_STATUS_NOT_SUPPORTED"
    assert found["tf32"].status == SKIPPED
    assert found["tf32"].why.startswith("memory: ")
    assert found["bf16"].status == found["fp32"].status == OK


def test_where_the_copy_took_all_the_time_the_triad_is_left_out() -> None:
    config = {"mode": "quick", "options": TINY}
    context = BenchContext(config, lambda _: None, torch, device="cpu", gpus=0)
    context.begin(0.0)
    copy, triad = mem.run(context)
    assert (copy.status, copy.headline) == (OK, True)
    assert (triad.status, triad.why) == (SKIPPED, "time: 0.0 s are left")


def test_memory_that_changes_what_it_holds_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def flip(out: Any) -> None:
        out[7] += 1.0

    spoil(monkeypatch, torch, "add", flip, at=1)
    found = {one.params["operation"]: one for one in measure(mem.run)}
    assert found["triad"].status == WRONG
    assert found["copy"].status == OK
    assert found["copy"].headline
    monkeypatch.undo()
    spoil(monkeypatch, torch.Tensor, "copy_", flip, at=4)
    assert measure(mem.run)[0].why == "the copy came back different"


@pytest.mark.parametrize("direction", ["h2d", "d2h", "both"])
def test_what_crosses_the_link_is_compared(monkeypatch: pytest.MonkeyPatch, direction: str) -> None:
    name = {"h2d": "to_device", "d2h": "to_host", "both": "both"}[direction]
    monkeypatch.setattr(h2d.Link, name, lambda self: None)
    with pretended(monkeypatch):
        found = {(one.params["direction"], one.params["memory"]): one for one in measure(h2d.run, gpus=1)[:5]}
    assert found[direction, "pinned"].status == WRONG
    assert found[direction, "pinned"].why == "what was copied came back different"
    assert found["h2d", "pageable"].status == found["d2h", "pageable"].status == OK


def test_a_launch_that_is_lost_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch.Item, "round", lambda self: self.x.add_(self.count - 1))
    found = {one.params["operation"]: one for one in measure(launch.run)}
    assert found["item"].status == WRONG
    assert "gave" in found["item"].why
    assert found["launch"].status == OK
    assert found["graph-node"].status == SKIPPED


@pytest.mark.parametrize("at", [0, 1, 3])
def test_attention_that_is_wrong_forward_or_backward_is_found(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    whole = attn.stepper

    def wrong(torch: Any, name: str, *tensors: Any) -> Callable[[], tuple[Any, ...]]:
        step = whole(torch, name, *tensors)
        return lambda: tuple(one * (1.05 if place == at else 1) for place, one in enumerate(step()))

    monkeypatch.setattr(attn, "stepper", wrong)
    found = measure(attn.run)
    assert {one.status for one in found} == {WRONG}
    assert "off by 5e-02" in found[0].why


def test_a_back_end_that_is_not_there_is_no_failure_and_says_why() -> None:
    said = [
        "Flash attention kernel not used because: (Triggered internally)",
        "Memory Efficient attention has been runtime disabled.",
        "Flash attention only supports gpu architectures in the range [sm80, sm90].",
    ]
    error = attn.unavailable(RuntimeError("No available kernel. Aborting execution."), said)
    assert isinstance(error, Skip)
    assert str(error) == "not available here: " + said[2]
    real = RuntimeError("an illegal memory access was encountered")
    assert attn.unavailable(real, []) is real


def test_one_bit_that_differs_in_the_soak_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def flip(out: Any) -> None:
        out.view(torch.int32)[3, 5] ^= 1

    spoil(monkeypatch, torch, "mm", flip, at=12)
    (found,) = measure(soak.run)
    assert found.status == WRONG
    assert found.headline
    assert found.values["mismatches"] == found.values["compared"] - 2
    assert "differ from the first" in found.why


def test_of_siblings_the_slowest_is_the_headline(monkeypatch: pytest.MonkeyPatch) -> None:
    with pretended(monkeypatch, count=3):
        found = measure(soak.run, gpus=3)
    slowest = next(one for one in found if one.headline)
    assert slowest.score == min(one.score or 0.0 for one in found)
    assert slowest.values["slowest_over_fastest"] <= 1.0


@pytest.mark.parametrize(("run", "fault"), [(mm.run, "the product is off by"), (mem.run, "came back different")])
def test_a_wrong_result_of_a_sibling_is_no_speed(
    monkeypatch: pytest.MonkeyPatch, run: Callable[[BenchContext], Iterator[Measurement]], fault: str
) -> None:
    """The first GPU is right: what all compute at the same time is looked at on each."""
    module = mm if run is mm.run else mem

    def spoiled(torch: Any, device: str, fn: Callable[[], object], **options: Any) -> Lane:
        def half() -> None:
            if device != "cuda:1":
                fn()

        return Lane(torch, device, half, **options)

    monkeypatch.setattr(module, "Lane", spoiled)
    if run is mm.run:  # what nobody writes to holds no number
        monkeypatch.setattr(torch, "empty", lambda *size, _made=torch.empty, **kw: filled(_made(*size, **kw)))
    with pretended(monkeypatch, count=2):
        found = [one for one in measure(run, gpus=2) if "together" in one.params]
    assert [(one.gpu, one.status) for one in found] == [([0], OK), ([1], WRONG)]
    assert fault in found[1].why
    assert found[1].score is None


def filled(made: Any) -> Any:
    """Memory in which no number stands."""
    return made.fill_(float("nan")) if made.is_floating_point() else made


def test_a_gpu_that_is_full_is_skipped_and_its_sibling_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    with pretended(monkeypatch, count=2):
        monkeypatch.setattr(
            torch.cuda, "mem_get_info", lambda device: ((GIB if device == "cuda:1" else 139 * GIB), 140 * GIB)
        )
        for run in (mm.run, mem.run, soak.run):
            found = [one for one in measure(run, gpus=2) if one.gpu == [1]]
            if run is mem.run:
                continue  # with buffers as small as these there is room
            assert [one.status for one in found] == [SKIPPED], run
            assert "memory: 1 GiB are free" in found[0].why


@pytest.mark.parametrize("name", ["mm", "mem", "h2d", "attn", "soak"])
def test_where_most_of_the_memory_is_taken_none_is_taken(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pretended(monkeypatch, free=2 * GIB):
        try:
            found = measure(ON_GPUS[name], gpus=1, buffer_bytes=0)
        except Skip as error:
            found = [Measurement.failed({}, error)]  # as the worker does
    assert {(one.status, one.why.partition(",")[0]) for one in found} == {(SKIPPED, "memory: 2 GiB are free")}


def test_what_an_exception_means() -> None:
    assert Measurement.failed({}, Skip("no such thing")).status == SKIPPED
    assert Measurement.failed({}, MemoryError("")).status == SKIPPED
    assert out_of_memory(RuntimeError("CUDA out of memory. Tried to allocate"))
    assert out_of_memory(RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"))
    failed = Measurement.failed({"a": 1}, ValueError("\n\n first line \nsecond"), gpu=[1])
    assert (failed.status, failed.why, failed.gpu, failed.params) == ("error", "ValueError: first line", [1], {"a": 1})


def test_memory_is_told_and_an_allocator_that_ran_out_is_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[dict[str, Any]] = []

    class Out:
        def emit(self, kind: str, **fields: Any) -> None:
            told.append({"t": kind, **fields})

    retries = iter([0, 3, 3])
    with pretended(monkeypatch):
        monkeypatch.setattr(torch.cuda, "max_memory_reserved", lambda device: 5 * GIB)
        monkeypatch.setattr(torch.cuda, "memory_stats", lambda device: {"num_alloc_retries": next(retries)})
        worker = Worker({"checks": ["bench.mm"]}, Out())  # type: ignore[arg-type]
        worker._context = BenchContext({}, lambda _: None, torch, device="cuda:0", gpus=1)
        for _ in range(3):
            worker._tell(Measurement({"a": 1}, score=1.0))
    assert [record["peak_reserved_bytes"] for record in told] == [5 * GIB] * 3
    assert [record["noisy"] for record in told] == [False, True, False]
    assert told[1]["values"] == {"alloc_retries": 3}
    assert {(record["device"], tuple(record["gpu"])) for record in told} == {("cuda", (0,))}
