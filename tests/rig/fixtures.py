"""pytest fixtures of the rig: engines are shared by a worker's tests and brought back to rest after each."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NoReturn

import pytest

from tests.rig.client import EngineClient, InstalledEngine
from tests.rig.engines import Engine, start_engine
from tests.rig.kinds import KINDS
from tests.rig.owner import Rig
from tests.rig.places import RigUnavailable
from tests.rig.podman import Podman
from tests.rig.registry import Registry
from tests.rig.ssh import SshServer
from tests.rig.tmux import Tmux

INSTALLED = os.environ.get("GPUCONSOLE_TEST_ENGINE")
"""Address of an engine that is not the rig's, when somebody asks for it by this variable."""


def refuse(error: RigUnavailable) -> NoReturn:
    """Skip for a part that cannot be, or fail where GPUCONSOLE_RIG_REQUIRED=1 promises that it can."""
    if os.environ.get("GPUCONSOLE_RIG_REQUIRED") == "1":
        pytest.fail(f"the rig is required here: {error}", pytrace=False)
    pytest.skip(str(error))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test with `engine` on the kinds its marker names; without names on all."""
    if "engine" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("engine")
        chosen = (marker.args if marker else ()) or tuple(KINDS)
        metafunc.parametrize("engine", ("installed",) if INSTALLED else chosen, indirect=True)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Skip a test that asks a part for what it cannot do on this machine."""
    try:
        return (yield)
    except RigUnavailable as error:
        refuse(error)


@contextmanager
def _or_skip() -> Iterator[None]:
    try:
        yield
    except RigUnavailable as error:
        refuse(error)


@dataclass(slots=True)
class Bench:
    """The rig of one pytest worker and what has been started in it."""

    rig: Rig
    engines: dict[tuple[str, bool], Engine] = field(default_factory=dict)
    registries: dict[bool, Registry] = field(default_factory=dict)
    podman: Podman | None = None

    def engine(self, name: str, *, toolkit: bool) -> Engine:
        """Give an engine, started the first time."""
        if INSTALLED:
            raise RigUnavailable("needs a private engine, and GPUCONSOLE_TEST_ENGINE names another")
        key = (name, toolkit)
        if key not in self.engines:
            self.engines[key] = start_engine(self.rig, name, toolkit=toolkit)
        return self.engines[key]

    def registry(self, *, password: bool) -> Registry:
        """Give a registry, started the first time."""
        if password not in self.registries:
            self.registries[password] = Registry(self.rig, password=password)
        return self.registries[password]


@pytest.fixture(scope="session")
def rig_bench() -> Iterator[Bench]:
    """Give this worker's rig; everything in it is gone afterwards."""
    with _or_skip():
        rig = Rig()
    with rig:
        yield Bench(rig)


@pytest.fixture
def rig() -> Iterator[Rig]:
    """Give a rig of the test's own."""
    with _or_skip():
        own = Rig()
    with own:
        yield own


def _lend(bench: Bench, name: str, *, toolkit: bool) -> Iterator[Engine]:
    with _or_skip():
        engine = bench.engine(name, toolkit=toolkit)
    yield engine
    engine.reset()


@pytest.fixture(scope="session")
def installed_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InstalledEngine]:
    """Give the engine that GPUCONSOLE_TEST_ENGINE names."""
    with _or_skip():
        if not INSTALLED:
            raise RigUnavailable("GPUCONSOLE_TEST_ENGINE names no engine")
        engine = InstalledEngine(INSTALLED, folder=tmp_path_factory.mktemp("docker"))
    yield engine
    engine.give_back()


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> Iterator[EngineClient]:
    """Give each engine in turn: 20.10 with the toolkit, 26.1 with CDI, 26.1 with containerd's image store.

    A test's marker, `pytest.mark.engine("20.10", "26.1")`, chooses among them.
    """
    if request.param == "installed":
        installed: InstalledEngine = request.getfixturevalue("installed_engine")
        yield installed
        installed.reset()
        return
    bench: Bench = request.getfixturevalue("rig_bench")
    yield from _lend(bench, request.param, toolkit=not KINDS[request.param].has_cdi)


@pytest.fixture
def engine_modern(rig_bench: Bench) -> Iterator[Engine]:
    """Give 26.1 with CDI and without the toolkit."""
    yield from _lend(rig_bench, "26.1", toolkit=False)


@pytest.fixture
def engine_old(rig_bench: Bench) -> Iterator[Engine]:
    """Give 20.10 with the toolkit."""
    yield from _lend(rig_bench, "20.10", toolkit=True)


@pytest.fixture
def engine_containerd(rig_bench: Bench) -> Iterator[Engine]:
    """Give 26.1 with CDI and containerd's image store, where an image's id is its manifest's digest."""
    yield from _lend(rig_bench, "26.1-containerd", toolkit=False)


@pytest.fixture
def engine_toolkit(rig_bench: Bench) -> Iterator[Engine]:
    """Give 26.1 with both CDI and the toolkit."""
    yield from _lend(rig_bench, "26.1", toolkit=True)


@pytest.fixture
def engine_without_gpus(rig_bench: Bench) -> Iterator[Engine]:
    """Give 20.10 without the toolkit: nothing there can hand out a GPU."""
    yield from _lend(rig_bench, "20.10", toolkit=False)


@pytest.fixture
def podman(rig_bench: Bench) -> Iterator[Podman]:
    """Give Podman's Docker-compatible service."""
    with _or_skip():
        service = rig_bench.podman = rig_bench.podman or Podman(rig_bench.rig)
    yield service
    service.reset()


@pytest.fixture
def start_own_engine(rig: Rig) -> Callable[..., Engine]:
    """Give a function that starts an engine of the test's own, for tests that ruin it: see `start_engine`."""

    def start(name: str, **options: object) -> Engine:
        with _or_skip():
            return start_engine(rig, name, **options)  # type: ignore[arg-type]

    return start


@pytest.fixture
def small_image(engine: EngineClient) -> str:
    """Give the reference of a 2 MB image with busybox, in the test's `engine`."""
    return engine.load("small")


@pytest.fixture
def torch_image(engine: EngineClient) -> str:
    """Give the reference of the PyTorch CPU image, in the test's `engine`."""
    with _or_skip():
        return engine.load("pytorch")


def _lend_registry(bench: Bench, *, password: bool) -> Iterator[Registry]:
    with _or_skip():
        registry = bench.registry(password=password)
    yield registry
    registry.reset()


@pytest.fixture
def registry(rig_bench: Bench) -> Iterator[Registry]:
    """Give a registry on loopback that asks for nothing."""
    yield from _lend_registry(rig_bench, password=False)


@pytest.fixture
def registry_with_password(rig_bench: Bench) -> Iterator[Registry]:
    """Give a registry that asks for a name and a password."""
    yield from _lend_registry(rig_bench, password=True)


@pytest.fixture
def tmux(rig_bench: Bench) -> Iterator[Tmux]:
    """Give a fresh tmux server."""
    with _or_skip():
        server = Tmux(rig_bench.rig)
    yield server
    server.close()


@pytest.fixture
def sshd(rig_bench: Bench) -> Iterator[SshServer]:
    """Give a fresh SSH server with an empty home."""
    with _or_skip():
        server = SshServer(rig_bench.rig)
    yield server
    server.close()
