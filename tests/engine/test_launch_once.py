"""How often a launch is planned, on a real engine: once, and anew only when what it was decided from has changed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from gpuconsole.services import gputurn, launching, planning
from gpuconsole.services.launching import LaunchStep, Phase, launch
from gpuconsole.services.session import Session
from tests.engine.launching import ignore, spec
from tests.rig.engines import Engine
from tests.rig.fresh import fresh_image
from tests.rig.gpus import TWO_GPUS
from tests.rig.nvml.gpu import GpuProcess
from tests.rig.nvml.presets import busy, h200
from tests.rig.nvml.simulated import NvmlBox
from tests.rig.nvml.state import NvmlState
from tests.rig.registry import Registry

pytestmark = pytest.mark.engine


@pytest.fixture
def box(nvml: NvmlBox) -> NvmlBox:
    nvml.write(state())
    return nvml


def state(*taken: int) -> NvmlState:
    """The two GPUs, with a process on those that are taken."""
    gpus = (h200(gpu.index, uuid=gpu.uuid, minor=gpu.minor) for gpu in TWO_GPUS)
    process = GpuProcess(os.getpid(), 20 * 2**30)
    return NvmlState(gpus=tuple(busy(gpu, process) if gpu.index in taken else gpu for gpu in gpus))


@pytest.fixture
def session(engine_modern: Engine, box: NvmlBox) -> Iterator[Session]:
    opened = Session(host=engine_modern.host)
    yield opened
    opened.close()


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows by one with each plan."""
    calls: list[str] = []
    real = planning.plan_launch

    def counted(*arguments: Any, **named: Any) -> Any:
        calls.append("planned")
        return real(*arguments, **named)

    monkeypatch.setattr(launching, "plan_launch", counted)
    monkeypatch.setattr(gputurn, "plan_launch", counted)
    return calls


def test_what_stays_as_it_was_is_planned_once(engine_modern: Engine, session: Session, planned: list[str]) -> None:
    image = engine_modern.load("small")
    for gpus in ("auto", "2", "device=0", "all", "none", None):
        launched = launch(session, spec(image, "true", gpus=gpus), ignore)
        assert len(planned) == 1, gpus
        assert bool(launched.plan.choice.units) == (gpus != "none")
        planned.clear()
        engine_modern.docker("rm", "-f", launched.name)
    launch(session, spec(image, "true", gpus="1"), ignore, when_free=True)
    assert len(planned) == 1


def test_a_gpu_that_was_taken_meanwhile_is_not_given(
    engine_modern: Engine, session: Session, planned: list[str]
) -> None:
    image = engine_modern.load("small")
    given: list[str] = []

    def take_it(step: LaunchStep) -> None:
        if step.phase is Phase.PLAN and step.plan is not None:
            given.extend(step.plan.request.cdi_devices)
            engine_modern.docker("run", "-d", "--device", given[0], image, "sleep", "999")

    launched = launch(session, spec(image, "sleep", "99", gpus="auto"), take_it)
    assert len(planned) == 2
    assert given
    assert launched.plan.request.cdi_devices != tuple(given)


def test_one_that_has_become_busy_is_told_anew(
    engine_modern: Engine, session: Session, planned: list[str], box: NvmlBox
) -> None:
    box.write(state(1))

    def take(step: LaunchStep) -> None:
        if step.phase is Phase.PLAN:
            box.write(state(0, 1))

    launched = launch(session, spec(engine_modern.load("small"), "true", gpus="auto"), take)
    assert len(planned) == 2
    assert "gpu-busy" in {finding.slug for finding in launched.plan.findings}


def test_a_pull_shows_the_users_of_the_image_and_plans_anew(
    engine_modern: Engine, session: Session, planned: list[str], registry: Registry
) -> None:
    reference = fresh_image(registry, megabytes=(1,))
    launch(session, spec(reference, "true", gpus="auto", user="me"), ignore)
    assert len(planned) == 2
