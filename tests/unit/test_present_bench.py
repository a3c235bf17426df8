"""Benchmarks as rows: what limits the box first, every share named, nothing wider than the window."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from rich.cells import cell_len

from gpuconsole.probes.benchrecords import BenchLevel, BenchRun, Rule
from gpuconsole.probes.benchresults import BenchResult, BenchStatus, Measured
from gpuconsole.probes.records import CheckResult, CheckStatus, Progress, RunEnd, Started
from gpuconsole.services.benchhistory import past_of
from gpuconsole.services.benchstore import BenchStore
from gpuconsole.services.benchtargets import BenchTarget
from gpuconsole.services.probelive import Live, LiveProbe
from gpuconsole.services.runs import Run, RunKind, RunState
from gpuconsole.tui.present import bench, benchask, benchbrief, benchpast, details, rundetails
from gpuconsole.tui.present import run as run_rows
from gpuconsole.tui.present.details import Line
from gpuconsole.tui.theme import ASCII, UNICODE, Glyphs
from tests.tui import benchseen

NOW = 1_800_000_000.0
UUID = "GPU-a0000001-0000-4000-8000-00000000000a"
WIDTHS = (79, 119, 199)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[BenchRun, ...]]:
    """Three alike, and one that is slow."""
    store = BenchStore(path=tmp_path_factory.mktemp("bench") / "bench.db")
    yield benchseen.made(NOW, speeds=(1.0, 0.99, 1.01, 0.8), uuid=UUID, store=store)
    store.close()


def text_of(lines: list[Line]) -> str:
    return "\n".join("".join(cell.text for cell in line).rstrip() for line in lines)


def words_of(lines: list[Line]) -> str:
    return " ".join(text_of(lines).split())


def fits(lines: list[Line], width: int) -> bool:
    return all(sum(cell_len(cell.text) for cell in line) <= width for line in lines)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_a_run_fits_its_window_and_says_what_limits_the_box_first(
    runs: tuple[BenchRun, ...], width: int, glyphs: Glyphs
) -> None:
    for run in runs:
        lines = bench.ended(run, glyphs, width=width)
        assert fits(lines, width)
        assert run.headline is not None
        assert words_of(lines).startswith(run.headline.sentence)
        assert ("8192^3" in text_of(lines)) is (glyphs is ASCII)  # without its exponent it is another number


def test_each_share_is_named_and_the_rule_shown(runs: tuple[BenchRun, ...]) -> None:
    first, last = text_of(bench.ended(runs[0], UNICODE, width=119)), text_of(bench.ended(runs[-1], UNICODE, width=119))
    (row,) = (line for line in first.splitlines() if "B01 mm bf16" in line)
    assert "✓ ok" in row
    assert "101 % reference" in row
    (row,) = (line for line in last.splitlines() if "B01 mm bf16" in line)
    assert "✖ bad" in row
    assert "80 % history" in row
    assert row.split()[-2:] == ["67", "%"]  # at the clock it held, in a column of its own
    assert "median of your last 3 comparable runs (low below" in " ".join(last.split())
    attention = next(line for line in first.splitlines() if "B05 attn" in line)
    assert "own mm" in attention
    assert "What people read, and what it is here" in first
    assert "held down by sw-power-cap" in first


def test_noisy_and_disturbed_results_are_marked(runs: tuple[BenchRun, ...]) -> None:
    record = next(one for one in runs[0].benchmarks if one.verdict.level is BenchLevel.NOISY)
    assert bench.grade_cell(record, UNICODE).text == "◆ noisy"
    assert bench.grade_cell(replace(record, contended=True), UNICODE).text == "◆ disturbed"


def test_every_grade_has_a_word_and_a_sign(runs: tuple[BenchRun, ...]) -> None:
    record = runs[0].benchmarks[0]
    for level in BenchLevel:
        cell = bench.grade_cell(replace(record, verdict=replace(record.verdict, level=level)), ASCII)
        sign, word = cell.text.split(" ", 1)
        assert sign.isascii()
        assert word
    for rule in Rule:
        judgement = replace(record.verdict.judgements[0], rule=rule, share=0.5)
        share, of = bench.share_of(replace(record, verdict=replace(record.verdict, rule=rule, judgements=(judgement,))))
        assert share == 0.5
        assert of


def test_one_reason_for_all_stands_once(runs: tuple[BenchRun, ...]) -> None:
    why = "torch is a CPU build"
    failed = tuple(
        replace(one, status=BenchStatus.ERROR, score=None, why=why, fix="Take another image.",
                verdict=replace(one.verdict, level=BenchLevel.ERROR, words=why, rule=None, judgements=()))
        for one in runs[0].benchmarks
    )  # fmt: skip
    text = words_of(bench.ended(replace(runs[0], benchmarks=failed, headline=None), UNICODE, width=79))
    assert text.startswith(f"Nothing was measured: {why}.")
    assert text.count("Take another image.") == 1


def going() -> LiveProbe:
    """A run that is at its second benchmark."""
    live = LiveProbe(lambda: NOW, mode="quick", budgets=lambda plan: dict.fromkeys(plan, 10.0))
    live.add(Started(("bench.mm", "bench.mem", "bench.launch"), "python3"))
    live.add(Progress("bench.mm", 1, 3, "bf16"))
    live.add(BenchResult("bench.mm", "B01", BenchStatus.OK, device="cuda", gpu=(0,), unit="TFLOP/s", score=678.0))
    live.add(Measured("bench.mm"))
    live.add(Progress("bench.mem", 2, 3, "copy \x1b[31m[bold]"))
    return live


def test_a_run_under_way_tells_where_it_is_and_how_long_it_takes() -> None:
    now = going().now
    assert now.left_s(NOW) == pytest.approx(20)
    assert now.left_s(NOW + 4) == pytest.approx(16)
    assert now.left_s(NOW + 60) == pytest.approx(10)  # late, and the one to come still takes its time
    for width in WIDTHS:
        assert fits(bench.going(now, UNICODE, now=NOW, width=width, progress=1 / 3), width)
    text = words_of(bench.going(now, UNICODE, now=NOW, width=79, progress=1 / 3))
    assert "33% 1 of 3 done, about 20 s left" in text
    assert "mm [mem] launch" in text
    assert "mem 2/3: copy" in text
    assert "\x1b" not in text
    assert "678 TFLOP/s" in text
    assert "no ref." not in text  # it is not graded yet
    assert Live().left_s(NOW) is None


def test_the_row_of_a_run_says_the_time_left_and_where_it_is() -> None:
    run, live = Run("1", RunKind.BENCH, "llama-ft", "", NOW - 5, headline="mem: copy", progress=0.3), going().now
    row = run_rows.row(run, now=NOW, glyphs=UNICODE, live=live)
    assert row.cells[-1].text == "20 s left · 2/3 mem: copy"
    ended = replace(run, state=RunState.OK, ended_at=NOW, progress=None, headline="All is well.")
    assert run_rows.row(ended, now=NOW, glyphs=UNICODE, live=live).cells[-1].text == "All is well."
    waiting = replace(run, headline="waits for the bench of a")
    assert run_rows.row(waiting, now=NOW, glyphs=UNICODE, live=Live()).cells[-1].text == waiting.headline


@pytest.mark.parametrize("width", WIDTHS)
def test_two_runs_beside_each_other(runs: tuple[BenchRun, ...], width: int) -> None:
    lines = benchpast.comparison(runs[0], runs[-1], UNICODE, width=width, everything=True)
    assert fits(lines, width)
    text = " ".join(text_of(lines).split())
    assert "0.80× ▲ slower" in text
    assert "1.00× = same" in text
    assert "the first spread too far" in text
    some = benchpast.comparison(runs[0], runs[-1], UNICODE, width=width, everything=False)
    assert len(some) < len(lines)
    assert "further results" in words_of(some)


def test_the_nearest_run_is_one_that_can_be_compared(runs: tuple[BenchRun, ...]) -> None:
    other = tuple(replace(gpu, name="NVIDIA B200") for gpu in runs[2].machine.gpus)
    strange = replace(runs[2], run="strange", machine=replace(runs[2].machine, gpus=other))
    found = benchpast.nearest((*runs[:2], strange, runs[3]), runs[3])
    assert found is not None
    assert found.run == runs[1].run
    assert benchpast.nearest((runs[3],), runs[3]) is None
    unlike = benchpast.comparison(strange, runs[3], UNICODE, width=79, everything=False)
    assert "not the same hardware" in words_of(unlike)
    assert "NVIDIA B200" in words_of(unlike)
    rows = benchpast.pick_rows((strange, replace(runs[0], end=RunEnd.CANCELLED)), runs[3])
    assert [row.key for row in rows] == ["strange", runs[0].run]
    assert [row.cells[-2].text for row in rows] == ["none", "29"]
    assert [row.cells[-1].text for row in rows] == ["", "cut short"]
    alone = benchpast.nearest((strange, runs[3]), runs[3])
    assert alone is strange  # there is no better one, and the notes say why it is none


@pytest.mark.parametrize("width", WIDTHS)
def test_the_past_of_a_gpu(runs: tuple[BenchRun, ...], width: int) -> None:
    found = past_of(runs, [UUID])
    lines = benchpast.history(found, UNICODE, width=width)
    assert fits(lines, width)
    text = text_of(lines)
    assert text.index("542 TFLOP/s") < text.index("684 TFLOP/s")  # the newest first
    assert "-20.8 %" in text
    assert "bad" in text
    assert not past_of(runs, ["GPU-other"])
    on_cpu = replace(runs[0], benchmarks=tuple(replace(one, gpu=(), device="cpu") for one in runs[0].benchmarks))
    assert {past.id for past in past_of([on_cpu], ["GPU-other"], cpu={"bench.loader"})} == {"bench.loader"}


def test_the_field_of_a_gpu(runs: tuple[BenchRun, ...]) -> None:
    field = benchpast.past_field(past_of(runs, [UUID]), UNICODE, past_key="h", bench_key="b")
    text = text_of(details.laid_out([field], 79))
    assert "542 TFLOP/s" in text
    assert "h shows them over time" in text
    assert "b measures it" in text_of(
        details.laid_out([benchpast.past_field((), UNICODE, past_key="h", bench_key="b")], 79)
    )


def test_the_last_verdict_stands_beside_its_container_and_no_other(runs: tuple[BenchRun, ...]) -> None:
    listed = [benchseen.listed(run) for run in reversed(runs)]

    def told(subject_id: str, *more: Run) -> str:
        field = benchbrief.bench_field([*more, *listed], subject_id, now=NOW, glyphs=UNICODE, action="container.bench")
        return words_of(details.laid_out([field], 79))

    mine = told(runs[0].subject_id)
    assert "✖ failed" in mine
    assert "bad mm bf16 8192³: 80 %" in mine
    assert "not measured yet; b measures it" in told("other")
    under_way = Run("9", RunKind.BENCH, "llama-ft", runs[0].subject_id, NOW, headline="mm: bf16", progress=0.5)
    assert "runs 50% mm: bf16" in told(runs[0].subject_id, under_way)
    dropped = replace(under_way, state=RunState.CANCELLED, ended_at=NOW, headline="Cancelled before its turn.")
    assert told(runs[0].subject_id, dropped) == mine
    assert "Cancelled before its turn." in told("other", replace(dropped, subject_id="other"))


UNREADABLE = (
    None,
    "{",
    "[]",
    '{"benchmarks": 3}',
    '{"benchmarks": [3, {"id": null}]}',
    '{"benchmarks": [{"id": "bench.x", "level": "newer", "score": "much"}]}',
)


@pytest.mark.parametrize("document", UNREADABLE)
def test_a_summary_that_cannot_be_read_is_borne(document: str | None) -> None:
    run = Run("1", RunKind.BENCH, "x", "id", NOW, RunState.WARN, NOW, "[/red] It went.", document=document)
    for width in (40, 79):
        assert fits(details.laid_out(rundetails.fields(run, now=NOW, glyphs=UNICODE), width), width)
    assert details.laid_out([benchbrief.bench_field([run], "id", now=NOW, glyphs=UNICODE, action="image.bench")], 79)


TARGETS = tuple(BenchTarget(f"GPU {place} H200", "free; in a fresh container") for place in range(12))


def test_the_chosen_target_is_always_seen_and_the_rest_counted() -> None:
    for chosen in range(len(TARGETS)):
        lines = benchask.targets(TARGETS, chosen, width=60, glyphs=UNICODE)
        assert fits(lines, 60)
        (marked,) = (line for line in text_of(lines).splitlines() if line.startswith("▸"))
        assert f"GPU {chosen} " in marked
        assert "and 5 more" in text_of(lines)
    assert "▸" not in text_of(benchask.targets(TARGETS[:1], 0, width=60, glyphs=UNICODE))


def test_what_would_run_is_told_before() -> None:
    assert "60 s at most" in words_of(benchask.plan("", TARGETS[0], width=60))
    assert "mm mem; 60 s" in words_of(benchask.plan("B02, mm", TARGETS[0], width=60))
    wrong = words_of(benchask.plan("nonsense", TARGETS[0], width=60))
    assert "There is no benchmark nonsense." in wrong
    assert "B01 mm" in wrong
    assert "Others hold the GPU" in words_of(benchask.plan("", replace(TARGETS[0], shared=True), width=60))
    assert benchask.wish("mm mem", full=True).only == ("mm", "mem")


def test_checks_stand_in_the_order_of_what_is_to_be_done() -> None:
    states = ("ok", "skip", "fail", "warn", "ok")
    told = [
        {"id": f"check.c{place}", "status": state, "why": f"why {place}", "fix": "Do it." if state == "fail" else ""}
        for place, state in enumerate(states)
    ]
    report = {"checks": told}
    run = Run("1", RunKind.CHECK, "x", "id", NOW, RunState.FAILED, NOW, "Not fit.", document=json.dumps(report))
    text = text_of(details.laid_out(rundetails.fields(run, now=NOW, glyphs=UNICODE), 79))
    assert [word for word in text.split() if word in ("c0", "c1", "c2", "c3", "c4")] == ["c2", "c3", "c0", "c4", "c1"]
    assert "1 failed, 1 warned, 2 ok, 1 skipped" in text
    assert "→ Do it." in text


def test_checks_under_way_are_told_one_by_one() -> None:
    live = LiveProbe(lambda: NOW)
    live.add(Started(("check.torch", "check.shm", "check.amp"), "python3"))
    live.add(CheckResult("check.torch", "C01", CheckStatus.FAIL, why="no torch", fix="Install it."))
    live.add(Progress("check.shm", 2, 3, "writes"))
    run = Run("1", RunKind.CHECK, "x", "id", NOW, headline="shm: writes", progress=1 / 3)
    text = text_of(details.laid_out(rundetails.fields(run, now=NOW, glyphs=UNICODE, live=live.now), 79))
    assert "✖ fail torch" in text
    assert "1 to come: amp; x ends the check" in text


def test_a_run_that_was_cut_short_says_so_first(runs: tuple[BenchRun, ...]) -> None:
    cut = replace(runs[0], end=RunEnd.CANCELLED)
    assert words_of(bench.ended(cut, UNICODE, width=79)).startswith("Cancelled before its end.")
