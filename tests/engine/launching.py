"""What the tests of launches on real engines share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpuconsole.launch.fields import Surroundings
from gpuconsole.launch.options import LaunchOptions, read_options
from gpuconsole.launch.spec import LaunchSpec
from gpuconsole.services.launching import Launched, LaunchStep, launch
from gpuconsole.services.session import Session
from tests.rig.client import EngineClient


def spec(image: str, *command: str, **options: Any) -> LaunchSpec:
    """A launch without GPUs, unless ``options`` say otherwise."""
    return read_options(replace(LaunchOptions(image, command=command, gpus="none"), **options), Surroundings.current())


def ignore(_: LaunchStep) -> None:
    """Nobody watches."""


def launched(session: Session, wanted: LaunchSpec, *, follow: bool = False) -> tuple[Launched, str]:
    """The launch, and what its container wrote when it was followed."""
    said: list[bytes] = []
    sink = (lambda _, data: said.append(data)) if follow else None
    result = launch(session, wanted, ignore, on_output=sink)
    return result, b"".join(said).decode()


def names(engine: EngineClient) -> list[str]:
    """Names of all containers."""
    return sorted(one["Names"][0].removeprefix("/") for one in engine.get("/containers/json?all=1"))


def volumes(engine: EngineClient) -> list[str]:
    """Names of all volumes."""
    return sorted(one["Name"] for one in engine.get("/volumes")["Volumes"] or ())
