"""Versions inside an image, and who says so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuconsole.engine.model import Image
from gpuconsole.images.facts import Fact, ImageFacts, Source, image_facts


def image(*tags: str, env: dict[str, str | None] | None = None, labels: dict[str, str] | None = None) -> Image:
    return Image(id="sha256:" + "0" * 64, tags=tags, environment=tuple((env or {}).items()), labels=labels or {})


def values(facts: ImageFacts) -> dict[str, str]:
    names = ("torch", "cuda", "cudnn", "nccl", "python", "system", "ngc", "kind", "require_cuda")
    return {name: fact.value for name in names if (fact := getattr(facts, name)) is not None}


def test_official_runtime_image_is_told_by_its_environment_and_tag() -> None:
    facts = image_facts(
        image(
            "pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime",
            env={"PYTORCH_VERSION": "2.9.1", "NVIDIA_VISIBLE_DEVICES": "all"},
            labels={"org.opencontainers.image.ref.name": "ubuntu", "org.opencontainers.image.version": "22.04"},
        )
    )
    assert values(facts) == {"torch": "2.9.1", "cuda": "12.8", "kind": "runtime", "system": "ubuntu 22.04"}
    assert facts.torch == Fact("2.9.1", Source.ENVIRONMENT, "PYTORCH_VERSION")
    assert facts.cuda == Fact("12.8", Source.TAG, "2.9.1-cuda12.8-cudnn9-runtime")
    assert facts.cpu_only is False


def test_ngc_image_is_told_by_its_environment() -> None:
    facts = image_facts(
        image(
            "nvcr.io/nvidia/pytorch:25.10-py3",
            env={
                "PYTORCH_VERSION": "2.9.0a0+145a3a7bda",
                "NVIDIA_PYTORCH_VERSION": "25.10",
                "CUDA_VERSION": "13.0.2.006",
                "CUDNN_VERSION": "9.14.0.64",
                "NCCL_VERSION": "2.27.7",
                "NVIDIA_REQUIRE_CUDA": "cuda>=9.0",
                "PYVER": "3.12",
            },
        )
    )
    assert values(facts) == {
        "torch": "2.9.0a0+145a3a7bda",
        "cuda": "13.0.2.006",
        "cudnn": "9.14.0.64",
        "nccl": "2.27.7",
        "python": "3.12",
        "ngc": "25.10",
        "require_cuda": "cuda>=9.0",
    }


def test_cuda_base_image_tells_package_versions_without_their_debian_part() -> None:
    facts = image_facts(
        image(
            "nvidia/cuda:12.8.1-cudnn-devel-ubuntu24.04",
            env={
                "CUDA_VERSION": "12.8.1",
                "NV_CUDNN_VERSION": "9.8.0.87-1",
                "NV_LIBNCCL_PACKAGE_VERSION": "2.25.1-1",
            },
        )
    )
    assert values(facts) == {"cuda": "12.8.1", "cudnn": "9.8.0.87", "nccl": "2.25.1"}
    assert facts.torch is None


def test_our_own_labels_come_first() -> None:
    facts = image_facts(image(env={"PYTORCH_VERSION": "2.8.0"}, labels={"gpuconsole.torch": "2.9.0+cu128"}))
    assert facts.torch == Fact("2.9.0+cu128", Source.LABEL, "gpuconsole.torch")
    assert facts.cpu_only is False


def test_a_cpu_build_says_so() -> None:
    facts = image_facts(image("gpuconsole-test/pytorch:cpu", env={"PYTORCH_VERSION": "2.13.0+cpu"}))
    assert facts.cpu_only is True
    assert facts.cuda is None


def test_a_retagged_image_is_believed_by_its_environment_and_the_contradiction_told() -> None:
    facts = image_facts(image("pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime", env={"PYTORCH_VERSION": "2.7.0"}))
    assert facts.torch is not None
    assert facts.torch.value == "2.7.0"
    assert len(facts.contradictions) == 1
    assert "2.9.1" in facts.contradictions[0]


def test_longer_and_shorter_forms_of_a_version_do_not_contradict() -> None:
    facts = image_facts(
        image(
            "pytorch/pytorch:2.9.1-cuda13.0-cudnn9-devel",
            env={"PYTORCH_VERSION": "2.9.1+cu130", "CUDA_VERSION": "13.0.2"},
        )
    )
    assert facts.contradictions == ()


def test_the_official_tag_that_holds_another_torch_is_known() -> None:
    facts = image_facts(image("pytorch/pytorch:1.13.1-cuda11.6-cudnn8-runtime"))
    assert facts.torch is not None
    assert facts.torch.value == "1.13.0"


@pytest.mark.parametrize(
    "tag", ["myrepo/pytorch:2.9.0-cuda12.8-cudnn9-runtime", "x:torch2.5-cu124", "pytorch/pytorch:latest"]
)
def test_tags_without_a_known_scheme_tell_nothing(tag: str) -> None:
    assert values(image_facts(image(tag))) == {}


def test_nonsense_is_not_taken_for_a_version() -> None:
    env: dict[str, str | None] = {"PYTORCH_VERSION": "latest", "CUDA_VERSION": None, "PYTHON_VERSION": "3.12 beta"}
    assert values(image_facts(image(env=env))) == {}


@given(
    st.lists(st.text(max_size=30), max_size=3),
    st.dictionaries(st.sampled_from(["PYTORCH_VERSION", "CUDA_VERSION", "NV_CUDNN_VERSION"]), st.text() | st.none()),
    st.dictionaries(st.sampled_from(["gpuconsole.torch", "org.opencontainers.image.version"]), st.text()),
)
def test_no_image_breaks_it(tags: list[str], env: dict[str, str | None], labels: dict[str, str]) -> None:
    image_facts(image(*tags, env=env, labels=labels))


CU128 = "RUN /bin/sh -c pip install torch==2.9.1 torchvision --index-url https://download.pytorch.org/whl/cu128"
ENV_OLD = "ENV PYTORCH_VERSION=2.6.0"


@pytest.mark.parametrize(
    ("step", "torch", "cuda"),
    [
        (CU128, "2.9.1", "12.8"),
        ("RUN pip3 install --no-cache-dir 'torch==2.6.0+cu118'", "2.6.0", "11.8"),
        ("RUN uv pip install --system torch==2.12 --index-url https://mirror/whl/cu130", "2.12", "13.0"),
        (
            "RUN |1 TORCH=torch==2.8.0 torchvision==0.23.0 /bin/bash -c pip install ${TORCH}",
            "2.8.0",
            None,
        ),
        ("/bin/sh -c conda install -y pytorch==2.1.0 torchvision pytorch-cuda=12.1 -c pytorch", "2.1.0", "12.1"),
        ("RUN pip install torch==2.9.1 --index-url https://download.pytorch.org/whl/cpu", "2.9.1+cpu", None),
        ("RUN pip install torch==2.9.1", "2.9.1", None),
    ],
)
def test_a_torch_that_was_installed_is_told_by_the_command(step: str, torch: str, cuda: str | None) -> None:
    facts = image_facts(image(), [step, "CMD bash"])
    assert facts.torch is not None
    assert (facts.torch.value, facts.torch.source) == (torch, Source.HISTORY)
    assert (None if facts.cuda is None else facts.cuda.value) == cuda
    assert facts.cpu_only is (True if torch.endswith("+cpu") else False if cuda else None)


@pytest.mark.parametrize(
    "step",
    [
        "RUN pip install torchvision==0.23.0",
        "RUN pip install torch",
        "RUN pip install torch>=2.9",
        "RUN pip install torch==2.9.0a0+145a3a7bda",
        "RUN pip uninstall torch==2.9.1",
        "COPY torch==2.9.1 /",
        "",
    ],
)
def test_other_commands_tell_nothing(step: str) -> None:
    assert image_facts(image(), [step]).torch is None


def test_what_was_installed_later_counts_more_than_a_variable_before_it() -> None:
    old = image(env={"PYTORCH_VERSION": "2.6.0", "CUDA_VERSION": "12.4.1"})
    facts = image_facts(old, ["CMD bash", CU128, ENV_OLD, "ENV CUDA_VERSION=12.4.1"])
    assert values(facts) == {"torch": "2.9.1", "cuda": "12.8"}
    assert "PYTORCH_VERSION says torch 2.6.0, but 2.9.1 was installed later" in facts.contradictions
    before = image_facts(old, ["CMD bash", ENV_OLD, CU128])
    assert values(before)["torch"] == "2.6.0"
    assert before.contradictions == ()


def test_our_own_label_counts_more_than_history() -> None:
    labelled = image(labels={"gpuconsole.torch": "2.9.0+cu126", "gpuconsole.cuda": "12.6"})
    assert values(image_facts(labelled, [CU128])) == {"torch": "2.9.0+cu126", "cuda": "12.6"}


@given(st.lists(st.text(max_size=80), max_size=6))
def test_any_history_is_read(history: list[str]) -> None:
    assert isinstance(image_facts(image(env={"PYTORCH_VERSION": "2.6.0"}), history), ImageFacts)
