"""Joining a container's terminal holds two connections to the engine, and lets go of both."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from gpuconsole.core.errors import Conflict
from gpuconsole.engine.docker.engine import DockerEngine
from gpuconsole.engine.endpoint import Endpoint
from gpuconsole.engine.request import CreateRequest
from tests.engine.contract import until
from tests.rig.client import EngineClient
from tests.rig.kinds import RUNTIMES

pytestmark = pytest.mark.engine(*RUNTIMES)
TIMES = 5


@pytest.fixture
def ours(engine: EngineClient) -> Iterator[DockerEngine]:
    connected = DockerEngine.connect(Endpoint(engine.host, "--host"))
    yield connected
    connected.close()


def nobody_waits() -> bool:
    return not any(thread.name == "wait-end" for thread in threading.enumerate())


@pytest.mark.parametrize("read", [False, True])
@pytest.mark.parametrize("tty", [False, True])
def test_leaving_a_container_that_goes_on_leaves_no_waiting_behind(
    engine: EngineClient, ours: DockerEngine, tty: bool, read: bool
) -> None:
    until(nobody_waits, what="the end of others")
    command = ("sh", "-c", "while :; do echo on; sleep 0.05; done")
    identity = ours.create(CreateRequest(image=engine.load("small"), command=command, tty=tty, open_stdin=tty))
    ours.start(identity)
    for _ in range(TIMES):
        process = ours.attach(identity, size=(24, 80) if tty else None, detach_keys="")
        assert not nobody_waits()
        if read:
            next(iter(process.output))
        assert process.exit_code() is None
        process.close()
        assert process.exit_code() is None
    until(nobody_waits, what="the end of the waiting")
    assert ours.container(identity).running


def test_a_container_that_cannot_be_joined_leaves_no_waiting_behind(engine: EngineClient, ours: DockerEngine) -> None:
    until(nobody_waits, what="the end of others")
    identity = ours.create(CreateRequest(image=engine.load("small"), command=("sleep", "1000")))
    ours.start(identity)
    ours.pause(identity)
    for _ in range(TIMES):
        with pytest.raises(Conflict):
            ours.attach(identity, size=None, detach_keys="")
    until(nobody_waits, what="the end of the waiting")


def test_the_exit_code_is_known_after_leaving_at_the_end(engine: EngineClient, ours: DockerEngine) -> None:
    command = ("sh", "-c", "read line; exit 7")
    request = CreateRequest(image=engine.load("small"), command=command, tty=True, open_stdin=True, auto_remove=True)
    identity = ours.create(request)
    ours.start(identity)
    process = ours.attach(identity, size=(24, 80), detach_keys="")
    process.write(b"go\n")
    for _ in process.output:
        pass
    process.close()
    assert process.exit_code() == 7
    until(lambda: identity not in {one.id for one in ours.containers()}, what="its removal")
    until(nobody_waits, what="the end of the waiting")
