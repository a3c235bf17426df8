"""The console's runs of launches follow what becomes of their containers, on a real engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

import pytest

from gpuconsole.launch.options import LaunchOptions
from gpuconsole.services.desk import Desk
from gpuconsole.services.launching import launch
from gpuconsole.services.launchruns import LaunchRun
from gpuconsole.services.runs import Run, RunKind, RunState
from gpuconsole.services.session import Session
from gpuconsole.services.weighing import spec_of
from tests.engine.launching import ignore
from tests.rig.engines import Engine

pytestmark = pytest.mark.engine


_WORK = "while [ ! -e /tmp/go ]; do sleep 0.1; done; exit 3"


class Deaf:
    """Hears everything and does nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: None


@pytest.fixture
def desk(engine_modern: Engine) -> Iterator[Desk]:
    opened = begun(engine_modern)
    yield opened
    opened.close()


def begun(engine: Engine) -> Desk:
    desk = Desk(Session(host=engine.host))
    desk.look_ahead(5.0).drawn()
    desk.start(Deaf(), 5.0)
    return desk


def options(image: str, name: str) -> LaunchOptions:
    return LaunchOptions(image, name=name, gpus="none", user="image", command=("sh", "-c", _WORK))


def told(
    desk: Desk, states: dict[str, tuple[RunState, bool]], words: Mapping[str, str] | None = None
) -> dict[str, Run]:
    """The launches by name, as soon as they are so and say such words: why one ended is found out after it is seen."""
    end = time.monotonic() + 60
    while True:
        runs = [run for run in desk.runs.all() if run.kind is RunKind.LAUNCH]
        if {run.subject: (run.state, run.up) for run in runs} == states and len(runs) == len(states):
            found = {run.subject: run for run in runs}
            if all(said in found[name].headline for name, said in (words or {}).items()):
                return found
        assert time.monotonic() < end, runs
        time.sleep(0.05)


def test_they_tell_how_containers_end_are_removed_and_run_again(engine_modern: Engine, desk: Desk) -> None:
    image, up = engine_modern.load("small"), (RunState.OK, True)
    for name in ("killed", "removed"):
        LaunchRun(desk, options(image, name), on_news=lambda _: None, on_end=lambda _: None).start()
    launch(desk.session, spec_of(desk.session, options(image, "typed")), ignore)  # as the command line does
    told(desk, {"killed": up, "removed": up, "typed": up})

    engine_modern.docker("exec", "typed", "sh", "-c", ": > /tmp/go")
    engine_modern.docker("kill", "killed")
    engine_modern.docker("rm", "-f", "removed")
    over = (RunState.CANCELLED, False)
    why = {"killed": "killed at once", "removed": "removed by force while it ran", "typed": "Exit code 3"}
    found = told(desk, {"killed": over, "removed": over, "typed": (RunState.FAILED, False)}, why)

    again = begun(engine_modern)  # a console that is started later
    try:
        assert told(again, {name: (run.state, run.up) for name, run in found.items()}).keys() == found.keys()
        engine_modern.docker("start", "killed")
        told(again, {"killed": up, "removed": over, "typed": (RunState.FAILED, False)})
    finally:
        again.close()
