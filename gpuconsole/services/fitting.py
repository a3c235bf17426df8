"""The machine that images must fit: this one, as NVML and the engine tell, or one that was described."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpuconsole.core.errors import ConsoleError, UsageError
from gpuconsole.core.text import plain_line
from gpuconsole.engine.model import GpuPath
from gpuconsole.gpu.model import Gpu, GpuSnapshot, GpuStatus
from gpuconsole.images.boards import board, brands
from gpuconsole.images.verdict import GpuTraits, HostTraits
from gpuconsole.images.versions import capability_text

if TYPE_CHECKING:
    from gpuconsole.services.session import Session

ARCHITECTURES = {"amd64": "amd64", "x86_64": "amd64", "arm64": "arm64", "aarch64": "arm64"}
"""How processors are called, and what images call them."""
_CHECKS = {GpuPath.HOOK: True, GpuPath.CDI: False, GpuPath.NONE: True}


@dataclass(frozen=True, slots=True)
class Description:
    """What a user says of a machine; what is not said is taken from this one."""

    driver: str | None = None
    capabilities: tuple[tuple[int, int], ...] = ()
    names: tuple[str, ...] = ()
    """Names of GPUs; with capabilities as many as those, in their order."""
    architecture: str | None = None
    gpu_path: GpuPath | None = None

    @property
    def whole(self) -> bool:
        """It names driver and GPUs, so this machine has nothing to add to them."""
        return self.driver is not None and bool(self.names or self.capabilities)


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine as images are judged for it."""

    traits: HostTraits
    gpu_path: GpuPath
    """How its GPUs get into containers."""
    described: bool
    """Driver and GPUs are what the user said, not what this machine has."""
    unknown: dict[str, str] = field(default_factory=dict)
    """Fact → why it is not known, or where it was not asked for, half a sentence."""


def machine(
    session: Session, description: Description | None = None, *, snapshot: GpuSnapshot | None = None
) -> Machine:
    """The machine to judge for.

    NVML and the engine are asked only for what the description leaves open. Neither has to answer.

    Args:
        session: Whose GPUs and engine.
        description: What a user says of it.
        snapshot: The GPUs as somebody has just seen them, so that NVML is not asked again.

    Raises:
        UsageError: A GPU's name says nothing and no capability was given with it, or their numbers differ.
    """
    said = description or Description()
    gpus = _described(said)
    unknown: dict[str, str] = {}
    if said.whole:
        snapshot = None
    elif snapshot is None:
        snapshot = session.gpus.snapshot()
    driver, cuda = said.driver, None
    if snapshot is not None:
        gpus = gpus or tuple(_of_nvml(gpu) for gpu in snapshot.gpus)
        if driver is None:
            driver, cuda = snapshot.driver_version, snapshot.cuda_version
        unknown |= _why(snapshot, driver, gpus)
    path = said.gpu_path
    if path is None:
        path, why = (GpuPath.HOOK, "not asked of an engine") if said.whole else _path(session)
        if why:
            unknown["gpu_path"] = why
    architecture = said.architecture or ARCHITECTURES.get(os.uname().machine)
    if architecture is None:
        unknown["architecture"] = f"{os.uname().machine} is none that images are built for"
    return Machine(
        traits=HostTraits(
            driver=driver, cuda=cuda, architecture=architecture, gpus=gpus, checks_demands=_CHECKS.get(path)
        ),
        gpu_path=path,
        described=said.whole,
        unknown=unknown,
    )


def engine_machine(session: Session, *, snapshot: GpuSnapshot | None = None) -> Machine:
    """The machine whose engine this session talks to, for images that lie there.

    Args:
        session: Whose engine.
        snapshot: This machine's GPUs as somebody has just seen them; None asks NVML.

    Raises:
        EngineUnavailable: Nothing answers there.
    """
    info = session.engine.info()
    if info.local:
        return machine(session, snapshot=snapshot)
    why = "the engine is on another machine"
    return Machine(
        traits=HostTraits(architecture=ARCHITECTURES.get(info.architecture)),
        gpu_path=GpuPath.HOOK,
        described=False,
        unknown={"driver": why, "gpus": why, "gpu_path": why},
    )


def traits_of(snapshot: GpuSnapshot, gpus: Sequence[Gpu], *, path: GpuPath, architecture: str) -> HostTraits:
    """This machine with some of its GPUs only.

    Args:
        snapshot: Of all of them, for the driver.
        gpus: The ones that count.
        path: How they get into a container.
        architecture: The processor, as the engine calls it.
    """
    return HostTraits(
        driver=snapshot.driver_version,
        cuda=snapshot.cuda_version,
        architecture=ARCHITECTURES.get(architecture),
        gpus=tuple(_of_nvml(gpu) for gpu in gpus),
        checks_demands=_CHECKS.get(path),
    )


def _why(snapshot: GpuSnapshot, driver: str | None, gpus: Sequence[GpuTraits]) -> dict[str, str]:
    problem = (snapshot.problem or "").rstrip(".")
    unknown = {}
    if driver is None:
        unknown["driver"] = problem or snapshot.unknown.get("driver_version", "NVML does not say")
    if not gpus:
        unknown["gpus"] = problem or "NVML lists none"
    return unknown


def _path(session: Session) -> tuple[GpuPath, str]:
    """How this machine's engine gives GPUs to containers; the hook where it cannot be told, with the reason."""
    from gpuconsole.host.cdi import DEFAULT_DIRS
    from gpuconsole.launch.gpupath import choose_gpu_path

    try:
        if not session.endpoint.local:
            return GpuPath.HOOK, "the engine is on another machine"
        info = session.engine.info()
        return choose_gpu_path(info, session.launch_facts(info.cdi_spec_dirs or DEFAULT_DIRS)).path, ""
    except ConsoleError as error:
        return GpuPath.HOOK, error.message.rstrip(".")


def _of_nvml(gpu: Gpu) -> GpuTraits:
    known = board(gpu.name) if gpu.name else None
    segment = known.segment if known else None
    instances = len(gpu.migs) if gpu.mig_enabled and "migs" not in gpu.unknown else None
    return GpuTraits(
        label=gpu.label if gpu.status is GpuStatus.OK else f"GPU {gpu.index} (does not answer)",
        name=gpu.name,
        capability=gpu.compute_capability,
        segment=segment,
        brands=brands(gpu.name, segment),
        unified_memory=gpu.unified_memory,
        mig_instances=instances,
    )


def _described(said: Description) -> tuple[GpuTraits, ...]:
    if said.names and said.capabilities and len(said.names) != len(said.capabilities):
        raise UsageError(
            f"--gpu is given {len(said.names)} times and --cc {len(said.capabilities)} times.",
            hint="Give each GPU its own pair, or leave one of the two out.",
        )
    count = max(len(said.names), len(said.capabilities))
    names = tuple(plain_line(name) for name in said.names) or (None,) * count
    capabilities = said.capabilities or (None,) * count
    pairs = zip(names, capabilities, strict=True)
    return tuple(_one(number, name, known) for number, (name, known) in enumerate(pairs))


def _one(number: int, name: str | None, said: tuple[int, int] | None) -> GpuTraits:
    known = board(name) if name else None
    cc = said or (known.capability if known else None)
    if cc is None:
        raise UsageError(
            f"The compute capability of {plain_line(name or '')!r} is not known.",
            hint="Give it with --cc, as NVIDIA's table at https://developer.nvidia.com/cuda-gpus has it.",
        )
    segment = known.segment if known else None
    words = plain_line(name, limit=60) if name else f"compute capability {capability_text(cc)}"
    return GpuTraits(
        label=f"GPU {number} ({words})",
        name=name,
        capability=cc,
        segment=segment,
        brands=brands(name, segment),
        unified_memory=known is not None and known.unified_memory,
        # nvidia-smi -L names an instance after its GPU: "NVIDIA H200 MIG 1g.18gb"
        mig_instances=1 if name and " MIG " in f"{name} " else None,
    )


def contradiction(gpu: GpuTraits) -> str | None:
    """A sentence when the capability given for a GPU is not the one that its name has."""
    known = board(gpu.name) if gpu.name else None
    if known is None or known.capability in (None, gpu.capability) or gpu.capability is None:
        return None
    assert known.capability is not None  # noqa: S101 - not among the ones passed over
    return (
        f"{gpu.label} has compute capability {capability_text(known.capability)}, "
        f"not {capability_text(gpu.capability)}; judged as you say."
    )
