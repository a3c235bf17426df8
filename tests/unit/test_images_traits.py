"""Local images as the verdict sees them: what environment, labels and tags say, and what stays unknown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuconsole.engine.model import Image
from gpuconsole.images.boards import Segment
from gpuconsole.images.compatibility import Kernels, shipped_compatibility
from gpuconsole.images.facts import image_facts
from gpuconsole.images.traits import ImageTraits, arch_list, from_local
from gpuconsole.images.verdict import GpuTraits, HostTraits, Word
from gpuconsole.services.images import judge_local, view_images

COMPATIBILITY = shipped_compatibility()
BASE = "cuda>=12.8 brand=nvidia,driver>=535,driver<536"
HOPPER = GpuTraits(label="GPU 0", capability=(9, 0), segment=Segment.DATACENTER, brands=("nvidia",))
MODERN = HostTraits(driver="580.95.05", cuda="13.0", architecture="amd64", gpus=(HOPPER,), checks_demands=True)


def image(
    *tags: str, env: dict[str, str] | None = None, labels: dict[str, str] | None = None, arch: str = "amd64"
) -> Image:
    environment = tuple((env or {}).items())
    return Image(
        id="sha256:" + "0" * 64, tags=tags, architecture=arch, os="linux", environment=environment, labels=labels or {}
    )


def seen(one: Image) -> ImageTraits:
    return from_local(one, COMPATIBILITY)


def test_an_official_image_is_known_by_its_tag() -> None:
    runtime = seen(image("pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime", env={"PYTORCH_VERSION": "2.9.1"}))
    assert (runtime.torch, runtime.cuda, runtime.libcuda, runtime.demands) == ("2.9.1", "12.8", False, ((),))
    assert runtime.kernels["linux/amd64"].serves((7, 0))
    devel = seen(image("pytorch/pytorch:2.9.1-cuda12.8-cudnn9-devel", env={"NVIDIA_REQUIRE_CUDA": BASE}))
    assert (devel.libcuda, devel.demands) == (True, ((BASE,),))


def test_nvidias_image_says_itself_what_its_torch_has_code_for() -> None:
    env = {
        "NVIDIA_PYTORCH_VERSION": "25.10",
        "PYTORCH_VERSION": "2.9.0a0+145a3a7bda",
        "CUDA_VERSION": "13.0.2.006",
        "NVIDIA_REQUIRE_CUDA": "cuda>=9.0",
        "TORCH_CUDA_ARCH_LIST": "7.5 8.0 8.6 9.0 10.0 12.0+PTX",
    }
    found = seen(image("nvcr.io/nvidia/pytorch:25.10-py3", env=env))
    assert found.kernels["linux/amd64"] == Kernels(((7, 5), (8, 0), (8, 6), (9, 0), (10, 0), (12, 0)), (12, 0))
    assert found.libcuda is True
    assert judge_local(image(env=env), MODERN).word is Word.RUNS


def test_the_same_variable_says_nothing_of_torch_in_other_images() -> None:
    env = {"PYTORCH_VERSION": "2.9.1", "CUDA_VERSION": "12.8.1", "TORCH_CUDA_ARCH_LIST": "12.1a"}
    assert seen(image(env=env)).kernels["linux/amd64"].serves((9, 0))


@pytest.mark.parametrize("torch", ["2.9.0a0+145a3a7bda", "2.9.1+git1234", "2.9.1.post3+local"])
def test_a_torch_of_ones_own_is_not_taken_for_the_published_one(torch: str) -> None:
    found = judge_local(image(env={"PYTORCH_VERSION": torch, "CUDA_VERSION": "12.8.1"}), MODERN)
    assert (found.word, found.reasons[0].id) == (Word.UNKNOWN, "unknown-arch")


def test_our_own_labels_are_enough() -> None:
    found = judge_local(image(labels={"gpuconsole.torch": "2.9.1+cu128", "gpuconsole.cuda": "12.8"}), MODERN)
    assert found.word is Word.RUNS


def test_a_cpu_build_uses_no_gpu_and_says_so() -> None:
    found = judge_local(image(labels={"gpuconsole.torch": "2.9.1+cpu"}), MODERN)
    assert (found.word, [reason.id for reason in found.reasons]) == (Word.WILL_NOT_RUN, ["cpu-build"])


def test_an_image_for_another_processor() -> None:
    found = judge_local(image("pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime", arch="arm64"), MODERN)
    assert (found.word, found.reasons[0].id) == (Word.WILL_NOT_RUN, "wrong-architecture")


def test_an_old_image_without_the_variable_demands_its_cuda() -> None:
    old = HostTraits("535.183.01", "12.2", "amd64", (HOPPER,), checks_demands=True)
    env = {"CUDA_VERSION": "12.8.0", "PYTORCH_VERSION": "2.9.1"}
    found = judge_local(image(env=env), old)
    assert (found.word, found.reasons[0].id) == (Word.WILL_NOT_RUN, "blocked-require-cuda")
    allowed = judge_local(image(env=env | {"NVIDIA_DISABLE_REQUIRE": "1"}), old)
    assert (allowed.word, allowed.reasons[0].id) == (Word.RUNS_WITH, "ok-minor-compat")


def test_of_an_image_that_says_nothing_nothing_is_said() -> None:
    found = judge_local(image(arch=""), MODERN)
    assert found.word is Word.UNKNOWN
    assert set(found.needs["facts"]) == {"image platform", "capabilities torch was built for", "CUDA version"}


def test_images_are_judged_only_where_a_machine_is_given() -> None:
    one = image("pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime")
    assert view_images([one], [])[0].verdict is None
    view = view_images([one], [], MODERN)[0]
    assert view.verdict is not None
    assert view.verdict.word is Word.RUNS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8.0;8.6;9.0+PTX", Kernels(((8, 0), (8, 6), (9, 0)), (9, 0))),
        ("7.5 8.0", Kernels(((7, 5), (8, 0)))),
        ("", None),
        ("Hopper", None),
        ("9.0a", None),
        ("9.0+SASS", None),
        ("90", None),
    ],
)
def test_lists_of_capabilities(text: str, expected: Kernels | None) -> None:
    assert arch_list(text) == expected


@given(
    env=st.dictionaries(
        st.sampled_from(["CUDA_VERSION", "PYTORCH_VERSION", "NVIDIA_REQUIRE_CUDA", "NVIDIA_PYTORCH_VERSION", "X"]),
        st.text(max_size=30),
    ),
    tag=st.text(max_size=40),
)
def test_any_image_is_judged(env: dict[str, str], tag: str) -> None:
    found = judge_local(image(tag, env=env), MODERN)
    assert found.reasons
    assert found.word is not Word.UNKNOWN or found.needs["facts"]


def test_the_cuda_of_the_base_is_not_taken_for_that_of_a_torch_installed_later() -> None:
    base = image(env={"CUDA_VERSION": "12.6.3", "NVIDIA_REQUIRE_CUDA": BASE})
    plain = image_facts(base, ["RUN pip install torch==2.9.1"])
    found = judge_local(base, MODERN, plain)
    assert (found.word, found.needs["facts"]) == (
        Word.UNKNOWN,
        ("capabilities torch was built for", "CUDA version"),
    )
    told = image_facts(base, ["RUN pip install torch==2.9.1 --index-url https://download.pytorch.org/whl/cu128"])
    assert judge_local(base, MODERN, told).word is Word.RUNS
