"""What a machine can give to containers: GPUs and MIG instances, who has them already, and what it cannot give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gpuconsole.core.text import gib
from gpuconsole.gpu.model import Gpu, GpuProcess, GpuSnapshot, GpuStatus, Mig, ProcessKind
from gpuconsole.launch.claims import Claimant, Claims


@dataclass(frozen=True, slots=True)
class GpuUnit:
    """What can be given to a container: a GPU, or one MIG instance of it."""

    gpu: Gpu
    mig: Mig | None = None
    mig_position: int = 0
    claimants: tuple[Claimant, ...] = ()
    """Running containers it was given to, whether they use it or not."""

    @property
    def uuid(self) -> str:
        """Its UUID; units without one are not offered."""
        return (self.mig.uuid if self.mig else self.gpu.uuid) or ""

    @property
    def index(self) -> str:
        """As ``device=`` names it: ``0``, or ``0:1`` for the second MIG instance of GPU 0."""
        return f"{self.gpu.index}:{self.mig_position}" if self.mig else str(self.gpu.index)

    @property
    def name(self) -> str | None:
        """The board's or the instance's name."""
        return self.mig.name or "MIG" if self.mig else self.gpu.name

    @property
    def label(self) -> str:
        """How a person calls it: ``GPU 0 (NVIDIA H200)``."""
        return f"GPU {self.index} ({self.name})" if self.name else f"GPU {self.index}"

    @property
    def used_bytes(self) -> int | None:
        """GPU memory in use."""
        return self.mig.memory_used_bytes if self.mig else self.gpu.memory_used_bytes

    @property
    def total_bytes(self) -> int | None:
        """All its GPU memory."""
        return self.mig.memory_total_bytes if self.mig else self.gpu.memory_total_bytes

    @property
    def unknown(self) -> Mapping[str, str]:
        """Field → why it is None."""
        return self.mig.unknown if self.mig else self.gpu.unknown

    @property
    def compute_processes(self) -> tuple[GpuProcess, ...] | None:
        """The processes that compute on it; None when they could not be listed."""
        processes = self.mig.processes if self.mig else self.gpu.processes
        if self.mig and processes is None and self.mig.uuid:
            # They may yet stand in the list of the whole GPU; that it shows none of them says nothing.
            processes = tuple(one for one in self.gpu.processes or () if one.mig_uuid == self.mig.uuid) or None
        if processes is None:
            return None
        return tuple(process for process in processes if process.kind is not ProcessKind.GRAPHICS)

    @property
    def state(self) -> str:
        """What is on it and who has it, in a few words."""
        memory = "memory unknown" if self.used_bytes is None else f"{gib(self.used_bytes)}"
        if self.used_bytes is not None:
            memory += f" of {gib(self.total_bytes)} GiB used" if self.total_bytes else " GiB used"
        claimed = f", given to {self.claimed_by}" if self.claimants else ""
        return f"{self._activity}, {memory}{claimed}"

    @property
    def _activity(self) -> str:
        processes = self.compute_processes
        if processes is None:
            reason = self.unknown.get("processes")
            return f"its processes cannot be listed{f' ({reason})' if reason else ''}"
        if processes:
            return f"held by {len(processes)} process{'' if len(processes) == 1 else 'es'}"
        return "no compute process"

    @property
    def claimed_by(self) -> str:
        """The containers it was given to, in words; empty when there are none."""
        if not self.claimants:
            return ""
        word = "container" if len(self.claimants) == 1 else "containers"
        return f"{word} {', '.join(map(str, self.claimants))}"


@dataclass(frozen=True, slots=True)
class Withheld:
    """What is in the machine and cannot be given."""

    unit: GpuUnit
    reason: str
    """Why, in a word or two: for a list."""
    message: str
    """Why, one sentence."""
    hint: str


def units_of(snapshot: GpuSnapshot, claims: Claims | None = None) -> tuple[GpuUnit, ...]:
    """What the machine can give: each GPU that answers; in MIG mode its instances in its place.

    Args:
        snapshot: The GPUs as they are.
        claims: What running containers were given.
    """
    return tuple(unit for unit in _all(snapshot, claims or {}) if _hindrance(unit) is None)


def withheld_of(snapshot: GpuSnapshot) -> tuple[Withheld, ...]:
    """What the machine has and cannot give, with the reason."""
    return tuple(Withheld(unit, *why) for unit in _all(snapshot, {}) if (why := _hindrance(unit)) is not None)


def _all(snapshot: GpuSnapshot, claims: Claims) -> Iterator[GpuUnit]:
    for gpu in snapshot.gpus:
        of_gpu = claims.get(gpu.uuid or "", ())
        for position, mig in enumerate(gpu.migs):
            of_mig = claims.get(mig.uuid or "", ())
            yield GpuUnit(gpu, mig, position, claimants=tuple(dict.fromkeys((*of_mig, *of_gpu))))
        if not gpu.migs:
            yield GpuUnit(gpu, claimants=of_gpu)


def _hindrance(unit: GpuUnit) -> tuple[str, str, str] | None:
    """Why ``unit`` cannot be given, in a word and in a sentence, and what to do; None when it can."""
    gpu = unit.gpu
    if gpu.status is GpuStatus.LOST:
        return (
            "lost",
            f"{unit.label} is lost: the driver cannot reach it any more.",
            "Choose another GPU; restart the machine to get this one back, and look at the kernel log for Xid.",
        )
    if gpu.mig_enabled and unit.mig is None:
        return _without_instances(unit)
    if not unit.uuid:
        reason = unit.unknown.get("uuid")
        return (
            "no UUID",
            f"{unit.label} does not tell its UUID{f' ({reason})' if reason else ''}, so it cannot be handed to a "
            "container safely.",
            "Choose another GPU, and run 'gpuconsole status' to see what is wrong with it.",
        )
    return None


def _without_instances(unit: GpuUnit) -> tuple[str, str, str]:
    reason = unit.unknown.get("migs")
    if reason:
        return (
            "instances unknown",
            f"{unit.label} is in MIG mode, and its instances cannot be listed: {reason}.",
            "Choose another GPU, and see whether 'nvidia-smi -L' lists them.",
        )
    return (
        "no instances",
        f"{unit.label} is in MIG mode and has no instances, so nothing can run on it.",
        "Create instances with 'sudo nvidia-smi mig -cgi … -C', or choose another GPU.",
    )
