"""A failure keeps its kind and its exit code when something could not be taken back, whatever it is."""

from __future__ import annotations

from typing import Any, cast

import pytest

import gpuconsole.engine.docker.engine
import gpuconsole.launch.options  # noqa: F401  (both define failures)
from gpuconsole.core.errors import ConsoleError, EngineUnavailable, NotFound
from gpuconsole.engine.model import EngineInfo, GpuPath, Mount
from gpuconsole.engine.protocol import Engine
from gpuconsole.launch.gpupath import GpuRoute
from gpuconsole.launch.gpus import GpuChoice
from gpuconsole.launch.request import build_request
from gpuconsole.launch.spec import LaunchSpec
from gpuconsole.services.planning import LaunchPlan
from gpuconsole.services.undoing import Made

DEAD = EngineUnavailable("The engine does not answer.", hint="Start it.")


class Dead:
    """An engine that went away."""

    def remove(self, *_: Any, **__: Any) -> None:
        raise DEAD

    def volumes(self, *, label: str | None = None) -> frozenset[str]:
        raise DEAD


class Empty:
    """An engine on which somebody else removed everything."""

    def remove(self, *_: Any, **__: Any) -> None:
        raise NotFound("There is no such container.", hint="Look.")

    def volumes(self, *, label: str | None = None) -> frozenset[str]:
        return frozenset(("ours", "gone"))

    def remove_volume(self, name: str) -> None:
        raise NotFound("There is no such volume.", hint="Look.")


def made(engine: object, *mounts: Mount) -> Made:
    spec, info = LaunchSpec("small", name="train", mounts=mounts), EngineInfo(endpoint="unix:///x")
    request = build_request(spec, name="train", info=info)
    plan = LaunchPlan(spec, request, info, GpuChoice(), GpuRoute(GpuPath.NONE, ""))
    one = Made(cast(Engine, engine), plan)
    one.container_id, one.name = "f" * 64, "train"
    return one


def kinds(parent: type[ConsoleError] = ConsoleError) -> list[type[ConsoleError]]:
    return [parent, *(kind for child in parent.__subclasses__() for kind in kinds(child))]


def failure(kind: type[ConsoleError]) -> ConsoleError:
    """One of that kind, however its own constructor is called."""
    error = kind.__new__(kind)
    ConsoleError.__init__(error, "It failed.", hint="Do this.", detail="raw")
    error.problems = ()  # type: ignore[attr-defined]  # of a spec that is invalid
    return error


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.__name__)
def test_what_is_left_behind_is_added_and_the_failure_stays_itself(kind: type[ConsoleError]) -> None:
    error = failure(kind)
    code = error.exit_code
    made(Dead(), Mount("volume", "ours", "/x")).undo(error)
    assert error.message == (
        f"It failed. The container train ({'f' * 12}) is left behind: The engine does not answer. "
        "A volume may be left behind: The engine does not answer."
    )
    assert str(error) == error.message
    assert error.hint == f"When the engine answers again, remove it by 'gpuconsole rm --force {'f' * 12}'."
    assert (error.detail, error.exit_code, type(error)) == ("raw", code, kind)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(143), RuntimeError("a fault"), OSError(5, "x")])
def test_what_is_no_failure_of_ours_is_told_by_a_note(error: BaseException) -> None:
    made(Dead()).undo(error)
    assert "is left behind" in error.__notes__[0]
    assert "gpuconsole rm --force" in error.__notes__[0]


def test_what_others_have_removed_already_is_not_left_behind() -> None:
    error = failure(ConsoleError)
    made(Empty(), Mount("volume", "ours", "/x")).undo(error)
    assert (error.message, error.hint) == ("It failed.", "Do this.")
