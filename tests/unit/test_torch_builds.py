"""Which builds of PyTorch there are, and what an order of one comes to on a machine."""

from __future__ import annotations

import pytest

from gpuconsole.core.errors import UsageError
from gpuconsole.images.compatibility import shipped_compatibility
from gpuconsole.images.reference import parse
from gpuconsole.images.torchbuilds import Release, shipped_builds
from gpuconsole.images.verdict import GpuTraits, HostTraits, Word
from gpuconsole.images.versions import at_least, version
from gpuconsole.services.buildorders import BuildOrder, choose
from gpuconsole.services.catalog import load_catalog

BUILDS = shipped_builds()
H100 = GpuTraits(name="NVIDIA H100 80GB HBM3", capability=(9, 0), brands=("tesla",))


def host(driver: str, *gpus: GpuTraits) -> HostTraits:
    return HostTraits(driver=driver, architecture="amd64", gpus=gpus or (H100,), checks_demands=False)


@pytest.mark.parametrize("release", BUILDS.releases, ids=lambda each: each.torch)
def test_every_build_in_the_table_has_a_base_with_a_python_it_runs_on(release: Release) -> None:
    assert release.default in release.cudas
    for cuda in release.cudas:
        assert shipped_compatibility().toolkit(cuda) is not None
        base = BUILDS.base(cuda, None)
        assert parse(base.reference).tag
        assert f":{cuda}." in base.reference
        oldest, newest = release.python
        assert at_least(base.python, oldest)
        assert at_least(newest, base.python)


def test_the_table_agrees_with_the_catalogs_official_images() -> None:
    known = {release.torch: release.cudas for release in BUILDS.releases}
    official = [image for image in load_catalog([]).images if image.parsed.name == "pytorch/pytorch"]
    seen = [(image.torch, image.cuda) for image in official if image.torch in known]
    assert len(seen) > 80
    for torch, cuda in seen:
        assert cuda in known[torch or ""], (torch, cuda)


@pytest.mark.parametrize(
    ("torch", "cuda", "words"),
    [
        ("2.9", "12.1", "12.6, 12.8, 12.9 and 13.0; CUDA 12.1 goes with --torch 2.5.1"),
        ("2.9.0", "11.8", "12.6, 12.8, 12.9 and 13.0; CUDA 11.8 goes with --torch 2.7.1"),
        ("2.5.1", "13.0", "11.8, 12.1 and 12.4; CUDA 13.0 goes with --torch 2.14.1"),
        ("2.9", "cu128x", "12.6, 12.8"),
        ("2.9", "nonsense", "12.6, 12.8"),
        (None, "10.2", "There are builds for CUDA"),
        ("2.9.7", None, "2.9.0 and 2.9.1 of 2.9"),
        ("2.99", None, "2.0 to 2.14"),
        ("1.13", None, "2.0 to 2.14"),
        ("two", None, "2.0 to 2.14"),
        ("2.9.1.1", None, "2.9.0 and 2.9.1 of 2.9"),
        ("2.9.1a", None, "2.9.0 and 2.9.1 of 2.9"),
        ("", None, "2.0 to 2.14"),
    ],
)
def test_what_never_was_is_refused_with_what_there_is(torch: str | None, cuda: str | None, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        choose(BuildOrder(torch=torch, cuda=cuda), HostTraits())
    assert words in f"{caught.value.message} {caught.value.hint}"


@pytest.mark.parametrize(
    ("order", "driver", "name"),
    [
        (BuildOrder(), "580.95.05", "pytorch-cuda:2.14.1-cu130"),
        (BuildOrder(), "535.104.05", "pytorch-cuda:2.14.1-cu126"),
        (BuildOrder(), "470.82.01", "pytorch-cuda:2.7.1-cu118"),
        (BuildOrder(torch="2.9"), "580.95.05", "pytorch-cuda:2.9.1-cu128"),
        (BuildOrder(torch="v2.9.0"), "570.26", "pytorch-cuda:2.9.0-cu128"),
        (BuildOrder(cuda="12.1"), "580.95.05", "pytorch-cuda:2.5.1-cu121"),
        (BuildOrder(cuda="cu128"), "580.95.05", "pytorch-cuda:2.11.0-cu128"),
        (BuildOrder(torch="2.9.1", cuda="cu130"), "580.95.05", "pytorch-cuda:2.9.1-cu130"),
        (BuildOrder(torch="2.9", tag="mine"), "580.95.05", "mine:latest"),
        (BuildOrder(torch="2.9", tag="pytorch-cuda:v2.9"), "580.95.05", "pytorch-cuda:v2.9"),
    ],
)
def test_what_is_left_open_is_chosen_so_that_it_runs(order: BuildOrder, driver: str, name: str) -> None:
    chosen = choose(order, host(driver))
    assert chosen.name == name
    assert chosen.verdict.word in (Word.RUNS, Word.RUNS_WITH)


def test_an_order_that_cannot_run_is_carried_out_and_says_so() -> None:
    chosen = choose(BuildOrder(torch="2.9", cuda="13.0"), host("535.104.05", GpuTraits(capability=(8, 9))))
    assert chosen.recipe.cuda == "13.0"
    assert chosen.verdict.word in (Word.WILL_NOT_RUN, Word.UNKNOWN)
    nothing_runs = choose(BuildOrder(), host("340.1"))
    assert nothing_runs.recipe.torch == BUILDS.releases[-1].torch
    assert nothing_runs.verdict.word is Word.WILL_NOT_RUN


def test_a_newer_driver_never_gets_an_older_torch() -> None:
    known = [toolkit.driver for toolkit in shipped_compatibility().toolkits.values()]
    drivers = [driver for driver in known if at_least(driver, "450.80.02")]  # with an older one nothing runs
    chosen = [choose(BuildOrder(), host(driver)).recipe.torch for driver in sorted(drivers, key=version)]
    assert [version(torch) for torch in chosen] == sorted(version(torch) for torch in chosen)


def test_of_another_processor_only_the_builds_there_are() -> None:
    arm = choose(BuildOrder(torch="2.11"), HostTraits(architecture="arm64"), architecture="arm64")
    assert arm.recipe.cuda == "13.0"
    with pytest.raises(UsageError, match=r"2\.11\.0 for CUDA 12\.8 on linux/arm64"):
        choose(BuildOrder(torch="2.11", cuda="12.8"), HostTraits(), architecture="arm64")
    with pytest.raises(UsageError, match="was not built with CUDA for linux/arm64"):
        choose(BuildOrder(torch="2.5"), HostTraits(), architecture="arm64")


def test_an_address_may_be_any_that_asks_for_no_login() -> None:
    for url in ("http://127.0.0.1:8080/simple", "https://m.example", "https://m.example/@team/simple?x=1&y=2#z"):
        assert choose(BuildOrder(index_url=url), host("580.95.05")).recipe.index_url == url


@pytest.mark.parametrize(
    ("order", "words"),
    [
        (BuildOrder(index_url="https://user:secret@mirror.example/simple"), "login"),
        (BuildOrder(torch_index_url="https://user:secret@mirror.example/simple"), "login"),
        (BuildOrder(index_url="https://token-secret@mirror.example"), "login"),
        (BuildOrder(index_url="mirror.example"), "no address"),
        (BuildOrder(index_url="https://"), "no address"),
        (BuildOrder(index_url="file:///wheels"), "no address"),
        (BuildOrder(index_url="https://mirror.example/'; rm -rf /; '"), "no address"),
        (BuildOrder(index_url='https://mirror.example/"$(id)"'), "no address"),
        (BuildOrder(index_url="https://mirror.example/\nRUN id"), "no address"),
        (BuildOrder(base="not an image"), "--base"),
        (BuildOrder(base="a\nRUN id"), "--base"),
        (BuildOrder(base="team/base:1", python="3.12"), "--python"),
        (BuildOrder(tag="Upper/Case"), "--tag"),
        (BuildOrder(tag=f"a/b@sha256:{'0' * 64}"), "--tag"),
        (BuildOrder(torch="2.9", python="3.8"), "3.12 and 3.10"),
    ],
)
def test_what_makes_no_sense_or_would_leak_is_refused(order: BuildOrder, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        choose(order, host("580.95.05"))
    assert words in f"{caught.value.message} {caught.value.hint}"
    assert "secret" not in f"{caught.value.message} {caught.value.hint}"
    assert caught.value.hint
