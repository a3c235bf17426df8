"""pytest fixtures of the rig: engines are shared by a worker's tests and brought back to rest after each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from tests.rig.engines import Engine, start_engine
from tests.rig.kinds import KINDS
from tests.rig.owner import Rig
from tests.rig.places import RigError, RigUnavailable


def refuse(error: RigUnavailable) -> None:
    """Skip for a part that cannot be, or fail where GPUCONSOLE_RIG_REQUIRED=1 promises that it can."""
    if os.environ.get("GPUCONSOLE_RIG_REQUIRED") == "1":
        pytest.fail(f"the rig is required here: {error}", pytrace=False)
    pytest.skip(str(error))


@dataclass(slots=True)
class Bench:
    """The rig of one pytest worker and the engines that have been started in it."""

    rig: Rig
    engines: dict[tuple[str, bool], Engine] = field(default_factory=dict)

    def engine(self, name: str, *, toolkit: bool) -> Engine:
        """Give an engine, started the first time."""
        key = (name, toolkit)
        if key not in self.engines:
            self.engines[key] = start_engine(self.rig, name, toolkit=toolkit)
        return self.engines[key]

    def rest(self, engine: Engine) -> None:
        """Bring an engine back to rest after a test."""
        engine.reset()


@pytest.fixture(scope="session")
def rig_bench() -> Iterator[Bench]:
    """Give this worker's rig; everything in it is gone afterwards."""
    try:
        rig = Rig()
    except RigUnavailable as error:
        refuse(error)
        raise
    with rig:
        yield Bench(rig)


def _lend(bench: Bench, name: str, *, toolkit: bool) -> Iterator[Engine]:
    try:
        engine = bench.engine(name, toolkit=toolkit)
    except RigUnavailable as error:
        refuse(error)
        raise
    yield engine
    bench.rest(engine)


@pytest.fixture(params=list(KINDS))
def engine(rig_bench: Bench, request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Give each engine in turn: 20.10 with the toolkit, 26.1 with CDI, 26.1 with containerd's image store."""
    yield from _lend(rig_bench, request.param, toolkit=not KINDS[request.param].has_cdi)


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
def start_engine_here(rig_bench: Bench) -> Callable[..., Engine]:
    """Give a function that starts an engine of one's own, for tests that ruin it: see `start_engine`."""

    def start(name: str, **options: object) -> Engine:
        try:
            return start_engine(rig_bench.rig, name, **options)  # type: ignore[arg-type]
        except RigUnavailable as error:
            refuse(error)
            raise

    return start


@pytest.fixture
def small_image(engine: Engine) -> str:
    """Give the reference of a 2 MB image with busybox, in the test's `engine`."""
    return engine.load("small")


@pytest.fixture
def torch_image(engine: Engine) -> str:
    """Give the reference of the PyTorch CPU image, in the test's `engine`."""
    return engine.load("pytorch")


__all__ = ["Bench", "RigError", "refuse"]
