"""What a launch shares with this machine, on a real engine: limits above its containers, sockets, devices, network."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuconsole.core.errors import ExitCode
from gpuconsole.launch.preflight import Finding, Severity
from gpuconsole.services.launching import launch
from gpuconsole.services.planning import LaunchPlan, plan_launch
from gpuconsole.services.preflight import LaunchRefused
from gpuconsole.services.session import Session
from tests.engine.launching import ignore, names, spec
from tests.rig.engines import Engine

pytestmark = pytest.mark.engine
GIB = 2**30
_LIMITS = (("sys/fs/cgroup/memory", "memory.limit_in_bytes", "-1"), ("sys/fs/cgroup", "memory.max", "max"))


@pytest.fixture
def session(engine_modern: Engine) -> Iterator[Session]:
    opened = Session(host=engine_modern.host)
    yield opened
    opened.close()


@pytest.fixture
def group(engine_modern: Engine) -> Iterator[Path]:
    """The file with the limit of the group that holds all containers of the engine; unlimited again afterwards."""
    parent = json.loads((engine_modern.folder / "daemon.json").read_text())["cgroup-parent"]
    engine_modern.docker("run", "--rm", engine_modern.load("small"), "true")
    for top, name, unlimited in _LIMITS:
        file = Path("/", top, parent.strip("/"), name)
        if file.exists() and os.access(file, os.W_OK):
            yield file
            file.write_text(unlimited)
            return
    pytest.skip("no limit can be set on the group of the engine's containers here")


def planned(session: Session, image: str, **options: Any) -> tuple[LaunchPlan, dict[str, Finding]]:
    plan = plan_launch(session, spec(image, "true", **options))
    return plan, {finding.slug: finding for finding in plan.findings}


def test_a_limit_above_the_containers_bounds_what_is_asked_for(
    engine_modern: Engine, session: Session, group: Path
) -> None:
    image = engine_modern.load("small")
    plan, found = planned(session, image, memory="3g")
    assert "memory-group" not in found
    assert plan.memory_group is None
    group.write_text(str(2 * GIB))
    plan, found = planned(session, image, memory="3g")
    assert "3 GiB is more than the 2 GiB that the control group /" in found["memory-group"].sentence
    assert plan.memory_group is not None
    assert str(group.parent).endswith(plan.memory_group.name)
    plan, _ = planned(session, image)
    assert plan.request.shm_bytes == GIB, "half of what all of them may have"
    container = launch(session, spec(image, "sleep", "99", name="inside"), ignore)
    assert container.ending is None
    group.write_text(str(64 * 2**20))
    _, found = planned(session, image)
    assert "are free" in found["memory-group"].sentence


def test_the_engines_socket_is_refused_under_another_name(
    engine_modern: Engine, session: Session, tmp_path: Path
) -> None:
    image = engine_modern.load("small")
    other = engine_modern.folder / "innocent"
    os.link(engine_modern.socket, other)
    (tmp_path / "link").symlink_to(engine_modern.socket)
    try:
        for source in (other, engine_modern.socket, tmp_path / "link", engine_modern.folder):
            with pytest.raises(LaunchRefused) as caught:
                launch(session, spec(image, "true", volumes=(f"{source}:/x:ro",)), ignore)
            assert [finding.slug for finding in caught.value.findings] == ["dangerous-mount"], source
            assert "command the engine itself" in caught.value.message
    finally:
        other.unlink()
    assert names(engine_modern) == []


def test_a_volume_over_the_engines_folder_is_refused(engine_modern: Engine, session: Session, tmp_path: Path) -> None:
    image = engine_modern.load("small")
    for name, path in (("innocent", engine_modern.folder), ("data", tmp_path)):
        options = ("--opt", "type=none", "--opt", "o=bind", "--opt", f"device={path}")
        engine_modern.docker("volume", "create", *options, name)
    engine_modern.docker("volume", "create", "plain")
    with pytest.raises(LaunchRefused) as caught:
        launch(session, spec(image, "true", volumes=("innocent:/x", "data:/d", "plain:/p", "new:/n")), ignore)
    (found,) = caught.value.findings
    assert found.sentence.startswith(f"The volume innocent, which is {engine_modern.folder}, (the engine's socket")
    _, calm = planned(session, image, volumes=("data:/d", "plain:/p", "new:/n"))
    assert "dangerous-mount" not in calm
    for name in ("innocent", "data"):
        engine_modern.docker("volume", "rm", name)


@pytest.mark.parametrize("linked", [False, True])
def test_the_whole_home_is_told_of_wherever_its_links_lead(
    engine_modern: Engine, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linked: bool
) -> None:
    image, disk, homes = engine_modern.load("small"), tmp_path / "disk", tmp_path / "home"
    (disk / "anna" / "project").mkdir(parents=True)
    if linked:
        homes.symlink_to(disk)
    home = (homes if linked else disk) / "anna"
    monkeypatch.setenv("HOME", str(home))
    for source, told in ((home, True), (disk / "anna", True), (disk, True), (home / "project", False)):
        _, found = planned(session, image, volumes=(f"{source}:/x",))
        assert ("home-mount" in found) == told, source


def test_devices_are_judged_by_what_they_are(engine_modern: Engine, session: Session) -> None:
    image = engine_modern.load("small")
    for device, slug in (("/dev/kmsg", "dangerous-device"), ("/dev/none-of-this-name", "device-missing")):
        with pytest.raises(LaunchRefused) as caught:
            launch(session, spec(image, "true", devices=(device,)), ignore)
        assert [finding.slug for finding in caught.value.findings] == [slug] or not Path(device).exists()
        missing = caught.value.findings[0].slug == "device-missing"
        assert caught.value.exit_code is (ExitCode.NOT_FOUND if missing else ExitCode.REFUSED), "as a missing folder"
    forced = launch(session, spec(image, "true", devices=("/dev/null:/dev/x",), force=("dangerous-device",)), ignore)
    assert forced.ending is not None
    assert forced.ending.exit_code == 0


def test_what_shares_the_machines_namespaces_is_told_and_begins(engine_modern: Engine, session: Session) -> None:
    _, found = planned(session, engine_modern.load("small"), network="host", ipc="host", group_add=("docker",))
    wanted = {"network-host": Severity.WARN, "ipc-host": Severity.HINT, "group-docker": Severity.WARN}
    assert {slug: found[slug].severity for slug in wanted} == wanted
