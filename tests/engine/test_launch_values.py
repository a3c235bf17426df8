"""Values that cannot be, on real engines: refused as wrong usage, in our words, with nothing left behind."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from gpuconsole.core.errors import ConsoleError, ExitCode
from gpuconsole.engine.docker.engine import DockerEngine
from gpuconsole.engine.endpoint import Endpoint
from gpuconsole.engine.model import Mount
from gpuconsole.engine.request import CreateRequest, Ulimit
from gpuconsole.launch.fields import Surroundings
from gpuconsole.launch.options import LaunchOptions, read_options
from gpuconsole.launch.spec import SpecInvalid
from gpuconsole.services.launching import launch
from gpuconsole.services.session import Session
from gpuconsole.services.weighing import weigh
from tests.rig.engines import Engine
from tests.rig.kinds import RUNTIMES

pytestmark = pytest.mark.engine(*RUNTIMES)
HUGE = 2**70
"""What an engine cannot hold in 64 bits."""
RAW = re.compile(r"json|rlimit|unmarshal|mkdir|lstat|overlay|merged|Range of|specified|uids and gids", re.IGNORECASE)
"""Engines' own words."""
SLEEP = ("sleep", "1000")


@pytest.fixture
def connect() -> Iterator[Callable[[Engine], DockerEngine]]:
    opened: list[DockerEngine] = []

    def connected(engine: Engine) -> DockerEngine:
        opened.append(DockerEngine.connect(Endpoint(engine.host, "--host")))
        return opened[-1]

    yield connected
    for engine in opened:
        engine.close()


@pytest.fixture
def open_session() -> Iterator[Callable[[Engine], Session]]:
    opened: list[Session] = []

    def session(engine: Engine) -> Session:
        opened.append(Session(host=engine.host))
        return opened[-1]

    yield session
    for each in opened:
        each.close()


def names(engine: Engine) -> list[str]:
    return sorted(one["Names"][0].removeprefix("/") for one in engine.get("/containers/json?all=1"))


def test_what_only_the_engine_knows_to_be_wrong_is_told_as_wrong_usage(
    engine: Engine, connect: Callable[[Engine], DockerEngine]
) -> None:
    image, ours = engine.load("small"), connect(engine)
    asked: list[tuple[dict[str, Any], str]] = [
        ({"cpus": 100_000}, "CPUs, and more were asked for"),
        ({"memory_bytes": HUGE}, f"The number {HUGE} is larger"),
        ({"shm_bytes": HUGE}, f"The number {HUGE} is larger"),
        ({"ulimits": (Ulimit("nofile", HUGE, HUGE),)}, f"The number {HUGE} is larger"),
        ({"restart_policy": f"on-failure:{HUGE}"}, f"The number {HUGE} is larger"),
        ({"memory_bytes": 1}, "below the engine's minimum"),
        ({"user": "99999999999"}, "above 2147483647"),
        ({"user": "1000:99999999999"}, "above 2147483647"),
        ({"working_dir": "/etc/passwd"}, "/etc/passwd, is or leads through a file"),
        ({"working_dir": "/etc/passwd/x"}, "/etc/passwd/x, is or leads through a file"),
        ({"working_dir": "/proc/self/x"}, "/proc/self/x, cannot be made"),
        ({"ulimits": (Ulimit("nofile", 2**40, 2**40),)}, "--ulimit nofile"),
        ({"mounts": (Mount("bind", "/tmp", "/proc"),)}, "mounted at /proc of"),
        ({"mounts": (Mount("bind", "/tmp", "/proc/x"),)}, "mounted at /proc/x of"),
        ({"mounts": (Mount("volume", "a", "/x"),)}, "no name for a volume"),
        ({"entrypoint": ("",), "command": None}, "nothing to run"),
        ({"name": "a"}, "no name for a container"),
        ({"network": "container:"}, "no such network mode"),
        ({"network": f"container:{'f' * 64}", "hostname": "x"}, "exclude each other"),
    ]
    for options, told in asked:
        request = replace(CreateRequest(image=image, name="wrong", command=SLEEP), **options)
        with pytest.raises(ConsoleError) as caught:
            ours.start(ours.create(request))
        assert caught.value.exit_code is ExitCode.USAGE, (options, caught.value.message)
        assert told in caught.value.message
        assert caught.value.hint
        assert not RAW.search(caught.value.message), caught.value.message
        engine.docker("rm", "--force", "wrong", check=False)


def test_more_cores_than_the_engine_has_are_refused_before_it_is_asked(
    engine: Engine, open_session: Callable[[Engine], Session]
) -> None:
    image, session = engine.load("small"), open_session(engine)
    there = session.engine.info().cpus
    assert there
    for cores in (f"{there}.01", f"{there + 1}", "9e8"):
        options = LaunchOptions(image, gpus="none", cpus=cores)
        with pytest.raises(SpecInvalid) as caught:
            launch(session, read_options(options, Surroundings.current()), lambda _: None)
        assert caught.value.exit_code is ExitCode.USAGE
        assert f"the {there} CPUs of the engine's machine" in caught.value.message
        assert [problem.field for problem in weigh(session, options).problems] == ["--cpus"]
    enough = LaunchOptions(image, gpus="none", cpus=str(there), command=SLEEP)
    assert launch(session, read_options(enough, Surroundings.current()), lambda _: None).ending is None


def test_an_empty_entrypoint_clears_the_images_as_docker_does(
    engine: Engine, open_session: Callable[[Engine], Session]
) -> None:
    image, session = engine.load("entrypoint"), open_session(engine)

    def output_of(**options: Any) -> str:
        said: list[bytes] = []
        wanted = replace(LaunchOptions(image, gpus="none", auto_remove=True), **options)
        spec = read_options(wanted, Surroundings.current())
        launched = launch(session, spec, lambda _: None, on_output=lambda _, data: said.append(data))
        assert launched.ending is not None
        return b"".join(said).decode()

    assert output_of(entrypoint="", command=("echo", "alone")) == "alone\n"
    docker = engine.docker("run", "--rm", "--entrypoint", "", image, "echo", "alone")
    assert docker.stdout == "alone\n"
    assert output_of(entrypoint="echo", command=("with", "words")) == "with words\n"
    shell = launch(
        session,
        read_options(LaunchOptions(image, gpus="none", entrypoint="", command=("sh",)), Surroundings.current()),
        lambda _: None,
    )
    assert shell.ending is None, "a shell alone gets a terminal, as without the option"
    assert names(engine) == [shell.name]
