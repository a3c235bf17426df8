"""Pulls from a real registry: what comes through, what is missing, and lines that break."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from gpuconsole.core.errors import EngineRefused, NotFound, Refused, UsageError
from gpuconsole.engine.docker.engine import DockerEngine
from gpuconsole.engine.endpoint import Endpoint
from tests.engine.contract import until
from tests.rig.client import EngineClient
from tests.rig.fresh import fresh_image
from tests.rig.registry import PASSWORD, USER, Registry

pytestmark = pytest.mark.engine


@pytest.fixture
def ours(engine: EngineClient) -> Iterator[DockerEngine]:
    client = DockerEngine.connect(Endpoint(engine.host, "--host"))
    yield client
    client.close()


def pushed(engine: EngineClient, registry: Registry, image: str) -> str:
    """An image that the registry has and the engine has not."""
    target = registry.push(engine, engine.load(image))
    engine.docker("rmi", "--force", engine.load(image), check=False)
    return target


@pytest.fixture
def fresh(registry: Registry) -> str:
    """An image no engine ever had."""
    return fresh_image(registry)


@pytest.fixture(params=["26.1", "26.1-containerd"])
def puller(request: pytest.FixtureRequest) -> EngineClient:
    """An engine whose way of pulling tells sizes and can be ended."""
    name = "engine_modern" if request.param == "26.1" else "engine_containerd"
    engine: EngineClient = request.getfixturevalue(name)
    return engine


def test_layers_come_with_their_progress(puller: EngineClient, registry: Registry, fresh: str) -> None:
    ours, target = DockerEngine.connect(Endpoint(puller.host, "--host")), registry.over_the_line(fresh)
    registry.line.limit(bytes_per_second=1_000_000)  # an engine tells sizes now and then only, of layers under way
    steps = list(ours.pull(target))
    layers = {step.layer for step in steps if step.layer}
    assert len(layers) >= 2
    sizes = [step for step in steps if step.total_bytes]
    assert sizes
    assert all(step.current_bytes is not None and step.layer for step in sizes)
    assert any("Digest: sha256:" in step.status for step in steps)
    image = ours.image(target)
    name, tag = target.rsplit("/", 1)[1].split(":")
    digest = registry.digest(f"gpuconsole-test/{name}", tag)
    assert f"{target.rsplit(':', 1)[0]}@{digest}" in image.digests
    again = [step.status for step in ours.pull(target)]
    assert any("up to date" in status for status in again)
    ours.close()


def test_an_image_by_its_digest(engine: EngineClient, registry: Registry, ours: DockerEngine) -> None:
    target = fresh_image(registry, megabytes=())
    name, _, tag = target.partition("/")[2].rpartition(":")
    pinned = f"{target.rpartition(':')[0]}@{registry.digest(name, tag)}"
    list(ours.pull(pinned))
    image = ours.image(pinned)
    assert image.tags == ()
    assert image.name == pinned
    assert pinned in {digest for one in ours.images() for digest in one.digests}


@pytest.mark.parametrize("missing", ["gpuconsole-test/small:no-such-tag", "no-such/name:1", "no-such"])
def test_what_the_registry_does_not_have(
    missing: str, engine: EngineClient, registry: Registry, ours: DockerEngine
) -> None:
    registry.push(engine, engine.load("small"))
    with pytest.raises(NotFound) as caught:
        list(ours.pull(f"{registry.address}/{missing}"))
    assert "no such image" in caught.value.message
    assert caught.value.hint


def test_a_login_is_needed_and_the_docker_commands_is_taken(
    engine: EngineClient, registry_with_password: Registry, ours: DockerEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = pushed(engine, registry_with_password, "small")
    with pytest.raises(Refused, match="without a login") as caught:
        list(ours.pull(target))
    assert "docker login" in caught.value.hint
    assert USER not in caught.value.detail
    assert PASSWORD not in caught.value.detail
    monkeypatch.setenv("DOCKER_CONFIG", engine.env()["DOCKER_CONFIG"])
    registry_with_password.login(engine)
    with_login = DockerEngine.connect(Endpoint(engine.host, "--host"))
    list(with_login.pull(target))
    assert with_login.image(target)
    with_login.close()


def test_a_registry_that_is_down(engine: EngineClient, registry: Registry, ours: DockerEngine) -> None:
    target = pushed(engine, registry, "small")
    registry.kill()
    with pytest.raises(EngineRefused, match="cannot reach the registry") as caught:
        list(ours.pull(target))
    assert "connection refused" in caught.value.message
    assert caught.value.hint


def test_a_line_that_breaks_in_a_layer(puller: EngineClient, registry: Registry, fresh: str) -> None:
    ours = DockerEngine.connect(Endpoint(puller.host, "--host"))
    target = registry.over_the_line(fresh)
    registry.line.limit(cut_after_bytes=1_000_000)
    with pytest.raises(EngineRefused) as caught:
        list(ours.pull(target))
    assert caught.value.hint
    assert "reach the registry" in caught.value.message or "download broke off" in caught.value.message
    with pytest.raises(NotFound):
        ours.image(target)
    registry.line.restore()
    list(ours.pull(target))
    assert ours.image(target)
    ours.close()


def _rests(registry: Registry) -> bool:
    """Whether nothing comes over the slow line any more, which else brings a piece several times a second."""
    before = registry.line.sent_bytes
    time.sleep(2)
    return registry.line.sent_bytes == before


def test_closing_ends_a_pull_in_the_engine_too(puller: EngineClient, registry: Registry, fresh: str) -> None:
    ours = DockerEngine.connect(Endpoint(puller.host, "--host"))
    target = registry.over_the_line(fresh)
    registry.line.limit(bytes_per_second=50_000)  # more than a minute for the largest layer
    stream, seen = ours.pull(target), threading.Event()

    def read() -> None:
        for step in stream:
            if step.current_bytes:
                seen.set()

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    until(seen.is_set, what="the first bytes of a layer")
    stream.close()
    thread.join(60)
    assert not thread.is_alive()
    until(lambda: _rests(registry), what="nothing more is fetched")
    registry.line.restore()
    with pytest.raises(NotFound):
        ours.image(target)


@pytest.mark.parametrize("reference", ["", "UPPER:1", "a b", "https://r/x", ":1", "x:"])
def test_what_is_no_reference(reference: str, ours: DockerEngine) -> None:
    with pytest.raises((UsageError, NotFound)) as caught:
        list(ours.pull(reference))
    assert caught.value.message
    assert caught.value.hint
