"""What a benchmark is given: its processes are late before it is late itself."""

from __future__ import annotations

import time

import pytest
import torch

from gpuconsole.probes.payload.bench.context import BenchContext


@pytest.mark.parametrize(
    ("options", "left_s", "patience_s"),
    [
        ({}, None, 18.4),
        ({}, 1000.0, 18.4),
        ({"deadline_s": 50.0}, 1000.0, 46.0),
        ({}, 10.0, 8.5),
        ({}, 0.5, 1.0),
    ],
)
def test_processes_are_late_before_the_benchmark_is(
    options: dict[str, float], left_s: float | None, patience_s: float
) -> None:
    ends_at = None if left_s is None else time.monotonic() + left_s
    config = {"mode": "quick", "options": options, "ends_at": ends_at}
    made = BenchContext(config, lambda text: None, torch, device="cpu", gpus=0)
    made.begin(10.0)
    assert made.patience_s == pytest.approx(patience_s, abs=0.5)
