"""The machine that images must fit: put together from NVML, the engine and what a user says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from gpuconsole.core.errors import EngineUnavailable, UsageError
from gpuconsole.engine.model import EngineInfo, GpuPath
from gpuconsole.gpu.model import Gpu, GpuSnapshot, GpuStatus, Mig
from gpuconsole.images.boards import Segment
from gpuconsole.images.catalog import shipped_catalog
from gpuconsole.images.verdict import Word
from gpuconsole.services.catalog import judge_entry, view_catalog
from gpuconsole.services.fitting import Description, engine_machine, machine, traits_of
from gpuconsole.services.session import Session

H200 = Gpu(index=0, uuid="GPU-0", name="NVIDIA H200", compute_capability=(9, 0))
SNAPSHOT = GpuSnapshot(taken_at=0.0, gpus=(H200,), driver_version="580.95.05", cuda_version="13.0")


class Stand:
    """A session that answers as a test says."""

    def __init__(self, snapshot: GpuSnapshot = SNAPSHOT, info: EngineInfo | None = None) -> None:
        self._snapshot, self._info = snapshot, info

    @property
    def gpus(self) -> Stand:
        return self

    @property
    def engine(self) -> Stand:
        if self._info is None:
            raise EngineUnavailable("No container engine answers.", hint="Start it.")
        return self

    @property
    def endpoint(self) -> Any:
        return self

    local = True

    def snapshot(self, *, details: bool = False) -> GpuSnapshot:
        return self._snapshot

    def info(self) -> EngineInfo:
        assert self._info is not None
        return self._info

    @property
    def session(self) -> Session:
        return cast(Session, self)


def test_without_an_engine_it_is_judged_as_by_the_hook_and_says_why() -> None:
    here = machine(Stand().session)
    assert (here.gpu_path, here.traits.checks_demands) == (GpuPath.HOOK, True)
    assert here.unknown == {"gpu_path": "No container engine answers"}
    assert (here.traits.driver, here.traits.cuda) == ("580.95.05", "13.0")


def test_nvidias_runtime_may_check_demands_or_not() -> None:
    info = EngineInfo(endpoint="unix:///x", runtimes=("nvidia", "runc"), architecture="x86_64")
    stand = Stand(info=info).session
    here = machine(stand, Description(gpu_path=GpuPath.RUNTIME))
    assert here.traits.checks_demands is None
    devel = shipped_catalog().find("pytorch/pytorch:2.14.1-cuda13.2-cudnn9-devel")
    assert devel is not None
    host = replace(here.traits, architecture="amd64", driver="582.10", cuda="13.0")
    assert judge_entry(devel, host).needs == {"facts": ("gpu path",)}


def test_of_an_engine_elsewhere_only_the_processor_is_known() -> None:
    info = EngineInfo(endpoint="ssh://there", local=False, architecture="aarch64")
    there = engine_machine(Stand(info=info).session)
    assert there.traits.architecture == "arm64"
    assert there.traits.driver is None
    assert set(there.unknown) == {"driver", "gpus", "gpu_path"}
    words = {view.verdict.word for view in view_catalog(shipped_catalog(), there.traits)}
    assert words == {Word.UNKNOWN, Word.WILL_NOT_RUN}


def test_no_driver_and_no_gpu_are_told_with_their_reason() -> None:
    here = machine(Stand(GpuSnapshot(taken_at=0.0, problem="There is no NVIDIA driver.")).session)
    assert here.unknown["driver"] == here.unknown["gpus"] == "There is no NVIDIA driver"
    empty = machine(Stand(GpuSnapshot(taken_at=0.0, driver_version="580.95.05")).session)
    assert empty.unknown["gpus"] == "NVML lists none"


@pytest.mark.parametrize(
    ("gpu", "instances"),
    [
        (replace(H200, mig_enabled=False), None),
        (replace(H200, mig_enabled=True), 0),
        (replace(H200, mig_enabled=True, migs=(Mig("MIG-1", "1g", 1, 0, None, None),)), 1),
        (replace(H200, mig_enabled=True, unknown={"migs": "no permission"}), None),
        (replace(H200, mig_enabled=None), None),
    ],
)
def test_instances_are_counted_where_they_can_be(gpu: Gpu, instances: int | None) -> None:
    assert machine(Stand(replace(SNAPSHOT, gpus=(gpu,))).session).traits.gpus[0].mig_instances == instances


def test_a_gpu_that_is_lost_is_unknown() -> None:
    lost = Gpu(index=3, uuid=None, name=None, status=GpuStatus.LOST)
    here = machine(Stand(replace(SNAPSHOT, gpus=(H200, lost))).session)
    assert here.traits.gpus[1].label == "GPU 3 (does not answer)"
    view = view_catalog(shipped_catalog(), here.traits)[0]
    assert [each.word for each in view.verdict.gpus] == [Word.RUNS, Word.UNKNOWN]


def test_what_is_described_takes_the_place_of_what_is_here() -> None:
    stand = Stand().session
    driver = machine(stand, Description(driver="535.104.05"))
    assert (driver.traits.driver, driver.traits.cuda, driver.described) == ("535.104.05", None, False)
    assert driver.traits.gpus[0].name == "NVIDIA H200"
    named = machine(stand, Description(driver="535.104.05", names=("Tesla T4",), architecture="arm64"))
    assert (named.described, named.traits.architecture) == (True, "arm64")
    (card,) = named.traits.gpus
    assert (card.capability, card.segment, card.label) == ((7, 5), Segment.DATACENTER, "GPU 0 (Tesla T4)")


def test_pairs_must_be_whole_and_names_must_say_something() -> None:
    with pytest.raises(UsageError, match="2 times and --cc 1 times"):
        machine(Stand().session, Description(names=("Tesla T4", "Tesla T4"), capabilities=((7, 5),)))
    with pytest.raises(UsageError, match="not known"):
        machine(Stand().session, Description(driver="580.95.05", names=("Voodoo 2",)))


def test_some_gpus_of_a_machine() -> None:
    host = traits_of(SNAPSHOT, [H200], path=GpuPath.CDI, architecture="x86_64")
    assert (host.driver, host.architecture, host.checks_demands) == ("580.95.05", "amd64", False)
    assert [gpu.label for gpu in host.gpus] == ["GPU 0 (NVIDIA H200)"]
