"""What is said of a benchmark run as a whole: the limit, the claims, the change since another run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpuconsole.probes.benchclaims import claims_of
from gpuconsole.probes.benchcompare import Change, compare
from gpuconsole.probes.benchgrades import Peers, grade_run
from gpuconsole.probes.benchkeys import Likeness, likeness, result_key
from gpuconsole.probes.benchlimits import limit_of
from gpuconsole.probes.benchrecords import BenchMachine, BenchRecord, BenchRun, Limit
from gpuconsole.probes.benchresults import BenchStatus
from gpuconsole.probes.benchwords import figure, words_of
from tests.unit.benchmade import MM, SKIPPED, gpu, held, record, run, with_torch

TRAIN = {"size": "L", "batch": 8}


def limit(*records: BenchRecord, **fields: Any) -> Limit:
    found = limit_of(grade_run(run(*records, **fields), lambda _: Peers()))
    assert found is not None
    return found


def trained(precision: str, score: float | None, **fields: Any) -> BenchRecord:
    return record("bench.train", score, unit="tokens/s", params=TRAIN | {"precision": precision}, **fields)


def test_a_healthy_box_is_limited_by_its_gpu() -> None:
    found = limit(record(), trained("bf16", 90000.0, values={"model_tflop_per_s": 433.0}))
    assert found.limit == "compute"
    assert found.sentence == (
        "Nothing stands out: the GPU itself is the limit; a training step does 55 % of its matrix product's rate."
    )


def test_the_gpu_is_the_limit_only_where_its_arithmetic_was_measured() -> None:
    link = record("bench.h2d", 55.0, unit="GB/s", params={"direction": "h2d", "memory": "pinned"})
    found = limit(link)
    assert found.limit == "unknown"
    assert found.sentence == "Nothing stands out in h2d, but how fast it computes is not known."


@pytest.mark.parametrize("status", [BenchStatus.ERROR, BenchStatus.TIMEOUT])
def test_what_could_not_be_measured_is_said_beside_what_is_healthy(status: BenchStatus) -> None:
    broken = record("bench.attn", **(SKIPPED | {"status": status, "why": "no kernel image"}))
    found = limit(record(), broken)
    assert found.sentence.endswith("as far as it was measured; attn could not be measured.")
    assert found.because == ("attn: no kernel image",)
    skipped = record("bench.p2p", **(SKIPPED | {"why": "there is one GPU"}))
    assert "could not" not in limit(record(), skipped).sentence, "what does not apply is no fault"


def test_bf16_beside_others_work_is_not_emulated() -> None:
    fp16 = record(score=780.0, params=MM | {"dtype": "fp16"}, headline=False)
    unknown = (gpu(name="NVIDIA T9"),)  # no reference says that it is slow
    assert "emulated" in limit(record(score=100.0), fp16, gpus=unknown).sentence
    disturbed = limit(record(score=100.0, contended=True, contended_by=("train.py",)), fp16, gpus=unknown)
    assert "emulated" not in disturbed.sentence


@pytest.mark.parametrize(
    ("slow", "limited"),
    [
        (record(score=300.0), "compute"),
        (record("bench.mem", 2000.0, unit="GB/s", params={"operation": "copy", "data": "randn"}), "memory"),
        (record("bench.h2d", 12.0, unit="GB/s", params={"direction": "h2d", "memory": "pinned"}), "host-link"),
        (record("bench.launch", 40.0, unit="us", better="lower"), "cpu"),
        (record("bench.ddp", 9.0, unit="tokens/s", gpu=(0, 1), values={"efficiency": 0.4}), "interconnect"),
        (record("bench.attn", 20.0, params={"dtype": "bf16"}, values={"backends": ["math"]}), "software"),
    ],
)
def test_the_part_that_is_slow_is_named(slow: BenchRecord, limited: str) -> None:
    found = limit(*([] if slow.id == "bench.mm" else [record()]), slow, gpus=(gpu(), gpu(1)))
    assert found.limit == limited
    assert found.because


@pytest.mark.parametrize("disturbed", [{"noisy": True}, {"contended": True, "contended_by": ("train.py",)}])
def test_scaling_beside_a_doubtful_single_gpu_is_not_judged(disturbed: dict[str, Any]) -> None:
    """One GPU that others slowed down would make any number of them look well joined."""
    plain: dict[str, Any] = {"unit": "tokens/s", "params": {"how": "plain", "ranks": 1}, "headline": False}
    both = record("bench.ddp", 9.0, unit="tokens/s", gpu=(0, 1), params={"how": "ddp", "ranks": 2},
                  values={"efficiency": 0.99})  # fmt: skip
    two = (gpu(), gpu(1))
    sound = grade_run(run(record("bench.ddp", 4.6, **plain), both, gpus=two), lambda _: Peers())
    assert [each.level.value for each in sound.benchmarks[1].verdict.judgements] == ["ok"]
    assert claims_of(sound)[0].answer == "as-claimed"
    doubtful = grade_run(run(record("bench.ddp", 4.6, **plain, **disturbed), both, gpus=two), lambda _: Peers())
    assert not doubtful.benchmarks[1].verdict.judgements
    assert claims_of(doubtful)[0].answer == "unclear"


def test_a_wrong_result_comes_before_any_speed() -> None:
    wrong = record(**(SKIPPED | {"status": BenchStatus.WRONG, "why": "the product is off"}))
    found = limit(wrong, record("bench.mem", 200.0, unit="GB/s"))
    assert found.limit == "hardware"
    assert "mm" in found.sentence


def test_heat_is_named_when_it_lasts_and_not_when_it_is_a_moment() -> None:
    hot: dict[str, Any] = {"reasons": ("hw-thermal",), "reasons_share": {"hw-thermal": 0.6}}
    assert "heat limits this box" in limit(record(dev=(held(1200, **hot),))).sentence
    moment = hot | {"reasons_share": {"hw-thermal": 0.05}}
    assert "heat" not in limit(record(dev=(held(1755, **moment),))).sentence
    capped: dict[str, Any] = {"reasons": ("sw-power-cap",), "reasons_share": {"sw-power-cap": 1.0}}
    assert "power" not in limit(record(dev=(held(1500, **capped),))).sentence, "a power cap is how such cards work"


def test_a_lowered_power_limit_explains_slow_arithmetic() -> None:
    slow = record(score=300.0)
    lowered = limit(slow, gpus=(gpu(power_limit_w=350.0, power_default_w=700.0),))
    assert lowered.sentence.endswith("its power limit is 350 W, and it comes with 700 W.")
    assert "W" not in limit(slow, gpus=(gpu(power_limit_w=700.0, power_default_w=700.0),)).sentence


def test_a_governor_that_saves_power_explains_slow_launches() -> None:
    slow = record("bench.launch", 40.0, unit="us", better="lower")
    machine = BenchMachine(cpu="EPYC", governor="powersave", gpus=(gpu(),))
    assert limit(record(), slow, machine=machine).sentence.endswith("its governor is powersave.")


def test_what_spread_too_far_cannot_tell_a_limit() -> None:
    assert limit(record(noisy=True)).sentence == "It cannot be told: these results spread too far."
    assert "others used the GPU" in limit(record(contended=True)).sentence


def test_software_that_is_missing_is_named() -> None:
    no_compiler = record("bench.compile", **(SKIPPED | {"why": "the image has no compiler"}))
    assert limit(record(), no_compiler).sentence == "torch.compile does not work here: the image has no compiler."
    emulated = record(score=10.0), record(score=92.0, params=MM | {"dtype": "fp16"}, headline=False)
    found = limit(*emulated, gpus=(gpu(name="Tesla V100-SXM2-16GB"),))
    assert (found.limit, "emulated" in found.sentence) == ("software", True)


def test_nothing_measured_has_no_limit_and_nothing_to_compare_says_so() -> None:
    assert limit_of(run(record(**SKIPPED))) is None
    new = limit(record(), gpus=(gpu(name="NVIDIA Something New"),))
    assert (new.limit, new.sentence.split(":")[0]) == ("unknown", "It cannot be told")


def test_all_on_the_cpu_says_why() -> None:
    one = record(device="cpu", gpu=())
    here = run(one, gpus=())
    here = replace(here, environment=replace(here.environment, torch_cuda=None))
    found = limit_of(here)
    assert found is not None
    assert found.sentence == "All of it ran on the CPU: torch is a CPU build."


def claims(*records: BenchRecord) -> dict[str, tuple[str, str]]:
    return {claim.name: (claim.shown, claim.answer) for claim in claims_of(run(*records))}


def test_claims_become_numbers_of_this_machine() -> None:
    found = claims(
        trained("bf16", 170.0),
        trained("tf32", 140.0),
        trained("fp32", 100.0),
        record("bench.conv", 310.0, params={"precision": "bf16", "channels_last": True}),
        record("bench.conv", 250.0, params={"precision": "bf16", "channels_last": False}),
        record("bench.conv", 100.0, params={"precision": "fp32", "channels_last": False}),
        record("bench.compile", 1.14, unit="x", params={"case": "block"}),
        record("bench.ddp", 1.0, gpu=(0, 1), params={"ranks": 2}, values={"efficiency": 0.93}),
    )
    assert found == {
        "amp": ("1.70×", "as-claimed"),
        "amp-conv": ("2.50×", "more"),
        "compile": ("+14 %", "less"),
        "scaling": ("93 %", "as-claimed"),
    }
    (claim,) = claims_of(run(trained("bf16", 170.0), trained("tf32", 140.0), trained("fp32", 100.0)))
    assert claim.why == "bf16 beside fp32; beside tf32 1.21×"


def test_a_claim_that_was_not_measured_says_why() -> None:
    late = replace(trained("fp32", None), status=BenchStatus.SKIPPED, why="time: it would take 9 s")
    (claim,) = claims_of(run(trained("bf16", 170.0), late))
    assert (claim.shown, claim.answer, claim.why) == ("–", "not-measured", "time: it would take 9 s")
    assert claims_of(run(record())) == ()


def test_a_claim_by_doubtful_results_has_no_answer() -> None:
    (claim,) = claims_of(run(trained("bf16", 170.0, noisy=True), trained("fp32", 100.0)))
    assert (claim.shown, claim.answer, claim.why) == ("1.70×", "unclear", "bf16 beside fp32, noisy")


def test_results_of_another_size_are_not_set_beside_each_other() -> None:
    small = record("bench.train", 100.0, unit="tokens/s", params={"size": "S", "batch": 2, "precision": "fp32"})
    assert claims(trained("bf16", 170.0), small) == {"amp": ("–", "not-measured")}


def like(one: BenchRun, other: BenchRun) -> Likeness | None:
    return likeness(one.benchmarks[0], one, other.benchmarks[0], other)


def test_what_makes_two_results_comparable() -> None:
    here = run(record())
    assert like(here, run(record(score=1.0), run="bbbbbbbb")) is Likeness.STRICT
    assert like(here, with_torch(here, "2.9.1+cu128")) is Likeness.STRICT
    assert like(here, with_torch(here, "2.10.0+cu128")) is Likeness.HARDWARE
    unlike = [
        run(record(rev=2)),
        run(record(), gpus=(gpu(name="NVIDIA H100 80GB HBM3"),)),
        run(record(), gpus=(gpu(power_limit_w=500.0),)),
        run(record(), gpus=(gpu(ecc=False),)),
        run(record(), gpus=(gpu(mig=True),)),
        run(record(), gpus=(gpu(name=None),)),
        run(record(gpu=(0, 1)), gpus=(gpu(0), gpu(1))),
    ]
    assert [like(here, other) for other in unlike] == [Likeness.LOOSE] * len(unlike)
    assert like(here, run(record(params=MM | {"m": 4096}))) is None
    assert like(here, run(record("bench.mem"))) is None


def test_a_cpu_is_its_model_and_the_share_of_it() -> None:
    one = record(device="cpu", gpu=())
    key = result_key(one, run(one))
    assert key is not None
    less = run(one)
    assert result_key(one, replace(less, environment=replace(less.environment, cpu_quota=2.0))) != key


def row(before: BenchRun, after: BenchRun) -> tuple[Change, float | None, str]:
    (found,) = compare(before, after).rows
    return found.change, found.ratio, found.why


def test_changes_beyond_the_spread_are_told() -> None:
    assert row(run(record(score=100.0)), run(record(score=90.0)))[:2] == (Change.SLOWER, 0.9)
    assert row(run(record(score=100.0)), run(record(score=111.0)))[0] is Change.FASTER
    assert row(run(record(score=100.0)), run(record(score=99.0)))[0] is Change.SAME
    wide = record(score=93.0, stat={"riqr": 0.08})
    assert row(run(record(score=100.0)), run(wide))[0] is Change.SAME
    times = {"unit": "us", "better": "lower"}
    assert row(run(record(score=5.0, **times)), run(record(score=10.0, **times)))[:2] == (Change.SLOWER, 0.5)


@pytest.mark.parametrize(
    ("after", "why"),
    [
        (run(record(rev=2)), "the method has changed"),
        (run(record(), gpus=(gpu(power_limit_w=500.0),)), "not the same hardware"),
        (run(record(contended=True)), "others used the GPU in the second"),
        (run(record(noisy=True)), "the second spread too far"),
        (run(record(**(SKIPPED | {"why": "memory"}))), "the second is skipped: memory"),
    ],
)
def test_what_cannot_be_compared_says_why(after: BenchRun, why: str) -> None:
    assert row(run(record(score=100.0)), after)[::2] == (Change.UNKNOWN, why)


def test_what_only_one_run_has_and_what_else_differs() -> None:
    before, after = run(record()), with_torch(run(record("bench.mem", 1.0)), "2.10.0")
    found = compare(before, after)
    assert [each.why for each in found.rows] == ["only in the first run", "only in the second run"]
    assert [(each.name, each.first, each.second) for each in found.differences] == [("torch", "2.9.0+cu128", "2.10.0")]


def test_figures_have_the_digits_that_mean_something() -> None:
    assert [figure(each) for each in (787.234, 55.12, 4.2, 0.012345, 123456.7, 0, None, float("inf"))] == [
        "787", "55.1", "4.20", "0.0123", "123 457", "0", "–", "–",
    ]  # fmt: skip


def test_a_result_is_named_by_what_tells_it_from_others() -> None:
    assert words_of(record()) == "bf16 8192³"
    assert words_of(record(params=MM | {"m": 16384, "n": 4096, "k": 4096, "data": "zeros"})) == (
        "bf16 16384×4096×4096 data zeros"
    )
    assert words_of(record("bench.p2p", params={"from": 0, "to": 1, "bytes": 256 << 20}, gpu=(0, 1))) == "0→1 256 MiB"
    assert words_of(record(params={}, gpu=(3,))) == "GPU 3"
