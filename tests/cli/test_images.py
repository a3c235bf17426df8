"""`images` on real engines with either image store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpuconsole.services.session import Session
from tests.cli.engines import gpuconsole, run_to_end, start
from tests.rig.engines import Engine
from tests.rig.registry import Registry

pytestmark = pytest.mark.engine


def listed(engine: Engine) -> dict[str, dict[str, Any]]:
    done = gpuconsole(engine, "images", "--json")
    assert done.code == 0, done.talk
    assert done.document["schema"] == "gpuconsole.images/1"
    return {entry["name"]: entry for entry in done.document["images"]}


def test_versions_inside_and_who_says_so(engine: Engine) -> None:
    engine.load("small")
    engine.load("cuda-env")
    found = listed(engine)
    facts = found["gpuconsole-test/cuda-env:1"]["facts"]
    assert facts["torch"] == {"value": "2.9.0", "source": "env", "key": "PYTORCH_VERSION"}
    assert facts["cuda"] == {"value": "12.8.1", "source": "env", "key": "CUDA_VERSION"}
    assert facts["require_cuda"]["value"] == "cuda>=12.8"
    assert found["gpuconsole-test/small:1"]["facts"]["torch"] is None
    text = gpuconsole(engine, "images").text
    row = next(line for line in text.splitlines() if "cuda-env" in line).split()
    assert row[2:5] == ["2.9.0", "12.8.1", "–"]


def test_an_official_tag_tells_what_is_inside(engine_modern: Engine) -> None:
    engine_modern.docker("tag", engine_modern.load("small"), "pytorch/pytorch:2.9.1-cuda13.0-cudnn9-devel")
    tags = {tag: entry for entry in listed(engine_modern).values() for tag in entry["tags"]}
    facts = tags["pytorch/pytorch:2.9.1-cuda13.0-cudnn9-devel"]["facts"]
    assert (facts["torch"]["value"], facts["cuda"]["value"], facts["kind"]["value"]) == ("2.9.1", "13.0", "devel")
    assert facts["torch"]["source"] == "tag"


def test_users_are_named(engine: Engine) -> None:
    start(engine, "alive")
    run_to_end(engine, "over", command=("true",))
    entry = listed(engine)["gpuconsole-test/small:1"]
    assert entry["used_by"] == ["alive", "over"]
    assert "alive,over" in gpuconsole(engine, "images").text


def test_a_line_for_each_image_or_for_each_tag(engine_modern: Engine) -> None:
    engine_modern.docker("tag", engine_modern.load("small"), "another/name:2")
    short = gpuconsole(engine_modern, "images").text
    assert ("another/name:2" in short) != ("gpuconsole-test/small:1" in short)
    assert "(+1)" in short
    long = gpuconsole(engine_modern, "images", "--all").text
    assert "another/name:2" in long
    assert "gpuconsole-test/small:1" in long


def test_images_of_one_second_keep_their_places(engine: Engine) -> None:
    for name in ("small", "bare", "layers", "cuda-env", "entrypoint"):
        engine.load(name)
    lists = [[each.name for each in Session(host=engine.host).engine.images()] for _ in range(8)]
    assert all(each == lists[0] for each in lists), "the engine gives them in no order"
    assert lists[0] == sorted(lists[0]), "made in one second, all of them"


def test_an_image_known_by_its_digest_alone_is_called_so(engine: Engine, registry: Registry) -> None:
    first = engine.load("layers")
    engine.docker("rmi", "--force", engine.images()[first])  # with the digests that other registries gave it
    reference = registry.push(engine, engine.load("layers"), name="org/pinned:1")
    engine.docker("rmi", "gpuconsole-test/layers:1")
    pinned = f"{reference.removesuffix(':1')}@{registry.digest('org/pinned', '1')}"
    engine.docker("pull", pinned)
    entry = listed(engine)[pinned]
    assert entry["tags"] == []
    text = gpuconsole(engine, "images").text
    assert f"{pinned.partition('@')[0]}@{pinned.rpartition(':')[2][:12]}" in text
    assert "<none>" not in text
    assert f"@{pinned.rpartition(':')[2][:4]}" in text
    engine.docker("run", "-d", "--name", "box", pinned, "sleep", "1000000")
    assert f"pinned @{pinned.rpartition(':')[2][:4]}" in gpuconsole(engine, "ps").text


def test_no_images_is_said(start_own_engine: Callable[..., Engine]) -> None:
    engine = start_own_engine("26.1")
    done = gpuconsole(engine, "images")
    assert (done.code, done.out) == (0, b"")
    assert "No images" in done.talk
    assert gpuconsole(engine, "images", "--json").document["images"] == []
