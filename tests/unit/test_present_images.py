"""Images as the console shows them: rows, verdicts, what could be pulled, what a prune takes, what a build comes to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuconsole.core.errors import UsageError
from gpuconsole.engine.model import Image, ImageStep, PullProgress
from gpuconsole.gpu.model import Gpu, GpuSnapshot
from gpuconsole.host.model import GpuView, HostView
from gpuconsole.images.catalog import Catalog, CatalogImage
from gpuconsole.images.pins import Pin
from gpuconsole.images.verdict import GpuTraits, HostTraits
from gpuconsole.services.buildorders import choose
from gpuconsole.services.catalog import CatalogView, catalog_marks, view_catalog
from gpuconsole.services.imagebuilds import ordered
from gpuconsole.services.imagenews import _depends_on
from gpuconsole.services.imageremoval import Kept, Need, Removal
from gpuconsole.services.images import ImageView, view_images
from gpuconsole.services.lockfile import LockFile
from gpuconsole.services.pulling import PullState
from gpuconsole.services.pullwish import as_pinned
from gpuconsole.services.runs import Run, RunKind, RunState
from gpuconsole.services.shelf import Hold, Shelf
from gpuconsole.tui.present import (
    buildform,
    catalogdetails,
    image,
    imagedetails,
    launchtext,
    pruning,
    pullable,
    rundetails,
    verdict,
)
from gpuconsole.tui.present import run as runs
from gpuconsole.tui.theme import ASCII, UNICODE

NOW = 1_800_000_000.0
GIB = 2**30
DAY = "pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime"
H200 = GpuTraits("GPU 0 (NVIDIA H200)", name="NVIDIA H200", capability=(9, 0))
V100 = GpuTraits("GPU 1 (Tesla V100)", name="Tesla V100", capability=(7, 0))
HOST = HostTraits(driver="580.95.05", cuda="13.0", architecture="amd64", gpus=(H200,), checks_demands=False)
LOCK = Hold(DAY, "./gpuconsole.lock", own=True)


def entry(reference: str = DAY, **given: Any) -> CatalogImage:
    return CatalogImage(reference, **{"platforms": ("linux/amd64",), "torch": "2.9.1", "cuda": "12.8"} | given)


def listed(*entries: CatalogImage, host: HostTraits = HOST) -> tuple[CatalogView, ...]:
    return view_catalog(Catalog(entries), host)


def local(*tags: str, host: HostTraits | None = HOST, **given: Any) -> ImageView:
    made = Image(f"sha256:{'1' * 64}", tags, **{"architecture": "amd64", "os": "linux"} | given)
    return view_images([made], [], host)[0]


def text_of(fields: Any) -> str:
    return "\n".join(f"{each.title} " + "".join(cell.text for cell in line) for each in fields for line in each.lines)


def cells(row: Any) -> dict[str, str]:
    return {column.key: cell.text for column, cell in zip(image.COLUMNS, row.cells, strict=True)}


def test_what_is_not_here_is_marked_by_a_sign_and_not_by_its_colour_alone() -> None:
    (view,) = listed(entry(sizes={"linux/amd64": 3 * GIB, "linux/arm64": 2 * GIB}))
    shown = cells(image.catalog_row(view, glyphs=UNICODE, architecture="x86_64", brief=True))
    assert shown["name"] == "↓ pytorch 2.9.1-cu128"
    assert shown["here"] == "✓ runs"
    assert shown["size"] == "↓3.0 G"
    assert cells(image.catalog_row(view, glyphs=ASCII))["name"] == f"v {DAY}"
    assert cells(image.catalog_row(replace(view, image=entry(gone=True)), glyphs=UNICODE))["used"] == "gone"


def test_a_local_image_tells_its_pin_its_users_and_why() -> None:
    view = replace(local("team/train:1", size_bytes=GIB), used_by=("a", "b"))
    shown = cells(image.row(view, now=NOW, glyphs=UNICODE, holds=(LOCK,)))
    assert (shown["pin"], shown["used"], shown["here"]) == ("✓", "2 a, b", "? unknown")
    assert "not known" in shown["why"]
    unjudged = cells(image.row(local("team/train:1", host=None), now=NOW, glyphs=UNICODE))
    assert (unjudged["here"], unjudged["why"], unjudged["pin"]) == ("–", "", "")
    nameless = local(digests=(f"team/train@sha256:{'a' * 64}",))
    assert cells(image.row(nameless, now=NOW, glyphs=UNICODE))["name"] == "team/train@" + "a" * 12


@given(st.text(), st.text(), st.one_of(st.none(), st.integers(min_value=0)))
def test_any_image_makes_a_row_and_a_page(tag: str, version: str, size: int | None) -> None:
    view = local(tag, size_bytes=size, environment=(("PYTORCH_VERSION", version), ("CUDA_VERSION", version)))
    assert len(image.row(view, now=NOW, glyphs=UNICODE, brief=True).cells) == len(image.COLUMNS)
    steps = (ImageStep(version, size), ImageStep(tag, None))
    known = imagedetails.Known(now=NOW, glyphs=UNICODE, holds=(LOCK,), steps=steps)
    assert "runs here" in text_of(imagedetails.fields(view, known))
    image.matches(view, [tag.lower()])
    pullable.known(tag, Shelf(listed(entry())), UNICODE, width=40)


def test_only_what_is_known_to_run_fits() -> None:
    words = {view.image.reference: view for view in listed(
        entry(), entry("team/old:1", torch="2.0.1", cuda="11.7"), entry("team/what:1", torch=None, cuda=None),
        entry("team/new:1", torch="2.14.1", cuda="13.2"),
    )}  # fmt: skip
    assert [verdict.fits(words[name].verdict) for name in (DAY, "team/old:1", "team/what:1", "team/new:1")] == [
        True, False, False, True,
    ]  # fmt: skip
    assert not verdict.fits(None)


def test_a_box_with_two_kinds_of_gpus_has_a_verdict_for_each() -> None:
    host = replace(HOST, gpus=(H200, V100, replace(H200, label="GPU 2 (NVIDIA H200)")))
    (view,) = listed(entry("pytorch/pytorch:2.14.1-cuda13.0-cudnn9-runtime", torch="2.14.1", cuda="13.0"), host=host)
    told = text_of(catalogdetails.fields(view, now=NOW, glyphs=UNICODE))
    assert "✓ runs  on GPUs 0 2 (NVIDIA H200)" in told
    assert "✖ will not run  on GPU 1 (Tesla V100)" in told
    assert "its torch has no code for compute capability 7.0" in told
    assert "not on this machine; p pulls it" in told


def test_layers_are_told_with_sizes_and_no_secrets() -> None:
    steps = (
        ImageStep("/bin/sh -c #(nop)  CMD [\"bash\"]", 0),
        ImageStep("RUN /bin/sh -c pip install --index-url https://me:hunter2@mirror/ torch # buildkit", 5 * GIB),
    )  # fmt: skip
    known = imagedetails.Known(now=NOW, glyphs=UNICODE, steps=steps)
    told = text_of(imagedetails.fields(local("a:1"), known))
    assert "5 GiB  RUN" in told
    assert "and 1 steps without files" in told
    assert "hunter2" not in told
    assert "layers" not in text_of(imagedetails.fields(local("a:1"), replace(known, steps=None)))


def test_what_stands_first_when_a_name_is_completed() -> None:
    shelf = Shelf(
        listed(entry("team/old:1", torch="2.0.1", cuda="11.7"), entry()),
        {"x": (Hold("team/mine:3", "lock", own=True),)},
    )
    found = pullable.choices("", shelf, [local("team/here:1"), local(DAY)], UNICODE)
    assert found == [
        ("team/mine:3", "pinned"), (DAY, "✓ runs"), ("team/old:1", "✖ will not run"), ("team/here:1", "is here"),
    ]  # fmt: skip
    assert pullable.choices("old team", shelf, [], UNICODE) == [("team/old:1", "✖ will not run")]
    assert pullable.choices("", None, [], UNICODE) == []


def test_the_launch_form_offers_what_could_be_pulled_after_what_is_here() -> None:
    old = entry("team/old:1", torch="2.0.1", cuda="11.7")
    shelf = Shelf(listed(old, entry(recommended=True)))
    bad = local("pytorch/pytorch:2.0.1-cuda11.7-cudnn8-runtime", size_bytes=GIB)
    found = list(launchtext.image_choices([bad], "", now=NOW, shelf=shelf))
    assert [name for name, _ in found] == [bad.image.name, DAY]
    assert found[0][1].startswith("✖ will not run, torch 2.0.1")
    assert found[1][1] == "✓ runs, to pull"
    assert dict(launchtext.image_choices([bad], "old", now=NOW, shelf=shelf)) == {
        "team/old:1": "✖ will not run, to pull"
    }
    assert [name for name, _ in launchtext.image_choices([bad], "", now=NOW)] == [bad.image.name]


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("", "can be pulled too"),
        ("No Name", "Not a whole reference yet"),
        ("team/own:1", "The catalog does not know it"),
        (DAY, "✓ runs"),
        ("docker.io/" + DAY, "✓ runs"),
    ],
)
def test_what_was_typed_is_judged(typed: str, told: str) -> None:
    lines = pullable.known(typed, Shelf(listed(entry())), UNICODE, width=70)
    assert told in "".join(cell.text for line in lines for cell in line)


def test_a_prune_leaves_named_images_unless_they_are_wanted_too() -> None:
    nameless = Removal(Image("sha256:" + "7" * 64, size_bytes=2 * GIB), (), True)
    named = Removal(Image("sha256:" + "8" * 64, ("a:1",), size_bytes=GIB), ("a:1",), True)
    assert pruning.chosen((nameless, named), named=False) == (nameless,)
    assert pruning.total(pruning.chosen((nameless, named), named=True)).startswith("2 images, 3 GiB at most")
    assert pruning.total(()) == "Nothing without a name is left over."
    kept = (Kept(Image("sha256:" + "9" * 64, ("b:1",)), Need("lock pins it as b:1", "")),)
    lines = ["".join(cell.text for cell in line) for line in pruning.lines((named, nameless), kept, UNICODE)]
    assert "777777777777" in lines[0], "the largest first"
    assert "lock pins it as b:1" in lines[-1]


def test_a_pull_tells_bytes_rate_and_time_first() -> None:
    state = PullState(DAY, 6, 2, 3, 2 * GIB, 5 * GIB, rate=38 * 2**20, left_s=87.0)
    assert state.words == "2.0 of 5.0 GiB, 38 MiB/s, 87 s left, 3/6 layers"
    assert replace(state, left_s=None).words == "2.0 of 5.0 GiB, 38 MiB/s, 3/6 layers"
    assert replace(state, layers_downloaded=6, current_bytes=5 * GIB).words == "5.0 of 5.0 GiB, unpacking, 6/6 layers"
    assert replace(state, total_bytes=0).words == "3/6 layers"
    assert PullState(DAY).words == "asking the registry"


def pull_run(state: RunState, **given: Any) -> Run:
    return Run("r", RunKind.PULL, DAY, "", NOW - 60, state, NOW if state is not RunState.RUNNING else None, **given)


def test_a_pull_in_full() -> None:
    layer = PullProgress("Downloading", "4f4fb700ef54", 5 * 2**20, 10 * 2**20)
    going = PullState(DAY, 1, 0, 0, 5 * 2**20, 10 * 2**20, each=(layer,))
    told = text_of(rundetails.fields(pull_run(RunState.RUNNING), now=NOW, glyphs=UNICODE, pull=going))
    assert "4f4fb700ef54" in told
    assert "5 MiB of 10 MiB" in told
    assert "x cancels it" in told
    assert "none told yet" in text_of(rundetails.fields(pull_run(RunState.RUNNING), now=NOW, glyphs=UNICODE))
    document = '{"event": "failed", "message": "No such tag.", "hint": "The nearest it has: 1.0."}'
    told = text_of(
        rundetails.fields(pull_run(RunState.FAILED, headline="x", document=document), now=NOW, glyphs=UNICODE)
    )
    assert "what to do The nearest it has: 1.0." in told
    assert "pulls it again" in told
    broken = pull_run(RunState.FAILED, headline="It failed.", document="[")
    assert "It failed." in text_of(rundetails.fields(broken, now=NOW, glyphs=UNICODE))
    assert runs.row(broken, now=NOW, glyphs=UNICODE).cells[1].text == "pytorch 2.9.1-cu128"


def test_a_build_says_what_it_comes_to_or_what_there_is() -> None:
    chosen = choose(ordered({"torch": "2.9.1", "cuda": "12.8", "base": " ", "tag": "a/b:1"}, {}), HOST)
    lines = "\n".join("".join(cell.text for cell in line) for line in buildform.outcome(chosen, UNICODE, 60))
    assert "torch 2.9.1 · CUDA 12.8" in lines
    assert "a/b:1" in lines
    assert "✓ runs" in lines
    assert ordered({}, {"GPUCONSOLE_BUILD_INDEX_URL": "http://m/"}).index_url == "http://m/"
    assert ordered({"base": "b:1"}, {"GPUCONSOLE_BUILD_BASE": "c:1"}).base == "b:1", "what is typed comes first"
    problem = buildform.problem(UsageError("--tag: no.", hint="CUDA 11.8 goes with --torch 2.7.1."), 60)
    assert [line[0].text for line in problem] == ["Name: no.", "→ CUDA 11.8 goes with torch 2.7.1."]
    assert buildform.choices("cuda", "", "2.9.1", everything=False)[0][1] == "with torch 2.9.1"
    assert buildform.choices("cuda", "", "99", everything=True) == []
    assert buildform.choices("tag", "", "", everything=True) == []


def test_a_wish_to_pull_is_what_the_lock_file_holds(tmp_path: Any) -> None:
    from gpuconsole.core.errors import NotFound
    from gpuconsole.images.reference import parse

    lock, digest = LockFile(tmp_path / "gpuconsole.lock"), "sha256:" + "a" * 64
    assert as_pinned(parse("a/b:1"), lock, {}).note == ""
    held = as_pinned(parse("a/b:1"), lock, {"a/b:1": Pin("a/b:1", digest=digest)})
    assert str(held.reference) == f"a/b:1@{digest}"
    assert "pins it (@aaaa)" in held.note
    with pytest.raises(NotFound, match="by an id"):
        as_pinned(parse("a/b:1"), lock, {"a/b:1": Pin("a/b:1", image_id=digest)})


def test_other_gpus_or_another_driver_are_a_reason_to_judge_anew() -> None:
    gpu = Gpu(0, "GPU-0", "NVIDIA H200", memory_used_bytes=0)
    seen = HostView(GpuSnapshot(NOW, gpus=(gpu,), driver_version="580.1"), gpus=(GpuView(gpu),))

    def changed(**given: Any) -> HostView:
        return replace(seen, snapshot=replace(seen.snapshot, **given))

    assert _depends_on(changed(taken_at=NOW + 1, gpus=(replace(gpu, memory_used_bytes=GIB),))) == _depends_on(seen)
    assert _depends_on(changed(driver_version="590.1")) != _depends_on(seen)
    assert _depends_on(changed(gpus=())) != _depends_on(seen)
    assert _depends_on(None) != _depends_on(seen)


def test_a_changed_catalog_file_is_a_reason_to_read_it_anew(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "team.toml"
    monkeypatch.setenv("GPUCONSOLE_CATALOG", str(own))
    before = catalog_marks()
    own.write_text("")
    assert catalog_marks() != before
