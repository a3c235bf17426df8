"""The benchmarks beside loops written by hand, as recorded on an H200 by ``tests/gpu/compare_bench.py``."""

from __future__ import annotations

import json
from pathlib import Path

RECORD = Path(__file__).parents[1] / "fixtures" / "bench" / "h200-by-hand.json"


def test_product_and_copy_are_within_three_percent_and_both_traps_would_have_paid() -> None:
    told = json.loads(RECORD.read_text(encoding="utf-8"))
    assert set(told["compared"]) == {"product bf16 8192", "copy 1 GiB"}
    for one in told["compared"].values():
        assert abs(one["benchmark"] / one["by_hand"] - 1) < 0.03
    # What the benchmarks avoid: numbers that are all zero, and buffers that fit in the cache.
    assert len(told["traps"]) == 3
    assert all(trap["trap"] / trap["right"] > 1.1 for trap in told["traps"].values())
