"""B09: samples come from workers unharmed, and only as many workers run as there is room for."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gpuconsole.probes.payload.bench import loader
from gpuconsole.probes.payload.bench.context import BenchContext
from gpuconsole.probes.payload.bench.measurement import ERROR, OK, SKIPPED, WRONG, Skip

COUNT = 1 << 16
MIB = 1 << 20


def context(budget_s: float = 0.6) -> BenchContext:
    """A context without GPUs, for small samples."""
    made = BenchContext({"options": {"sample_bytes": COUNT}}, lambda text: None, torch, device="cpu", gpus=0)
    made.begin(budget_s)
    return made


def test_samples_are_what_they_must_be() -> None:
    samples = loader.Samples(1000)
    for index in (0, 7, 255, 256, 1 << 30):
        sample = samples[index]
        assert sample.shape == (1000,)
        assert [int(byte) for byte in sample] == [loader.expected(index, place) for place in range(1000)]
    assert not torch.equal(samples[0], samples[1])


def test_each_number_of_workers_is_measured_and_the_best_is_the_headline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "cpus", lambda: 2)
    found: list[Any] = list(loader.run(context()))
    assert [one.params["workers"] for one in found] == [0, 2, 4, 8, "best"]
    assert [one.status for one in found] == [OK, OK, OK, SKIPPED, OK]
    assert found[3].why == "processors: there are 2, too few for 8 workers"
    best = max(found[:3], key=lambda one: one.score)
    assert (found[4].score, found[4].headline, found[4].values["workers"]) == (best.score, True, best.params["workers"])
    for one in found[:3]:
        assert one.unit == "GB/s"
        assert one.score == pytest.approx(one.values["samples_per_s"] * COUNT / 1e9, rel=0.05)
        assert not one.headline


def test_without_room_in_shared_memory_workers_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    loader.see_room(0, 8 * MIB, 0)
    loader.see_room(2, 8 * MIB, 64 * MIB)
    with pytest.raises(Skip, match="4 workers need 80 MiB of /dev/shm, and 64 MiB are free"):
        loader.see_room(4, 8 * MIB, 64 * MIB)
    monkeypatch.setattr(loader, "shm_free", lambda: 0)
    found = list(loader.run(context()))
    assert [one.status for one in found] == [OK, SKIPPED, SKIPPED, SKIPPED, OK]
    assert found[1].why.startswith("shared memory")


def test_bytes_that_arrive_changed_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "WORKERS", (0,))
    monkeypatch.setattr(loader, "expected", lambda index, place: 300)
    (found,) = loader.run(context())
    assert (found.status, found.score) == (WRONG, None)


def test_a_worker_that_dies_is_an_error_and_the_rest_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    class Dying(loader.Samples):
        def __getitem__(self, index: int) -> Any:
            if torch.utils.data.get_worker_info() is not None:
                raise OSError("No space left on device")
            return super().__getitem__(index)

    monkeypatch.setattr(loader, "Samples", Dying)
    monkeypatch.setattr(loader, "WORKERS", (2, 0))
    died, alone, best = loader.run(context())
    assert (died.status, alone.status) == (ERROR, OK)
    assert "OSError" in died.why
    assert best.values["workers"] == 0


def test_the_time_of_a_sample_is_taken_over_rounds_of_all_workers() -> None:
    stamps = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 2.0]
    assert loader.windows_ms(stamps, 3) == pytest.approx([1000 / 3, 1000 / 3])
    assert loader.windows_ms([0.0, 1.0, 2.0], 8) == pytest.approx([1000.0])
    assert [loader.width_for(count, 4) for count in (10, 80, 400, 1000)] == [4, 4, 20, 48]
    assert loader.width_for(400, 0) == 20
