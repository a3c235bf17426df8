"""The Dockerfile of an image with PyTorch."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace

import pytest

from gpuconsole.engine.model import Image
from gpuconsole.images.dockerfile import Recipe, dockerfile, pins
from gpuconsole.images.facts import image_facts
from gpuconsole.images.torchbuilds import shipped_builds

DIGEST = f"sha256:{'a' * 64}"
RECIPE = Recipe(
    base=f"nvidia/cuda:12.8.1-base-ubuntu24.04@{DIGEST}",
    torch="2.9.1",
    vision="0.24.1",
    audio="2.9.1",
    cuda="12.8",
    tools=shipped_builds().tools,
    python="3.12",
    system="ubuntu 24.04",
    cudnn="9.10.2.21",
    nccl="2.27.5",
)


def instructions(text: str) -> list[str]:
    """One a line, without comments."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return [line for line in "\n".join(lines).replace("\\\n", " ").splitlines() if line.strip()]


def labels(text: str) -> dict[str, str]:
    (line,) = [line for line in instructions(text) if line.startswith("LABEL ")]
    pairs = [word.partition("=") for word in shlex.split(line)[1:]]
    return {name: value for name, _, value in pairs}


def test_its_base_is_pinned_its_packages_belong_together_and_its_user_is_not_root() -> None:
    text = dockerfile(RECIPE)
    lines = instructions(text)
    assert lines[0] == f"FROM nvidia/cuda:12.8.1-base-ubuntu24.04@{DIGEST}"
    assert [line for line in lines if line.startswith("USER")][-1] == "USER 1000:1000"
    (torch,) = [line for line in lines if "torch==2.9.1+cu128" in line]
    assert "torchvision==0.24.1+cu128 torchaudio==2.9.1+cu128" in torch
    assert "/whl/cu128" in torch
    assert re.findall(r"\bpip install .*?(\S+==\S+)", text)
    assert "gcc" in text
    assert "python3-dev" in text


def test_it_needs_nothing_that_an_old_engine_or_a_bare_stdin_does_not_have() -> None:
    for recipe in (RECIPE, replace(RECIPE, ours=False, base="team/base:1")):
        lines = instructions(dockerfile(recipe))
        assert {line.split()[0] for line in lines} <= {
            "FROM", "USER", "SHELL", "RUN", "ENV", "LABEL", "WORKDIR", "ENTRYPOINT", "CMD",
        }  # fmt: skip
        assert not any("--mount" in line or "<<" in line for line in lines)


def test_no_variable_of_the_build_and_no_address_stays_in_the_environment() -> None:
    text = dockerfile(replace(RECIPE, index_url="https://mirror.example/simple"))
    assert not any(line.startswith(("ARG", "COPY", "ADD")) for line in instructions(text))
    kept = [line for line in instructions(text) if line.startswith(("ENV", "LABEL"))]
    assert not any("://" in line for line in kept)


def test_what_gpuconsole_reads_from_the_image_is_what_went_in() -> None:
    facts = image_facts(Image(id="sha256:1", labels=labels(dockerfile(RECIPE))))
    said = {name: getattr(facts, name) for name in ("torch", "cuda", "cudnn", "nccl", "python", "system")}
    assert {name: fact.value for name, fact in said.items() if fact} == {
        "torch": "2.9.1+cu128", "cuda": "12.8", "cudnn": "9.10.2.21", "nccl": "2.27.5", "python": "3.12",
        "system": "ubuntu 24.04",
    }  # fmt: skip
    assert facts.cpu_only is False
    assert labels(dockerfile(RECIPE))["org.opencontainers.image.base.digest"] == DIGEST


def test_what_is_not_known_has_no_label() -> None:
    found = labels(dockerfile(replace(RECIPE, cudnn=None, nccl=None, python=None, system=None, base="team/base:1")))
    assert not {"gpuconsole.cudnn", "gpuconsole.nccl", "gpuconsole.python", "gpuconsole.system"} & set(found)
    assert "org.opencontainers.image.base.digest" not in found
    assert found["org.opencontainers.image.base.name"] == "team/base:1"


def test_mirrors_take_the_place_of_both_sources_or_of_torchs_alone() -> None:
    both = dockerfile(replace(RECIPE, index_url="https://m.example/all", torch_index_url="https://m.example/all"))
    assert "whl/" not in both
    assert both.count("--index-url https://m.example/all") == 3
    alone = dockerfile(replace(RECIPE, torch_index_url="https://m.example/t?a=1&b=2"))
    assert alone.count("--index-url") == 1
    assert "--index-url 'https://m.example/t?a=1&b=2'" in alone


@pytest.mark.parametrize(("torch", "held"), [("2.2.2", True), ("2.3.1", False), ("2.10.0", False)])
def test_releases_made_for_the_older_numpy_get_it(torch: str, held: bool) -> None:
    assert ("'numpy<2'" in dockerfile(replace(RECIPE, torch=torch))) is held


def test_on_other_processors_only_torch_carries_its_build() -> None:
    assert pins(replace(RECIPE, architecture="arm64")) == (
        "torch==2.9.1+cu128", "torchvision==0.24.1", "torchaudio==2.9.1",
    )  # fmt: skip


def test_a_foreign_base_needs_python_or_a_way_to_get_it() -> None:
    text = dockerfile(replace(RECIPE, ours=False))
    assert "if command -v apt-get" in text
    assert "has neither python3 nor apt-get" in text
    assert "has neither python3" not in dockerfile(RECIPE)
