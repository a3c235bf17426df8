"""`pull` from a real registry: progress, ends of every kind, and nothing half made."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuconsole.images.reference import parse
from gpuconsole.images.registry import Registries
from tests.cli.engines import wait_until
from tests.cli.projects import Project, docker_config, in_registry, moved, records
from tests.rig.engines import Engine
from tests.rig.fresh import fresh_image
from tests.rig.registry import Registry
from tests.rig.terminal import Terminal

pytestmark = pytest.mark.engine


@pytest.fixture
def project(engine: Engine, tmp_path: Path) -> Project:
    return Project(engine, tmp_path)


@pytest.fixture(params=["engine_old", "engine_modern", "engine_containerd"])
def elsewhere(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    """A project on each kind of engine."""
    return Project(request.getfixturevalue(request.param), tmp_path)


@pytest.fixture
def fresh(registry: Registry) -> str:
    """An image of which no engine has a layer of its own."""
    return fresh_image(registry)


def test_what_a_pull_brings(project: Project, registry: Registry) -> None:
    target = in_registry(project.engine, registry, "org/brought:1")
    digest = registry.digest("org/brought", "1")
    done = project.run("pull", target)
    assert done.code == 0, done.talk
    assert done.text == f"{target}@{digest}\n"
    assert "Pulling" in done.talk
    assert "\x1b" not in done.talk
    assert not project.lock.exists()
    again = project.run("pull", target)
    assert "is here already" in again.talk
    newer = moved(registry, target)
    third = project.run("pull", target)
    assert third.text == f"{target}@{newer}\n"
    assert "led to another image before" in third.talk


def test_several_at_once_and_one_that_is_not_there(project: Project, registry: Registry) -> None:
    one = in_registry(project.engine, registry, "org/several:1")
    two = in_registry(project.engine, registry, "org/several:2", image="layers")
    none = f"{registry.address}/org/several:2.0-rc"
    done = project.run("pull", "--json", none, one, two)
    lines = records(done.text)
    assert lines[0] == {"schema": "gpuconsole.pull/1", "references": [none, one, two]}
    assert {line["reference"] for line in lines if line.get("event") == "pulled"} == {one, two}
    (failed,) = [line for line in lines if line.get("event") == "failed"]
    assert failed["reference"] == none
    assert failed["exit_code"] == done.code == 5
    assert project.has(one)
    assert project.has(two)


@pytest.mark.parametrize("form", [["--json"], []])
def test_a_reader_that_leaves_ends_no_pull_and_changes_no_exit_code(
    engine_modern: Engine, registry: Registry, fresh: str, tmp_path: Path, form: list[str]
) -> None:
    project = Project(engine_modern, tmp_path)
    missing = f"{fresh}-none"
    running = project.begin("pull", "--pin", *form, fresh, missing)
    assert running.stdout is not None
    assert running.stderr is not None
    if form:
        assert "gpuconsole.pull/1" in running.stdout.readline()
    running.stdout.close()
    told = running.stderr.read()
    assert running.wait(timeout=300) == 5, told
    assert project.has(fresh)
    assert fresh in project.lock.read_text()


def test_progress_of_layers_over_a_slow_line(elsewhere: Project, registry: Registry, fresh: str) -> None:
    target = registry.over_the_line(fresh)
    registry.line.limit(bytes_per_second=700_000)
    done = elsewhere.run("pull", "--json", target)
    assert done.code == 0, done.talk
    lines = records(done.text)
    steps = [line for line in lines if line.get("event") == "progress" and line["layers"]]
    (end,) = [line for line in lines if line.get("event") == "pulled"]
    assert len(steps) >= 3
    assert all(step["reference"] == target for step in steps)
    assert [step["current_bytes"] for step in steps] == sorted(step["current_bytes"] for step in steps)
    # The registry names the sizes beforehand, so the total does not grow; layers the engine has already leave it.
    totals = [step["total_bytes"] for step in steps]
    assert totals == sorted(totals, reverse=True)
    assert 10_000_000 < totals[-1] <= end["download_bytes"]
    told = [step for step in steps if step["left_s"] is not None]
    assert told
    assert all(step["bytes_per_s"] > 0 for step in told if step["left_s"])
    assert steps[-1]["layers"] >= 3


def test_the_picture_on_a_terminal(
    engine_modern: Engine, registry: Registry, fresh: str, open_terminal: Callable[..., Terminal]
) -> None:
    target = registry.over_the_line(fresh)
    registry.line.limit(bytes_per_second=300_000)
    terminal = open_terminal(engine_modern, "pull", target, COLUMNS="80")
    terminal.wait_for("downloading", patience_s=60)
    terminal.wait_for("B/s · ", patience_s=60)
    terminal.wait_for(" left", patience_s=60)
    registry.line.restore()
    assert terminal.wait(patience_s=120) == 0
    text = terminal.text
    assert "unpacked)" in text
    assert f"{target}@sha256:" in text.replace("\n", "").replace("\r", "")


def begun(project: Project, registry: Registry, target: str) -> Callable[..., tuple[int, str, str]]:
    """A pull of which the first bytes of a layer have come; gives a function that waits for its end."""
    running = project.begin("pull", target)
    wait_until(lambda: registry.line.sent_bytes > 200_000, "the first bytes of a layer")

    def end(number: int | None = None) -> tuple[int, str, str]:
        if number is not None:
            running.send_signal(number)
        out, err = running.communicate(timeout=300)
        return running.returncode, out, err

    return end


def test_a_registry_that_is_killed_leaves_no_half_image(elsewhere: Project, registry: Registry, fresh: str) -> None:
    target = registry.over_the_line(fresh)
    registry.line.limit(bytes_per_second=100_000)
    end = begun(elsewhere, registry, target)
    registry.kill()
    registry.line.cut()
    code, out, err = end()
    assert code == 9, err
    assert out == ""
    assert "broke off" in err or "cannot reach" in err
    assert "  → " in err
    assert "Traceback" not in err
    assert not elsewhere.has(target)
    registry.reset()
    assert elsewhere.run("pull", target).code == 0
    assert elsewhere.has(target)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_pull_in_the_engine(
    elsewhere: Project, registry: Registry, fresh: str, number: int
) -> None:
    target = registry.over_the_line(fresh)
    registry.line.limit(bytes_per_second=50_000)
    end = begun(elsewhere, registry, target)
    code, out, err = end(number)
    assert code == 130, err
    assert out == ""
    assert "was not pulled" in err
    assert not elsewhere.has(target)


def test_a_tag_that_is_not_there_names_the_nearest(engine_modern: Engine, registry: Registry, tmp_path: Path) -> None:
    project = Project(engine_modern, tmp_path)
    for tag in ("2.9.0-cuda12.8-cudnn9-runtime", "2.9.1-cuda13.0-cudnn9-devel", "nightly"):
        in_registry(engine_modern, registry, f"org/tags:{tag}")
    done = project.run("pull", f"{registry.address}/org/tags:2.9-cuda12.8-cudnn9-runtime")
    assert done.code == 5
    assert "org/tags:2.9-cuda12.8-cudnn9-runtime: its registry has no such tag" in done.talk
    assert "2.9.0-cuda12.8-cudnn9-runtime" in done.talk
    assert "nightly" not in done.talk
    done = project.run("pull", f"{registry.address}/org/never-seen:1")
    assert done.code == 5
    assert "org/never-seen:1: its registry has nothing of that name" in done.talk
    done = project.run("pull", f"{registry.address}/org/tags@sha256:{'0' * 64}")
    assert done.code == 5
    assert f"org/tags@sha256:{'0' * 64}: its registry has nothing of that digest" in done.talk


def test_a_launch_explains_its_pull_as_pull_does(engine_modern: Engine, registry: Registry, tmp_path: Path) -> None:
    project = Project(engine_modern, tmp_path)
    in_registry(engine_modern, registry, "org/launched:2.9.0-runtime")
    done = project.run("launch", f"{registry.address}/org/launched:2.9-runtime", "--gpus", "none")
    assert done.code == 5, done.talk
    assert "The nearest it has: 2.9.0-runtime" in done.talk
    assert engine_modern.docker("ps", "--all", "--quiet").stdout == ""


def test_a_login_is_asked_for_by_the_registrys_name(
    engine: Engine, registry_with_password: Registry, tmp_path: Path
) -> None:
    project = Project(engine, tmp_path)
    target = in_registry(engine, registry_with_password, "org/secret:1")
    done = project.run("pull", target, DOCKER_CONFIG=docker_config(tmp_path / "none"))
    assert done.code == 7, done.talk
    assert f"docker login {registry_with_password.address}" in done.talk
    registry_with_password.login(engine)
    assert project.run("pull", target).code == 0


def test_a_helper_that_needs_a_desktop_is_said_to_be_one(
    engine_modern: Engine, registry: Registry, tmp_path: Path
) -> None:
    project = Project(engine_modern, tmp_path)
    target = in_registry(engine_modern, registry, "org/helped:1")
    helper = tmp_path / "docker-credential-desk"
    helper.write_text("#!/bin/sh\necho 'Cannot autolaunch D-Bus without X11 $DISPLAY' >&2\nexit 1\n")
    helper.chmod(0o755)
    done = project.run(
        "pull",
        target,
        DOCKER_CONFIG=docker_config(tmp_path / "config", credsStore="desk"),
        PATH=f"{tmp_path}:{os.environ['PATH']}",
    )
    assert done.code == 9, done.talk
    assert "login" in done.talk
    assert "desktop" in done.talk
    assert "Traceback" not in done.talk


def test_a_layer_that_is_damaged_in_the_registry(elsewhere: Project, registry: Registry, fresh: str) -> None:
    (layers,) = Registries(lambda _: None).describe(parse(fresh)).layers.values()
    digest = max(layers, key=lambda each: layers[each]).partition(":")[2]
    layer = registry.folder / f"data/docker/registry/v2/blobs/sha256/{digest[:2]}/{digest}/data"
    content = bytearray(layer.read_bytes())
    content[len(content) // 2] ^= 0xFF
    layer.write_bytes(content)
    done = elsewhere.run("pull", fresh)
    assert done.code == 9, done.talk
    assert "not what its digest promises" in done.talk
    assert not elsewhere.has(fresh)


def test_an_image_for_another_processor_is_not_pulled(
    engine_modern: Engine, registry: Registry, tmp_path: Path
) -> None:
    project = Project(engine_modern, tmp_path)
    (tmp_path / "a").write_text("x")
    engine_modern.docker("import", "--platform", "linux/s390x", "-", "other:1", stdin=_tar(tmp_path).decode("latin-1"))
    target = registry.push(engine_modern, "other:1", name="org/other-processor:1")
    done = project.run("pull", target)
    assert done.code == 5, done.talk
    assert "linux/s390x" in done.talk
    assert "linux/amd64" in done.talk
    assert not project.has(target)
    engine_modern.docker("rmi", "other:1")


def _tar(folder: Path) -> bytes:
    import io
    import tarfile

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.add(folder / "a", "a")
    return buffer.getvalue()


def test_what_cannot_be_pulled(engine_modern: Engine, registry: Registry, tmp_path: Path) -> None:
    project = Project(engine_modern, tmp_path)
    for text, word in (("UPPER:1", "lower case"), (f"sha256:{'0' * 64}", "id cannot be pulled"), ("a b", "image name")):
        done = project.run("pull", text)
        assert done.code == 2, done.talk
        assert word in done.talk
    assert project.run("pull").code == 2
    done = project.run("--readonly", "pull", "ubuntu:22.04")
    assert done.code == 7
    registry.kill()
    done = project.run("pull", f"{registry.address}/org/x:1")
    assert done.code == 9
    assert f"cannot reach {registry.address}" in done.talk


def test_pulls_take_what_the_folder_pins(project: Project, registry: Registry) -> None:
    target = in_registry(project.engine, registry, "org/pinned-pull:1")
    digest = registry.digest("org/pinned-pull", "1")
    assert project.run("pull", "--pin", target).code == 0
    assert digest in project.lock.read_text()
    project.engine.docker("rmi", target)
    newer = moved(registry, target)
    assert newer != digest
    done = project.run("pull")
    assert done.code == 0, done.talk
    assert done.text == f"{target}@{digest}\n"
    assert "pins it" in done.talk
    inside = project.folder / "src"
    inside.mkdir()
    assert project.run("pull", target, folder=inside).text == done.text
    project.lock.unlink()
    assert project.run("pull", target).text == f"{target}@{newer}\n"
