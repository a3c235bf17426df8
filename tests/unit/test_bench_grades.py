"""Grades of benchmarks: what a result is compared with, from which share on it is low or bad, what is not judged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuconsole.images import boards
from gpuconsole.probes import benchreference, benchsheets
from gpuconsole.probes.benchclaims import claims_of
from gpuconsole.probes.benchgrades import Peers, grade, grade_run
from gpuconsole.probes.benchlimits import limit_of
from gpuconsole.probes.benchrecords import BenchLevel, BenchRecord, BenchRun, Rule
from gpuconsole.probes.benchresults import BenchStatus
from gpuconsole.probes.benchshares import sources_of
from gpuconsole.probes.catalog import BENCHMARKS
from gpuconsole.services.benchstore import run_of
from tests.unit.benchmade import MM, SKIPPED, gpu, held, record, run

FIXTURES = Path(__file__).parent.parent / "fixtures"
UNKNOWN = (gpu(name="NVIDIA Something New"),)
"""A card without datasheet and reference."""


def graded(score: float, *, siblings: tuple[float, ...] = (), history: tuple[float, ...] = ()) -> BenchRecord:
    """A result on a card of which nothing is written."""
    one = record(score=score)
    return grade(one, run(one, gpus=UNKNOWN), Peers(siblings, history))


def on(name: str, **fields: Any) -> BenchRun:
    one = record(**fields)
    return grade_run(run(one, gpus=(gpu(name=name),)), lambda _: Peers())


@pytest.mark.parametrize(
    ("share", "siblings", "history"),
    [(1.0, "ok", "ok"), (0.96, "ok", "ok"), (0.94, "low", "low"), (0.91, "low", "low"), (0.89, "bad", "low"),
     (0.84, "bad", "bad"), (1.3, "ok", "ok")],
)  # fmt: skip
def test_levels_of_siblings_and_history(share: float, siblings: str, history: str) -> None:
    assert graded(100 * share, siblings=(100, 99, 101)).verdict.level == siblings
    assert graded(100 * share, history=(100, 100, 100, 90, 110)).verdict.level == history


def test_the_rule_stands_beside_the_grade() -> None:
    verdict = graded(80, history=(100, 101, 99)).verdict
    assert (verdict.level, verdict.rule) == (BenchLevel.BAD, Rule.HISTORY)
    assert verdict.words == "80 % of the median of your last 3 comparable runs (low below 95 %, bad below 85 %)"
    assert graded(80, siblings=(100,)).verdict.words.startswith("80 % of the sibling GPU (low below 95 %, bad below 90")


def test_only_the_last_five_make_the_past() -> None:
    assert graded(100, history=(100, 100, 100, 100, 100, 500, 500, 500)).share.history == 1.0


def test_the_worst_comparison_decides_and_of_equals_the_nearest() -> None:
    worst = graded(93, siblings=(93,), history=(100,)).verdict
    assert (worst.level, worst.rule) == (BenchLevel.LOW, Rule.HISTORY)
    equal = graded(100, siblings=(100,), history=(100,)).verdict
    assert (equal.level, equal.rule) == (BenchLevel.OK, Rule.SIBLINGS)
    assert [each.rule for each in equal.judgements] == [Rule.SIBLINGS, Rule.HISTORY]


def test_less_is_better_for_times() -> None:
    slow = record("bench.launch", 12.0, unit="us", better="lower", params={"operation": "launch"})
    assert grade(slow, run(slow), Peers(history=(6.0,))).share.history == 0.5


def test_without_anything_to_compare_there_is_no_grade() -> None:
    verdict = graded(100).verdict
    assert (verdict.level, verdict.rule, verdict.judgements) == (BenchLevel.NO_REFERENCE, None, ())


@pytest.mark.parametrize("disturbed", [{"noisy": True}, {"contended": True, "contended_by": ("python train.py",)}])
def test_what_was_disturbed_is_not_judged_and_judges_nothing(disturbed: dict[str, Any]) -> None:
    one = record(score=10.0, **disturbed)
    found = grade(one, run(one), Peers(siblings=(787,), history=(787,)))
    assert found.verdict.level is BenchLevel.NOISY
    assert found.verdict.words.startswith("not judged: ")
    assert not one.trusted
    two = replace(record(score=787.0), gpu=(1,))
    both = grade_run(run(one, two, gpus=(gpu(0), gpu(1))), lambda _: Peers())
    assert both.benchmarks[1].share.siblings is None


@pytest.mark.parametrize(
    ("stat", "words"),
    [
        ({"riqr": 0.19, "n": 900}, "its repeats spread by 19 %"),
        ({"riqr": 0.01, "n": 7}, "it was repeated only 7 times"),
        ({"riqr": 0.018, "n": 900}, "what it was measured beside spread too far"),
        ({}, "what it was measured beside spread too far"),
    ],
)
def test_the_reason_of_what_is_noisy_is_the_real_one(stat: dict[str, float], words: str) -> None:
    """A ratio is noisy when either side is: then a spread of its own of 2 % is no reason."""
    one = record(score=1.1, noisy=True, stat=stat)
    assert grade(one, run(one), Peers()).verdict.words == f"not judged: {words}"


@pytest.mark.parametrize("disturbed", [{"noisy": True}, {"contended": True}])
def test_a_doubtful_matrix_product_judges_no_training(disturbed: dict[str, Any]) -> None:
    """Half of its rate for others' work would make a slow training step look healthy."""
    trained = record("bench.train", 9.0, unit="tokens/s", params={"precision": "bf16"},
                     values={"model_tflop_per_s": 200.0})  # fmt: skip
    sound = grade_run(run(record(), trained), lambda _: Peers()).benchmarks[1]
    assert [each.rule for each in sound.verdict.judgements] == [Rule.HEALTHY]
    doubtful = run(record(score=390.0, **disturbed), trained)
    assert not grade_run(doubtful, lambda _: Peers()).benchmarks[1].verdict.judgements
    found = limit_of(grade_run(doubtful, lambda _: Peers()))
    assert found is not None
    assert "matrix product's rate" not in found.sentence


def test_siblings_of_one_run_judge_each_other() -> None:
    scores = (787.0, 785.0, 690.0)
    records = [replace(record(score=score), gpu=(position,)) for position, score in enumerate(scores)]
    found = grade_run(run(*records, gpus=tuple(gpu(position) for position in range(3))), lambda _: Peers())
    levels = [one.verdict.level for one in found.benchmarks]
    assert levels == [BenchLevel.OK, BenchLevel.OK, BenchLevel.BAD]
    other = grade_run(run(*records, gpus=(gpu(0), gpu(1), gpu(2, "NVIDIA L40S"))), lambda _: Peers())
    assert other.benchmarks[2].share.siblings is None, "another model is no sibling"


def test_a_healthy_h200_by_its_reference_its_datasheet_and_its_clock() -> None:
    one = record(score=671.0, dev=(held(1490),))
    (found,) = grade_run(run(one), lambda _: Peers()).benchmarks
    assert found.share.datasheet == pytest.approx(671 / 989.4, abs=1e-4)
    assert found.share.at_clock == pytest.approx(671 / (132 * 2048 * 2 * 1.490e-3), abs=1e-3)
    assert (found.verdict.level, found.verdict.rule) == (BenchLevel.OK, Rule.REFERENCE)
    assert found.verdict.words == "100 % of the reference 664–678 TFLOP/s (OWN) (low below 90 %, bad below 75 %)"


@pytest.mark.parametrize(("score", "level"), [(610, "ok"), (600, "low"), (510, "low"), (500, "bad")])
def test_levels_of_the_reference(score: float, level: str) -> None:
    (found,) = on("NVIDIA H200", score=float(score)).benchmarks
    assert found.verdict.level == level


@pytest.mark.parametrize(("score", "level"), [(640, "ok"), (590, "low"), (100, "low")])
def test_what_was_measured_in_another_way_makes_nothing_bad(score: float, level: str) -> None:
    (found,) = on("NVIDIA H100 80GB HBM3", score=float(score)).benchmarks
    assert (found.verdict.level, found.verdict.rule) == (level, Rule.REFERENCE)
    assert "784–798 TFLOP/s measured in another way (TPT, MLE) (low below 75 %)" in found.verdict.words


def test_a_quick_run_on_an_h200_as_it_was() -> None:
    """Recorded in a container, heated by random numbers to its power limit."""
    recorded = run_of(json.loads((FIXTURES / "bench/h200-quick.json").read_text()))
    whole = grade_run(recorded, lambda _: Peers())
    levels = {one.verdict.level for one in whole.benchmarks}
    assert levels == {BenchLevel.OK, BenchLevel.NO_REFERENCE, BenchLevel.NOISY, BenchLevel.SKIPPED}
    shares = {one.id: one.share for one in whole.benchmarks if one.headline}
    assert shares["bench.mm"].datasheet == pytest.approx(0.685, abs=1e-3)
    assert shares["bench.mm"].at_clock == pytest.approx(0.840, abs=1e-3)
    assert shares["bench.mem"].datasheet == pytest.approx(0.912, abs=1e-3)
    assert shares["bench.train"].datasheet == pytest.approx(0.354, abs=1e-3)
    found = limit_of(whole)
    assert found is not None
    assert found.sentence == (
        "Nothing stands out: the GPU itself is the limit, at its power limit of 700 W (1492 of 1980 MHz);"
        " a training step does 52 % of its matrix product's rate."
    )
    (claim,) = claims_of(whole)
    assert claim.why == "time: it would take 2 s, and 0 s are left; bf16 beside tf32 2.28×"


def test_two_h200_beside_each_other_as_they_were() -> None:
    """Recorded in a container with both: copies, collectives and scaling, beside what NVLink carries."""
    recorded = run_of(json.loads((FIXTURES / "bench/h200-x2.json").read_text()))
    whole = grade_run(recorded, lambda _: Peers())
    assert all(one.verdict.level not in (BenchLevel.LOW, BenchLevel.BAD) for one in whole.benchmarks)
    by_size = {
        one.params["bytes"]: one for one in whole.benchmarks
        if one.id == "bench.allreduce" and (one.params["operation"], one.params["dtype"]) == ("all_reduce", "fp32")
    }  # fmt: skip
    assert by_size[1 << 30].verdict.words == "73 % of 450 GB/s of NVLink one way (low below 65 %)"
    assert by_size[1 << 26].verdict.level is BenchLevel.NO_REFERENCE
    (pair,) = [one for one in whole.benchmarks if one.id == "bench.p2p" and one.headline]
    assert "86 % of 450 GB/s of NVLink one way (low below 80 %)" in [each.words for each in pair.verdict.judgements]
    (scaling,) = [claim for claim in claims_of(whole) if claim.name == "scaling"]
    assert scaling.shown == "92 %"
    # Where a pair does not reach the other directly, NVLink says nothing of what is between them.
    apart = replace(whole, benchmarks=tuple(
        replace(one, values={**one.values, "pairs_direct": 0}) if "pairs" in one.values else one
        for one in whole.benchmarks
    ))  # fmt: skip
    again = grade_run(apart, lambda _: Peers())
    assert not any("NVLink" in each.words for one in again.benchmarks for each in one.verdict.judgements)


@pytest.mark.parametrize("name", ["h200-full", "h200-quick-again"])
def test_whole_runs_on_an_h200_as_they_were(name: str) -> None:
    """Nothing of a healthy card is low, whatever it is compared with."""
    whole = grade_run(run_of(json.loads((FIXTURES / f"bench/{name}.json").read_text())), lambda _: Peers())
    measured = {one.id for one in whole.benchmarks if one.status == "ok"}
    full = {"bench.conv", "bench.compile", "bench.soak"}
    assert (full <= measured) is (name == "h200-full")
    low = {
        (one.id, one.verdict.rule) for one in whole.benchmarks if one.verdict.level in (BenchLevel.LOW, BenchLevel.BAD)
    }
    assert low == set()


def test_a_slice_of_a_gpu_has_no_datasheet_and_no_reference() -> None:
    one = record(dev=(held(1755),))
    (found,) = grade_run(run(one, gpus=(gpu(mig=True),)), lambda _: Peers()).benchmarks
    assert (found.share.datasheet, found.share.at_clock, found.share.reference) == (None, None, None)
    assert found.verdict.level is BenchLevel.NO_REFERENCE


def test_zeros_have_no_reference() -> None:
    (found,) = on("NVIDIA H200", params=MM | {"data": "zeros"}).benchmarks
    assert found.share.reference is None


@pytest.mark.parametrize("status", [BenchStatus.SKIPPED, BenchStatus.TIMEOUT, BenchStatus.ERROR, BenchStatus.WRONG])
def test_what_was_not_measured_has_its_reason_as_its_grade(status: BenchStatus) -> None:
    one = record(**(SKIPPED | {"status": status, "why": "no room"}))
    verdict = grade(one, run(one), Peers(history=(1.0,))).verdict
    assert (verdict.level.value, verdict.words) == (status.value, "no room")


def test_ranges_nobody_has_measured_make_a_result_low_and_never_bad() -> None:
    slow = [
        record(score=100.0),
        record("bench.mem", 400.0, unit="GB/s", params={"operation": "triad"}),
        record("bench.h2d", 4.0, unit="GB/s", params={}),
        record("bench.launch", 300.0, unit="us", better="lower"),
        record("bench.attn", 5.0, params={"dtype": "bf16"}),
        record("bench.compile", 0.5, unit="x"),
        record("bench.soak", 600.0, params={"dtype": "bf16"}, values={"last_over_first": 0.7}),
        record("bench.ddp", 100.0, unit="tokens/s", gpu=(0, 1), values={"efficiency": 0.1}),
    ]
    found = grade_run(run(*slow, gpus=(gpu(name="NVIDIA A800"), gpu(1, "NVIDIA A800"))), lambda _: Peers())
    judged = [one.verdict for one in found.benchmarks if one.verdict.judgements]
    assert len(judged) >= 5
    assert {verdict.level for verdict in judged} == {BenchLevel.LOW}


def test_a_narrow_slot_is_told() -> None:
    one = record("bench.h2d", 13.0, unit="GB/s", params={"direction": "h2d"})
    (found,) = grade_run(run(one, gpus=(gpu(pcie_width=8),)), lambda _: Peers()).benchmarks
    words = [each.words for each in found.verdict.judgements]
    assert "the link is PCIe 5 ×8 under load, the card can do PCIe 5 ×16" in words


@pytest.mark.parametrize(
    ("name", "board", "bf16"),
    [("NVIDIA H200", "H200 SXM", 989.4), ("NVIDIA H200 NVL", "H200 NVL", 835.5), ("NVIDIA H20", "H20", 148.0),
     ("NVIDIA A100-SXM4-80GB", "A100 SXM 80GB", 312.0), ("NVIDIA GeForce RTX 4090", "RTX 4090", 165.2),
     ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "RTX PRO 6000 Blackwell Workstation", 503.8)],
)  # fmt: skip
def test_the_exact_name_chooses_the_datasheet(name: str, board: str, bf16: float) -> None:
    sheet = benchsheets.datasheet(name)
    assert sheet is not None
    assert (sheet.name, sheet.rates["bf16"].value) == (board, bf16)
    assert "; " in sheet.rates["bf16"].evidence
    assert sheet.rates["bf16"].source
    one = record()
    places = sources_of(one, (gpu(name=name),))
    assert places
    assert all(len(place) > 10 for place in places.values())


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA GeForce RTX 3080 Ti Laptop GPU",
        "NVIDIA H2000",
        "",
        None,
        "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
    ],
)
def test_no_datasheet_is_invented(name: str | None) -> None:
    assert benchsheets.datasheet(name) is None


def test_a_figure_without_evidence_is_left_out() -> None:
    sheet = benchsheets.datasheet("NVIDIA H200 NVL")
    assert sheet is not None
    assert "tf32" not in sheet.rates


@pytest.mark.parametrize(
    ("name", "multiprocessors", "mhz"),
    [("NVIDIA H200", 132, 1830), ("NVIDIA A100-SXM4-80GB", 108, 1410), ("NVIDIA L40S", 142, 2490),
     ("NVIDIA GeForce RTX 3090", 82, 1695), ("NVIDIA GeForce RTX 4090", 128, 2520),
     ("NVIDIA GeForce RTX 5090", 170, 2407), ("NVIDIA RTX A6000", 84, 1800)],
)  # fmt: skip
def test_the_rate_at_the_boost_clock_is_the_datasheets(name: str, multiprocessors: int, mhz: float) -> None:
    sheet = benchsheets.datasheet(name)
    assert sheet is not None
    for dtype in ("bf16", "fp16", "tf32", "fp8"):
        if dtype in sheet.rates:
            rate = benchsheets.rate_at_clock(name, dtype=dtype, multiprocessors=multiprocessors, mhz=mhz)
            assert rate == pytest.approx(sheet.rates[dtype].value, rel=0.02), dtype


def test_every_reference_names_a_board_a_known_source_and_a_benchmark() -> None:
    known = {one.id for one in BENCHMARKS}
    for row in benchreference.references():
        assert row.bench in known
        assert bool(row.boards) != bool(row.link)
        assert 0 < row.low <= row.high
        assert set(row.source) <= set(benchreference.sources())
        assert all(board in boards.names() for board in row.boards), row.boards
