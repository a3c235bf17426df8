"""The benchmarks beside loops written by hand, in the same run on the same GPU: both figures, and their ratio.

    python3 tests/gpu/compare_bench.py [-o FILE] [--rounds 3]

Needs an NVIDIA GPU (the first that torch sees) and torch; nothing else. It multiplies bf16 matrices of 8192x8192 and
copies buffers of 1 GiB, by a plain loop between two events and by the benchmark, in turns. Then it shows two traps that
the benchmarks avoid: numbers that are all 0, and buffers that fit in the cache. Exit codes: 0 both within 3 %, 1 not,
3 no GPU here.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from gpuconsole.probes.payload.bench import mem, mm
from gpuconsole.probes.payload.bench.context import BenchContext

SIDE = 8192
COPY_BYTES = 1 << 30
CLOSE = 0.03


def by_hand(torch: Any, work: Callable[[], object], *, heat_s: float, count: int) -> float:
    """Seconds a call takes: run it for a while, then so many times between two events."""
    begun = time.perf_counter()
    while time.perf_counter() - begun < heat_s:
        for _ in range(20):
            work()
        torch.cuda.synchronize()
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    first.record()
    for _ in range(count):
        work()
    last.record()
    torch.cuda.synchronize()
    return float(first.elapsed_time(last)) / 1000.0 / count


def product_by_hand(torch: Any, *, heat_s: float, zeros: bool = False) -> float:
    """TFLOP/s of a bf16 product."""
    a = torch.randn(SIDE, SIDE, device="cuda").bfloat16()
    b = torch.randn(SIDE, SIDE, device="cuda").bfloat16()
    if zeros:
        a.zero_()
        b.zero_()
    out = torch.empty_like(a)
    seconds = by_hand(torch, lambda: torch.mm(a, b, out=out), heat_s=heat_s, count=1000)
    return 2.0 * SIDE**3 / seconds / 1e12


def copy_by_hand(torch: Any, *, heat_s: float) -> float:
    """GB/s of a copy on the GPU, what is read and what is written counted."""
    a = torch.randn(COPY_BYTES // 4, device="cuda")
    b = torch.empty_like(a)
    seconds = by_hand(torch, lambda: b.copy_(a), heat_s=heat_s, count=2000)
    return 2.0 * COPY_BYTES / seconds / 1e9


def copy_in_cache(torch: Any, *, count_bytes: int, copies: int = 200) -> float:
    """GB/s of a copy that never leaves the cache; in a graph, since it takes less than its launch."""
    a = torch.randn(count_bytes // 4, device="cuda")
    b = torch.empty_like(a)
    b.copy_(a)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(copies):
            b.copy_(a)
    seconds = by_hand(torch, graph.replay, heat_s=1.0, count=200) / copies
    return 2.0 * count_bytes / seconds / 1e9


def ours(torch: Any, run: Callable[[BenchContext], Any], budget_s: float, wanted: str, **options: Any) -> float:
    """The score of the benchmark's record that has this value among its parameters."""
    context = BenchContext({"mode": "quick", "options": options}, lambda _: None, torch, device="cuda:0", gpus=1)
    context.begin(budget_s)
    for measured in run(context):
        if wanted in (measured.params.get("dtype"), measured.params.get("operation")):
            if measured.score is None:
                raise SystemExit(f"{measured.params}: {measured.status}: {measured.why}")
            return float(measured.score)
    raise SystemExit(f"there is no record of {wanted}")


def compare(torch: Any, rounds: int) -> dict[str, dict[str, Any]]:
    """What is compared → both figures, medians of all rounds, and their ratio."""
    product_by_hand(torch, heat_s=5.0)
    pairs: dict[str, tuple[list[float], list[float], str]] = {
        "product bf16 8192": ([], [], "TFLOP/s"),
        "copy 1 GiB": ([], [], "GB/s"),
    }
    for _ in range(rounds):
        mine, plain, _ = pairs["product bf16 8192"]
        plain.append(product_by_hand(torch, heat_s=1.0))
        mine.append(ours(torch, mm.run, 9.0, "bf16"))
    for _ in range(rounds):
        mine, plain, _ = pairs["copy 1 GiB"]
        plain.append(copy_by_hand(torch, heat_s=1.0))
        mine.append(ours(torch, mem.run, 4.0, "copy", buffer_bytes=COPY_BYTES))
    told = {}
    for name, (mine, plain, unit) in pairs.items():
        ratio = statistics.median(mine) / statistics.median(plain)
        told[name] = {
            "unit": unit, "benchmark": statistics.median(mine), "by_hand": statistics.median(plain),
            "ratio": round(ratio, 4), "benchmark_rounds": mine, "by_hand_rounds": plain,
        }  # fmt: skip
    return told


def traps(torch: Any) -> dict[str, dict[str, float]]:
    """What zeros and a buffer within the cache would have claimed."""
    cache = int(getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 32 << 20))
    random, zeros = product_by_hand(torch, heat_s=2.0), product_by_hand(torch, heat_s=2.0, zeros=True)
    random_ours, zeros_ours = ours(torch, mm.run, 9.0, "bf16"), ours(torch, mm.run, 9.0, "bf16", data="zeros")
    small, large = copy_in_cache(torch, count_bytes=cache // 4), copy_by_hand(torch, heat_s=1.0)
    return {
        "zeros over random, by hand (TFLOP/s)": {"trap": zeros, "right": random, "ratio": round(zeros / random, 3)},
        "zeros over random, benchmark (TFLOP/s)": {
            "trap": zeros_ours, "right": random_ours, "ratio": round(zeros_ours / random_ours, 3),
        },
        "copy within the cache over beyond it (GB/s)": {
            "trap": small, "right": large, "ratio": round(small / large, 3),
        },
    }  # fmt: skip


def main() -> int:
    """Measure in turns, and tell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    wanted = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("no torch here", file=sys.stderr)
        return 3
    if not torch.cuda.is_available():
        print("no GPU here", file=sys.stderr)
        return 3
    told: dict[str, Any] = {
        "gpu": torch.cuda.get_device_name(0), "torch": torch.__version__, "compared": compare(torch, wanted.rounds),
        "traps": traps(torch),
    }  # fmt: skip
    for name, pair in told["compared"].items():
        print(
            f"{name}: benchmark {pair['benchmark']:.1f}, by hand {pair['by_hand']:.1f} {pair['unit']}, "
            f"ratio {pair['ratio']:.4f}"
        )
    for name, pair in told["traps"].items():
        print(f"trap: {name}: {pair['trap']:.1f} instead of {pair['right']:.1f}, ratio {pair['ratio']}")
    if wanted.output is not None:
        wanted.output.write_text(json.dumps(told, indent=2) + "\n")
    return 0 if all(abs(pair["ratio"] - 1) <= CLOSE for pair in told["compared"].values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
