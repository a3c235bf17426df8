"""`pin` and launches by digest, on both image stores: what is pinned, what moved, what is gone, what is not known."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.projects import Project, docker_config, in_registry, moved
from tests.rig.engines import Engine
from tests.rig.nvml.presets import h200
from tests.rig.nvml.simulated import NvmlBox
from tests.rig.nvml.state import NvmlState
from tests.rig.registry import Registry

pytestmark = pytest.mark.engine


@pytest.fixture
def project(engine: Engine, tmp_path: Path) -> Project:
    return Project(engine, tmp_path)


@pytest.fixture
def modern(engine_modern: Engine, tmp_path: Path) -> Project:
    return Project(engine_modern, tmp_path)


def rows(project: Project, *arguments: str) -> tuple[int, dict[str, dict[str, Any]]]:
    done = project.run("pin", "--json", *arguments)
    assert done.document["schema"] == "gpuconsole.pins/1"
    assert done.document["lock_file"] == str(project.lock)
    return done.code, {row["reference"]: row for row in done.document["pins"]}


def launched(project: Project, name: str, image: str, *options: str) -> dict[str, Any]:
    done = project.run("launch", image, "--gpus", "none", "--name", name, *options, "--", "sleep", "100000")
    assert done.code == 0, done.talk
    found = json.loads(project.engine.docker("inspect", name).stdout)[0]
    assert isinstance(found, dict)
    return found


def test_a_pin_is_kept_when_the_tag_moves(project: Project, registry: Registry) -> None:
    """The whole line: pin, launch, the tag moves, the old one is started, the move is found, the new one is taken."""
    engine = project.engine
    target = in_registry(engine, registry, "org/line:1")
    old = registry.digest("org/line", "1")
    assert project.run("pull", target).code == 0
    assert project.run("pin", target).text == f"{target}@{old}\n"
    assert rows(project, "--check")[0] == 0
    first = launched(project, "first", target)
    new = moved(registry, target)
    engine.docker("pull", target)  # somebody else on the machine takes the new one
    code, found = rows(project, "--check")
    assert code == 1
    assert found[target]["state"] == "moved"
    assert (found[target]["digest"], found[target]["now"], found[target]["here"]) == (old, new, True)
    second = launched(project, "second", target)
    assert second["Image"] == first["Image"]
    assert second["Config"]["Image"] == f"{target}@{old}"
    assert second["Config"]["Labels"]["gpuconsole.digest"] == old
    assert second["Config"]["Labels"]["gpuconsole.image"] == target
    assert f"line 1 @{old[7:11]}" in project.run("ps").text
    done = project.run("pin", "--update")
    assert done.text == f"{target}@{new}\n"
    assert "before" in done.talk
    assert rows(project, "--check")[0] == 0
    assert launched(project, "third", target)["Config"]["Labels"]["gpuconsole.digest"] == new


def test_a_launch_starts_by_digest_what_it_finds_or_pulls(project: Project, registry: Registry) -> None:
    target = in_registry(project.engine, registry, "org/started:1")
    digest = registry.digest("org/started", "1")
    done = project.run("launch", target, "--gpus", "none", "--dry-run")
    assert "is not here" in done.talk
    assert f" {target}\n" in done.text
    box = launched(project, "pulled", target)
    assert box["Config"]["Image"] == f"{target}@{digest}"
    assert box["Config"]["Labels"]["gpuconsole.digest"] == digest
    done = project.run("launch", target, "--gpus", "none", "--dry-run")
    assert f" {target}@{digest}\n" in done.text
    again = project.run("launch", target, "--gpus", "none", "--json", "--name", "again", "--", "sleep", "1000")
    assert (again.document["container"]["image"], again.document["container"]["digest"]) == (target, digest)


def test_an_image_that_no_registry_gave_is_started_by_its_id(engine_modern: Engine, tmp_path: Path) -> None:
    project = Project(engine_modern, tmp_path)
    small = "org/local:1"
    engine_modern.docker("tag", engine_modern.load("small"), small)
    own = engine_modern.images()[small]
    box = launched(project, "local", small)
    assert box["Config"]["Image"] == own
    assert box["Config"]["Labels"]["gpuconsole.digest"] == own
    assert box["Config"]["Labels"]["gpuconsole.image"] == small
    done = project.run("pin", small)
    assert done.code == 0
    assert done.text == f"{own}\n"
    assert "known here only" in done.talk
    code, found = rows(project, "--check")
    assert (code, found[small]["state"], found[small]["id"]) == (0, "same", own)
    layers = engine_modern.load("layers")
    engine_modern.docker("tag", layers, small)
    code, found = rows(project, "--check")
    assert (code, found[small]["state"]) == (1, "moved")
    assert launched(project, "still", small)["Image"] == own
    project.lock.write_text(project.lock.read_text().replace(own, f"sha256:{'0' * 64}"))
    code, found = rows(project, "--check")
    assert (code, found[small]["state"]) == (1, "gone")
    done = project.run("launch", small, "--gpus", "none")
    assert done.code == 5
    assert "pins" in done.talk


def test_a_pulled_pin_shows_by_its_digest_never_as_none(project: Project, registry: Registry) -> None:
    target = in_registry(project.engine, registry, "org/digest-only:1", image="layers")
    project.engine.docker("rmi", "gpuconsole-test/layers:1")
    digest = registry.digest("org/digest-only", "1")
    done = project.run("pin", target)
    assert done.code == 0, done.talk
    assert "not here yet" in done.talk
    assert launched(project, "box", target)["Config"]["Image"] == f"{target}@{digest}"
    text = project.run("images").text
    assert f"{target.rpartition(':')[0]}@{digest[7:19]}" in text
    assert "<none>" not in text
    code, found = rows(project)
    assert (code, found[target]["here"]) == (0, True)


def test_what_became_of_pins_is_told_apart(modern: Project, registry: Registry) -> None:
    """A tag that moved, one that is gone, an image that is gone, and a registry that is not heard."""
    engine = modern.engine
    stays = in_registry(engine, registry, "org/fates:stays")
    goes = in_registry(engine, registry, "org/fates:goes")
    moves = in_registry(engine, registry, "org/fates:moves")
    lost = in_registry(engine, registry, "org/fates-lost:1")
    assert modern.run("pin", stays, goes, moves, lost).code == 0
    moved(registry, moves)
    tags = registry.folder / "data/docker/registry/v2/repositories/org/fates/_manifests/tags/goes"
    _remove(tags)
    _remove(registry.folder / "data/docker/registry/v2/repositories/org/fates-lost/_manifests")
    code, found = rows(modern, "--check")
    assert code == 1
    assert {name.rpartition("/")[2]: row["state"] for name, row in found.items()} == {
        "fates:stays": "same",
        "fates:goes": "moved",
        "fates:moves": "moved",
        "fates-lost:1": "gone",
    }
    assert found[goes]["now"] is None
    assert rows(modern, "--check", stays)[0] == 0
    talk = modern.run("pin", "--check").talk
    assert "the tag is gone" in talk
    registry.kill()
    code, found = rows(modern, "--check")
    assert code == 1
    assert {row["state"] for row in found.values()} == {"unknown"}
    assert "was not heard" in modern.run("pin", "--check").talk
    before = modern.lock.read_text()
    done = modern.run("pin", "--update")
    assert done.code == 9
    assert "stays" in done.talk
    assert modern.lock.read_text() == before


def _remove(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder)


def test_what_is_not_known_is_said_and_not_guessed(modern: Project, registry: Registry) -> None:
    target = in_registry(modern.engine, registry, "org/unknown:1")
    digest = registry.digest("org/unknown", "1")
    gone = modern.run("pin", f"{registry.address}/org/unknown:2")
    assert gone.code == 5
    assert "has no such image" in gone.talk
    modern.engine.docker("pull", target)
    registry.kill()
    offline = modern.run("pin", f"{registry.address}/org/unknown:3")
    assert offline.code == 9
    assert "does not say what it means" in offline.talk
    assert not modern.lock.exists()
    here = modern.run("pin", target)
    assert here.code == 0, here.talk
    assert here.text == f"{target}@{digest}\n"
    assert "was not heard" in here.talk


def test_a_registry_that_wants_a_login(engine_modern: Engine, registry_with_password: Registry, tmp_path: Path) -> None:
    project = Project(engine_modern, tmp_path)
    target = in_registry(engine_modern, registry_with_password, "org/locked:1")
    done = project.run("pin", target, DOCKER_CONFIG=docker_config(tmp_path / "none"))
    assert done.code == 7, done.talk
    assert f"docker login {registry_with_password.address}" in done.talk
    registry_with_password.login(engine_modern)
    assert project.run("pin", target).code == 0


def test_without_an_engine_pins_are_kept_too(registry: Registry, engine_modern: Engine, tmp_path: Path) -> None:
    project = Project(engine_modern, tmp_path)
    target = in_registry(engine_modern, registry, "org/no-engine:1")
    nobody = "unix:///nowhere/docker.sock"
    done = project.run("--host", nobody, "pin", target)
    assert done.code == 0, done.talk
    assert done.text == f"{target}@{registry.digest('org/no-engine', '1')}\n"
    done = project.run("--host", nobody, "pin", "--check", "--json")
    assert done.code == 0, done.talk
    assert done.document["pins"][0]["here"] is None
    registry.kill()
    done = project.run("--host", nobody, "pin", f"{registry.address}/org/no-engine:2")
    assert done.code == 9
    assert "no engine answers" in done.talk


def test_latest_is_warned_of_with_a_tag_that_runs_here(modern: Project, registry: Registry) -> None:
    target = in_registry(modern.engine, registry, "org/newest:latest")
    modern.engine.docker("pull", target)
    for written in (target, target.removesuffix(":latest")):
        done = modern.run("launch", written, "--gpus", "none", "--dry-run")
        assert "latest means another image with every release" in done.talk
    assert modern.run("pin", target).code == 0
    assert "latest means" not in modern.run("launch", target, "--gpus", "none", "--dry-run").talk
    assert "latest means" not in modern.run("launch", modern.engine.load("small"), "--gpus", "none", "--dry-run").talk


def test_latest_of_a_known_image_names_the_newest_that_runs_here(modern: Project, nvml_box: NvmlBox) -> None:
    nvml_box.write(NvmlState(gpus=(h200(0),)))
    done = modern.run("launch", "pytorch/pytorch", "--gpus", "none", "--dry-run", env=nvml_box.env())
    assert done.code == 0, done.talk
    match = re.search(r"newest of the catalog that runs here is (pytorch/pytorch:\S+-runtime)\.", done.talk)
    assert match, done.talk
    catalog = modern.run("catalog", "--all", "--json", env=nvml_box.env()).document["images"]
    runs = [one["reference"] for one in catalog if one["verdict"] in ("runs", "runs_with")]
    assert match[1] in runs


def test_pins_are_listed_and_taken_away(modern: Project, registry: Registry) -> None:
    target = in_registry(modern.engine, registry, "org/listed:1")
    empty = modern.run("pin")
    assert (empty.code, empty.text) == (0, "")
    assert "gpuconsole pin REF" in empty.talk
    assert modern.run("pin", target).code == 0
    assert "as before" in modern.run("pin", target).talk
    text = modern.run("pin").text
    assert target in text
    assert "linux/amd64" in text
    assert modern.run("pin", "--check", "ubuntu:22.04").code == 5
    assert modern.run("--readonly", "pin", "--remove", target).code == 7
    assert modern.run("--readonly", "pin", "--update").code == 7
    assert modern.run("--readonly", "pin", "--check").code == 0
    assert modern.run("pin", "--remove").code == 2
    before = modern.lock.read_bytes()
    for two in (("--check", "--update"), ("--update", "--check"), ("--check", "--remove"), ("--remove", "--update")):
        refused = modern.run("pin", *two, target)
        assert (refused.code, "do not go together" in refused.talk) == (2, True), refused.talk
    assert modern.lock.read_bytes() == before
    assert modern.run("pin", "--remove", target).text == f"{target}\n"
    assert rows(modern) == (0, {})


def test_a_lock_file_with_mistakes_stops_what_would_go_by_it(modern: Project) -> None:
    small = modern.engine.load("small")
    modern.lock.write_text(f'[image."{small}"]\ndigest = "sha256:short"\n')
    for arguments in (("pin",), ("pin", "--check"), ("pin", small), ("pull", small), ("launch", small)):
        done = modern.run(*arguments)
        assert done.code == 8, (arguments, done.talk)
        assert "./gpuconsole.lock" in done.talk
        assert "64 hexadecimal" in done.talk
    assert "short" in modern.lock.read_text()


def test_a_project_is_its_folder_and_what_is_below(modern: Project, registry: Registry) -> None:
    target = in_registry(modern.engine, registry, "org/below:1")
    assert modern.run("pin", target).code == 0
    below = modern.folder / "src/deep"
    below.mkdir(parents=True)
    assert target in modern.run("pin", folder=below).text
    assert "pins" in modern.run("launch", target, "--gpus", "none", "--dry-run", folder=below).talk
    outside = modern.folder.parent / f"{modern.folder.name}-outside"
    outside.mkdir()
    assert modern.run("pin", folder=outside).text == ""
