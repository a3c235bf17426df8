"""B06 and B07: training is measured in every precision, and a loss that does not behave is a wrong result."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from gpuconsole.probes.payload.bench import conv, model, train, training
from gpuconsole.probes.payload.bench.context import BenchContext
from gpuconsole.probes.payload.bench.measurement import ERROR, OK, SKIPPED, WRONG, Measurement, Skip
from tests.payload.bench.pretended import GIB, pretended

LN = math.log(512)


def context(*, mode: str = "quick", device: str = "cpu", budget_s: float = 60.0) -> BenchContext:
    """A context with time to spare; what is measured is short all the same."""
    made = BenchContext({"mode": mode}, lambda text: None, torch, device=device, gpus=int(device != "cpu"))
    made.begin(budget_s)
    return made


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every slice is a tenth of a second."""
    for module in (train, conv):
        whole = module.timed

        def shortly(*arguments: Any, whole: Callable[..., Any] = whole, **options: Any) -> Any:
            return whole(*arguments, **dict(options, min_s=0.1, heat_s=0.0, most_s=0.3))

        monkeypatch.setattr(module, "timed", shortly)


@pytest.mark.parametrize(
    ("losses", "fault"),
    [
        ([LN, *[LN - 0.1 * step for step in range(1, 20)]], ""),
        ([LN, LN], ""),  # too few steps to tell
        ([LN, math.nan, LN], "step 2 is not a number"),
        ([LN] * 5 + [math.inf], "step 6 is not a number"),
        ([LN * 1.2], "begins at"),
        ([LN] * 20, "did not fall"),
        ([LN, *[LN + 1] * 8, LN - 0.1, *[LN - 1] * 8], ""),
    ],
)
def test_losses_are_judged(losses: list[float], fault: str) -> None:
    found = training.fault_of(losses, LN)
    assert fault in found if fault else not found


def test_ratios_are_of_the_base() -> None:
    assert training.ratios({"bf16": 30.0, "tf32": 20.0, "fp32": 10.0}, "fp32") == {
        "bf16_over_fp32": 3.0,
        "tf32_over_fp32": 2.0,
    }
    assert training.ratios({"bf16": 30.0}, "fp32") == {}


def test_what_would_take_too_long_is_not_begun() -> None:
    training.see_time(10.0, 9.0)
    with pytest.raises(Skip, match=r"it would take 11\.0 s, and 10\.0 s are left"):
        training.see_time(10.0, 11.0)


@pytest.mark.usefixtures("short")
def test_a_cpu_trains_the_tiny_decoder_in_two_precisions() -> None:
    plain: Any
    mixed: Any
    plain, mixed = train.run(context())
    assert (plain.params["size"], plain.params["precision"], plain.headline) == ("T", "fp32", True)
    assert (mixed.params["precision"], mixed.headline, mixed.status) == ("bf16", False, OK)
    assert plain.unit == "tokens/s"
    assert plain.score == pytest.approx(model.TINY.tokens * 1000 / plain.stat["median_ms"], rel=1e-3)
    rate = plain.values["model_tflop_per_s"]
    assert rate == pytest.approx(plain.score * model.TINY.flop_per_token / 1e12, abs=1e-4)
    assert plain.values["loss_last"] < plain.values["loss_first"]
    assert mixed.values["bf16_over_fp32"] == pytest.approx(mixed.score / plain.score, rel=1e-3)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(("rate", "fault"), [(0.0, "did not fall"), (math.nan, "not a number")])
def test_a_decoder_that_does_not_learn_is_wrong(monkeypatch: pytest.MonkeyPatch, rate: float, fault: str) -> None:
    def lame(module: Any) -> tuple[Any, bool]:
        optimizer = torch.optim.SGD(module.parameters(), lr=0.0)
        optimizer.param_groups[0]["lr"] = rate
        return optimizer, False

    monkeypatch.setattr(model, "adamw", lame)
    for measurement in train.run(context()):
        assert (measurement.status, measurement.score) == (WRONG, None)
        assert fault in measurement.why


@pytest.mark.usefixtures("short")
def test_one_precision_that_fails_does_not_keep_the_others_from_running(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = training.Trainer.step

    def step(self: training.Trainer) -> None:
        if self._dtype is None:
            raise RuntimeError("CUDA error: an illegal instruction was encountered\nmore")
        whole(self)

    monkeypatch.setattr(training.Trainer, "step", step)
    plain, mixed = list(train.run(context()))
    assert (plain.status, plain.why) == (ERROR, "RuntimeError: CUDA error: an illegal instruction was encountered")
    assert mixed.status == OK
    assert "bf16_over_fp32" not in mixed.values


def test_without_time_only_the_first_precision_is_measured() -> None:
    made = context(budget_s=0.05)
    first, second = list(train.run(made))
    assert first.status == OK
    assert (second.status, second.why.split(":")[0]) == (SKIPPED, "time")


@pytest.mark.usefixtures("short")
def test_the_way_on_gpus_goes_by_what_the_card_has(monkeypatch: pytest.MonkeyPatch) -> None:
    smaller = {
        name: model.Size(name, width=32, layers=1, heads=2, sequence=16, batch=2, vocabulary=64) for name in "ML"
    }
    monkeypatch.setattr(train, "size_for", lambda context, most: smaller[most.name])

    autocast = torch.autocast
    monkeypatch.setattr(torch, "autocast", lambda kind, dtype: autocast("cpu", dtype=dtype))

    def run(capability: tuple[int, int], mode: str) -> list[Measurement]:
        with pretended(monkeypatch, capability=capability):
            return list(train.run(context(mode=mode, device="cuda:0")))

    def told(measurements: list[Measurement]) -> list[tuple[str, str, bool]]:
        return [(one.params["size"], one.params["precision"], one.headline) for one in measurements]

    new = run((9, 0), "full")
    rest = [("M", "fp32", False), ("M", "fp16", False), ("M", "tf32", False), ("L", "bf16", False)]
    assert told(new) == [("M", "bf16", True), *rest]
    assert [one.status for one in new] == [OK] * 5
    assert {"bf16_over_fp32", "fp16_over_fp32", "tf32_over_fp32"} <= set(new[3].values)
    assert told(run((7, 0), "quick")) == [("M", "fp16", True), ("M", "fp32", False)]
    assert told(run((6, 1), "quick")) == [("M", "fp32", True)]


@pytest.mark.parametrize(("free", "name"), [(139 * GIB, "M"), (20 * GIB, "S"), (4 * GIB, "XS"), (3 * GIB, None)])
def test_the_size_is_the_largest_that_forty_percent_hold(
    monkeypatch: pytest.MonkeyPatch, free: int, name: str | None
) -> None:
    with pretended(monkeypatch, free=free):
        size = train.size_for(context(device="cuda:0"), model.MEDIUM)
        assert (size.name if size else None) == name
        if size is None:
            (skipped,) = train.run(context(device="cuda:0"))
            assert (skipped.status, skipped.why.split(":")[0]) == (SKIPPED, "memory")


def test_each_switch_of_the_convolution_has_its_ratio() -> None:
    chosen = conv.variants(["bf16", "fp16", "tf32", "fp32"], on_gpu=True)
    names = [variant.name for variant in chosen]
    assert names == ["bf16_channels_last_autotune", "bf16_channels_last", "bf16", "tf32", "fp32"]
    gains = conv.gains(chosen, dict(zip(names, (8.0, 7.0, 5.0, 2.0, 1.0), strict=True)))
    assert gains["bf16_channels_last_over_bf16"] == 1.4
    assert gains["bf16_channels_last_autotune_over_fp32"] == 8.0
    assert gains["tf32_over_fp32"] == 2.0
    assert conv.gains(chosen, {"bf16": 5.0}) == {}


@pytest.mark.usefixtures("short")
def test_a_cpu_trains_a_small_resnet_and_leaves_cudnn_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.backends.cudnn.benchmark
    measurements: list[Any] = list(conv.run(context(mode="full")))
    assert [one.status for one in measurements] == [OK] * 3
    assert [one.headline for one in measurements] == [True, False, False]
    assert measurements[0].params["channels_last"]
    assert measurements[0].unit == "images/s"
    assert measurements[0].score == pytest.approx(4 * 1000 / measurements[0].stat["median_ms"], rel=1e-2)
    assert "fp32_channels_last_over_fp32" in measurements[-1].values
    assert torch.backends.cudnn.benchmark == before
    monkeypatch.setattr(conv, "_RATE", 0.0)
    wrong = next(iter(conv.run(context(mode="full"))))
    assert (wrong.status, wrong.headline) == (WRONG, True)
    assert "did not fall" in wrong.why


@pytest.mark.usefixtures("short")
def test_on_gpus_each_switch_is_turned_on_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    autocast, parts, tuned = torch.autocast, conv.parts, []

    def small_parts(torch: Any, device: str, batch: int, pixels: int, *, small: bool) -> Any:
        tuned.append(torch.backends.cudnn.benchmark)
        return parts(torch, "cpu", batch, pixels, small=True)

    monkeypatch.setattr(torch, "autocast", lambda kind, dtype: autocast("cpu", dtype=dtype))
    monkeypatch.setattr(conv, "parts", small_parts)
    monkeypatch.setattr(conv, "shape_for", lambda context: (4, 32))
    with pretended(monkeypatch):
        found: list[Any] = list(conv.run(context(mode="full", device="cuda:0")))
    assert [one.status for one in found] == [OK] * 5, [one.why for one in found]
    switches = [(one.params["precision"], one.params["channels_last"], one.params["autotune"]) for one in found]
    assert switches[:3] == [("bf16", True, True), ("bf16", True, False), ("bf16", False, False)]
    assert switches[3:] == [("tf32", False, False), ("fp32", False, False)]
    assert tuned == [True, False, False, False, False]
    assert len(found[-1].values) == 2 + 5  # the losses, four neighbours, and all switches together


@pytest.mark.parametrize(("free", "batch"), [(139 * GIB, 64), (20 * GIB, 32), (11 * GIB, 16), (8 * GIB, 0)])
def test_the_batch_of_images_goes_by_the_memory(monkeypatch: pytest.MonkeyPatch, free: int, batch: int) -> None:
    with pretended(monkeypatch, free=free):
        made = context(mode="full", device="cuda:0")
        assert conv.shape_for(made) == (batch, 224)
        if not batch:
            (skipped,) = conv.run(made)
            assert skipped.status == SKIPPED
