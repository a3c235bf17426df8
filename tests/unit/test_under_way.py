"""What the lists say of checks, benchmarks, pulls and builds: which are under way on what, and what one of them saw."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuconsole.engine.model import Image
from gpuconsole.probes.records import CheckReport, CheckStatus, Environment, RunEnd, Verdict
from gpuconsole.services.checkruns import conclusion
from gpuconsole.services.images import ImageView, view_images
from gpuconsole.services.runs import Run, RunKind, RunState
from gpuconsole.services.seenimages import SeenImages
from gpuconsole.tui.present import image, imagedetails, run, top
from gpuconsole.tui.theme import ASCII, UNICODE

NOW = 1_800_000_000.0
ID = f"sha256:{'1' * 64}"
MADE = Image(ID, ("team/train:1",), architecture="amd64", os="linux")
MARKED = frozenset({RunKind.CHECK, RunKind.BENCH, RunKind.PULL, RunKind.BUILD})


def text_of(cells: tuple[object, ...]) -> str:
    return "".join(cell.text for cell in cells)  # type: ignore[attr-defined]


@pytest.mark.parametrize("chosen", ["containers", "runs"])
@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_the_tabs_count_what_is_under_way_and_are_silent_without(chosen: str, glyphs: object) -> None:
    counts = {"containers": 3, "images": 12, "processes": 4, "runs": 2}

    def shown(going: int) -> str:
        return text_of(
            top.tabs(counts, chosen, words="", marks=["mine"], width=80, going=going, glyphs=glyphs)  # type: ignore[arg-type]
        )

    assert glyphs.busy not in shown(0)  # type: ignore[attr-defined]
    assert f"{glyphs.busy}2" in shown(2)  # type: ignore[attr-defined]
    assert len(shown(2)) == 80
    assert shown(2).rstrip().endswith("mine")


@pytest.mark.parametrize("kind", list(RunKind))
@pytest.mark.parametrize("state", list(RunState))
def test_a_thing_is_marked_as_long_as_something_is_done_with_it(kind: RunKind, state: RunState) -> None:
    mine = Run("r", kind, "team/train:1", ID, NOW, state)
    going = run.under_way([mine])
    assert (going == {ID: mine}) == (state is RunState.RUNNING and kind in MARKED)
    for rings in (True, False):
        mark = run.mark(mine, UNICODE, rings=rings).text
        assert kind.value in mark
        assert UNICODE.busy in mark
        assert (UNICODE.ring in mark) == rings
        assert len(mark) <= 7 or kind not in MARKED


def test_of_several_the_one_that_runs_is_told_and_not_those_that_wait_for_it() -> None:
    first = Run("a", RunKind.CHECK, "train", "id", NOW - 9)
    waiting = Run("b", RunKind.BENCH, "train", "id", NOW - 5)
    assert run.under_way([waiting, first])["id"] is first
    pull = Run("c", RunKind.PULL, "team/train:1", "", NOW)
    assert run.under_way([pull]) == {"team/train:1": pull}


def checked(where: str, subject: str, subject_id: str, *, at: float) -> Run:
    environment = Environment(where=where, image_id=ID, torch="2.9.1+cu128", torch_cuda="12.8")
    report = CheckReport(RunEnd.COMPLETE, environment, (), Verdict(CheckStatus.OK, "Fit for training on 1 GPU."))
    state, headline, body = conclusion(report)
    return Run(f"r{at}", RunKind.CHECK, subject, subject_id, at - 5, state, at, headline, document=body)


def told(view: ImageView, *runs: Run) -> tuple[str, str]:
    """What the image's row has as its check, and what its page says."""
    mine = next((each for each in runs if each.subject_id == ID and each.ended), None)
    row = image.row(view, now=NOW, glyphs=UNICODE, check=mine)
    place = [column.key for column in image.COLUMNS].index("check")
    known = imagedetails.Known(now=NOW, glyphs=UNICODE, runs=runs)
    (field,) = (each for each in imagedetails.fields(view, known) if each.title == "check")
    return row.cells[place].text, "\n".join(text_of(line) for line in field.lines)


def test_an_image_known_by_a_check_in_a_container_says_so_and_one_checked_itself_speaks_for_itself() -> None:
    inside = checked("container llama-ft", "llama-ft", "c" * 64, at=NOW - 180)
    itself = checked("image team/train:1", "team/train:1", ID, at=NOW - 60)

    def view(*runs: Run) -> ImageView:
        return view_images([MADE], [], seen=SeenImages().of(runs))[0]

    cell, page = told(view())
    assert (cell, page) == ("", "not checked yet; c checks it")
    cell, page = told(view(inside), inside)
    assert cell == "seen"
    assert "container llama-ft" in page
    assert "3 min ago" in page
    assert "✓ ok" in page
    assert "not checked yet" not in page
    assert "c checks the image itself" in page
    cell, page = told(view(inside))  # the run is forgotten by now, what it saw is not
    assert cell == "seen"
    assert "a container of it" in page
    cell, page = told(view(inside, itself), inside, itself)
    assert cell == "✓ ok"
    assert "llama-ft" not in page
    begun = replace(itself, id="now", state=RunState.RUNNING, ended_at=None, headline="numerics", document=None)
    cell, page = told(view(inside), begun, inside)
    assert page.startswith("runs  numerics")
    assert "llama-ft" in page
