"""What a check saw in an image is known of it: believed over what it says, and decisive for its verdict."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuconsole.core.document import document
from gpuconsole.engine.model import Image
from gpuconsole.images.compatibility import Kernels
from gpuconsole.images.facts import Source, image_facts
from gpuconsole.images.seen import Seen, kernels_of, seen_in, with_seen
from gpuconsole.images.verdict import GpuTraits, HostTraits, Word
from gpuconsole.probes.records import CheckReport, CheckResult, CheckStatus, Environment, RunEnd, Verdict
from gpuconsole.services.catalog import load_catalog, view_catalog
from gpuconsole.services.checkrecords import remember_check
from gpuconsole.services.images import view_images
from gpuconsole.services.runs import Run, RunKind, Runs, RunState
from gpuconsole.services.seenimages import SeenImages, seen_by_name, seen_images

ID = f"sha256:{'1' * 64}"
ENVIRONMENT = Environment(
    where="image team/train:1",
    image_id=ID,
    python="3.12.3",
    torch="2.9.1+cu128",
    torch_cuda="12.8",
    torch_archs="sm_75 sm_80 sm_86 sm_90 compute_90",
    cudnn="9.10.2",
    os="Ubuntu 24.04.3 LTS",
)
HOST = HostTraits(driver="580.95.05", architecture="amd64", gpus=(GpuTraits(capability=(9, 0)),), checks_demands=False)
IMAGE = Image(id=ID, tags=("team/train:1",), architecture="amd64", os="linux")


def body(environment: Environment | dict[str, Any] = ENVIRONMENT, *, checks: tuple[CheckResult, ...] = ()) -> str:
    return document("check", environment=environment, checks=checks)


def test_an_image_that_says_nothing_gets_a_verdict_once_a_check_ran_in_it() -> None:
    (before,) = view_images([IMAGE], [], HOST)
    assert before.verdict is not None
    assert before.verdict.word is Word.UNKNOWN
    found = seen_in(body(), 1_764_500_000.0)
    assert found is not None
    identity, seen = found
    (after,) = view_images([IMAGE], [], HOST, seen={identity: seen})
    assert after.verdict is not None
    assert after.verdict.word is Word.RUNS
    assert {"seen-in-check", "ok-native"} <= {reason.id for reason in after.verdict.reasons}
    facts = after.facts
    values = {name: getattr(facts, name) for name in ("torch", "cuda", "cudnn", "python", "system", "archs")}
    assert {name: fact.value for name, fact in values.items()} == {
        "torch": "2.9.1+cu128", "cuda": "12.8", "cudnn": "9.10.2", "python": "3.12.3", "system": "ubuntu 24.04",
        "archs": "sm_75 sm_80 sm_86 sm_90 compute_90",
    }  # fmt: skip
    assert {fact.source for fact in values.values()} == {Source.CHECK}
    assert facts.torch is not None
    assert facts.torch.key.startswith("a check on 2025-1")
    assert facts.seen_at == 1_764_500_000.0
    older_gpu = replace(HOST, gpus=(GpuTraits(capability=(7, 0)),))
    (no,) = view_images([IMAGE], [], older_gpu, seen={identity: seen})
    assert no.verdict is not None
    assert no.verdict.word is Word.WILL_NOT_RUN


def test_what_was_seen_is_believed_over_what_is_said_and_the_difference_is_told() -> None:
    says = replace(IMAGE, environment=(("PYTORCH_VERSION", "2.8.0"), ("CUDA_VERSION", "12.8.1")))
    _, seen = seen_in(body(), 0.0) or ("", Seen(0.0, "", None))
    facts = with_seen(image_facts(says), seen)
    assert facts.torch is not None
    assert facts.torch.value == "2.9.1+cu128"
    (told,) = facts.contradictions
    assert "PYTORCH_VERSION says torch 2.8.0" in told
    assert "saw 2.9.1+cu128" in told


def test_what_somebody_installed_in_a_container_is_not_the_images() -> None:
    inside = replace(ENVIRONMENT, where="container train")
    _, seen = seen_in(body(inside), 0.0) or ("", Seen(0.0, "", None))
    assert not seen.fresh
    says = image_facts(replace(IMAGE, environment=(("PYTORCH_VERSION", "2.8.0"),)))
    assert with_seen(says, seen) == says
    agrees = image_facts(replace(IMAGE, environment=(("PYTORCH_VERSION", "2.9.1"),)))
    assert with_seen(agrees, seen).seen_at == 0.0
    assert with_seen(image_facts(IMAGE), seen).torch is not None


def test_a_build_without_cuda_is_known_as_one() -> None:
    cpu = replace(ENVIRONMENT, torch="2.9.1+cpu", torch_cuda=None, torch_archs=None)
    identity, seen = seen_in(body(cpu), 0.0) or ("", Seen(0.0, "", None))
    (view,) = view_images([IMAGE], [], HOST, seen={identity: seen})
    assert view.facts.cpu_only is True
    assert view.verdict is not None
    assert view.verdict.reasons[0].id == "cpu-build"


def test_checks_before_torch_was_asked_tell_by_the_kernels_check() -> None:
    kernel = CheckResult("check.kernel", "C04", CheckStatus.OK, "x", value={"built_for": ["sm_80", "sm_90"]})
    _, seen = seen_in(body(replace(ENVIRONMENT, torch_archs=None), checks=(kernel,)), 0.0) or ("", None)
    assert seen is not None
    assert seen.archs == "sm_80 sm_90"


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "null", "{", '{"schema": "gpuconsole.check/1"}',
        '{"schema": "gpuconsole.launch/1", "environment": {}}',
        '{"schema": "gpuconsole.check/1", "environment": []}', body(replace(ENVIRONMENT, image_id=None)),
        body(replace(ENVIRONMENT, torch=None)), body(replace(ENVIRONMENT, torch="\x1b[31m")),
        body({"image_id": 5, "torch": "2.9"}), body({"image_id": ID, "torch": ["2.9"]}), "[" * 100_000,
    ],
)  # fmt: skip
def test_a_document_that_tells_nothing_is_nothing(text: str) -> None:
    assert seen_in(text, 0.0) is None


def test_odd_parts_of_a_document_are_unknown_and_not_believed() -> None:
    odd = {"image_id": ID, "torch": "2.9.1", "torch_cuda": {}, "cudnn": "x" * 999, "python": 3, "os": None,
           "torch_archs": "sm_90 rubbish"}  # fmt: skip
    text = json.dumps({"schema": "gpuconsole.check/1", "environment": odd, "checks": [3, {"id": "check.kernel"}]})
    _, seen = seen_in(text, 0.0) or ("", None)
    assert seen == Seen(0.0, "2.9.1", None, fresh=False)


@pytest.mark.parametrize(
    ("archs", "kernels"),
    [
        ("sm_50 sm_80 sm_120", Kernels(((5, 0), (8, 0), (12, 0)))),
        ("sm_90 compute_90", Kernels(((9, 0),), (9, 0))),
        ("sm_90a", Kernels(((9, 0),))),
        ("compute_80 compute_120", Kernels((), (12, 0))),
        ("sm_100 sm_100a sm_120", Kernels(((10, 0), (12, 0)))),
        ("sm_90 sm_100a", None),  # for a GPU of 10.3 that cannot be said in capabilities
        ("sm_90 gfx90a", None),
        ("", None),
    ],
)
def test_what_torch_has_code_for(archs: str, kernels: Kernels | None) -> None:
    assert kernels_of(archs) == kernels


def run(number: int, text: str, kind: RunKind = RunKind.CHECK) -> Run:
    return Run(str(number), kind, "x", ID, float(number), RunState.OK, float(number), "", None, text)


def test_the_newest_check_counts_and_one_in_a_container_of_its_own_before_any_other() -> None:
    own, other = body(), body(replace(ENVIRONMENT, where="container x", torch="2.8.0"))
    reader = SeenImages()
    found = reader.of([run(3, other), run(1, own), run(2, body(replace(ENVIRONMENT, torch="2.9.0")))])
    assert (found[ID].torch, found[ID].at) == ("2.9.0", 2.0)
    assert reader.of([run(5, other)])[ID].torch == "2.8.0"
    assert reader.of([run(6, own, RunKind.LAUNCH)]) == {}


def report(environment: Environment) -> CheckReport:
    return CheckReport(RunEnd.COMPLETE, environment, (), Verdict(CheckStatus.OK, "All is well."))


def test_checks_are_remembered_and_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert seen_images() == {}
    assert not list(tmp_path.iterdir())  # to look leaves no file behind
    remember_check(report(replace(ENVIRONMENT, where="this machine")))
    remember_check(report(replace(ENVIRONMENT, where="container train", container_id="9" * 64)))
    remember_check(report(ENVIRONMENT))
    assert seen_images()[ID].fresh
    kept = Runs()
    subjects = {(each.subject, each.subject_id) for each in kept.all()}
    kept.close()
    assert subjects == {("train", "9" * 64), ("team/train:1", ID)}


def test_an_entry_of_the_catalog_that_lies_here_is_judged_by_what_was_seen() -> None:
    catalog = load_catalog([])
    name = "nvcr.io/nvidia/pytorch:26.09-py3"
    here = replace(IMAGE, tags=(name, "other:1"), digests=(f"other@sha256:{'2' * 64}", "not/valid@"))
    _, told = seen_in(body(), 5.0) or ("", Seen(0.0, "", None))
    seen = seen_by_name([here, replace(IMAGE, id="sha256:other", tags=("not/seen:1",))], {ID: told})
    assert name in seen
    assert "not/seen:1" not in seen
    views = {view.image.reference: view for view in view_catalog(catalog, HOST, seen=seen)}
    assert views[name].seen_at == 5.0
    assert "seen-in-check" in {reason.id for reason in views[name].verdict.reasons}
    assert views[name].verdict.word is Word.RUNS  # it was CUDA 12.8 in there, whatever the catalog says
    assert "facts-unsure" in {reason.id for reason in views[name].verdict.reasons}  # of Python and driver
    assert all(view.seen_at is None for reference, view in views.items() if reference != name)
