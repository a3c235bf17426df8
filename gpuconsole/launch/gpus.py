"""Which GPUs a container gets: a wish and a snapshot in, UUIDs and the reason out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpuconsole.core.errors import GpuNotFound
from gpuconsole.core.text import gib
from gpuconsole.gpu.model import Gpu, GpuProcess, GpuSnapshot, GpuStatus, Mig, ProcessKind
from gpuconsole.launch.spec import GpuWish, GpuWishKind

_QUIET_BYTES = 2**30
"""Memory used on a GPU without compute processes, up to which it counts as free: a desktop takes a few hundred MiB,
while more is a process that cannot be seen from here."""
_UNKNOWN_LAST = 2**62


@dataclass(frozen=True, slots=True)
class GpuUnit:
    """What can be given to a container: a GPU, or one MIG instance of it."""

    gpu: Gpu
    mig: Mig | None = None
    mig_position: int = 0

    @property
    def uuid(self) -> str:
        """Its UUID; units without one are not offered."""
        return (self.mig.uuid if self.mig else self.gpu.uuid) or ""

    @property
    def index(self) -> str:
        """As ``device=`` names it: ``0``, or ``0:1`` for the second MIG instance of GPU 0."""
        return f"{self.gpu.index}:{self.mig_position}" if self.mig else str(self.gpu.index)

    @property
    def label(self) -> str:
        """How a person calls it: ``GPU 0 (NVIDIA H200)``."""
        name = self.mig.name or "MIG" if self.mig else self.gpu.name
        return f"GPU {self.index} ({name})" if name else f"GPU {self.index}"

    @property
    def used_bytes(self) -> int | None:
        """GPU memory in use."""
        return self.mig.memory_used_bytes if self.mig else self.gpu.memory_used_bytes

    @property
    def total_bytes(self) -> int | None:
        """All its GPU memory."""
        return self.mig.memory_total_bytes if self.mig else self.gpu.memory_total_bytes

    @property
    def compute_processes(self) -> tuple[GpuProcess, ...] | None:
        """The processes that compute on it; None when they could not be listed."""
        processes = self.mig.processes if self.mig else self.gpu.processes
        if processes is None:
            return None
        return tuple(process for process in processes if process.kind is not ProcessKind.GRAPHICS)

    @property
    def state(self) -> str:
        """What is on it, in a few words."""
        memory = "memory unknown" if self.used_bytes is None else f"{gib(self.used_bytes)}"
        if self.used_bytes is not None:
            memory += f" of {gib(self.total_bytes)} GiB used" if self.total_bytes else " GiB used"
        processes = self.compute_processes
        if processes is None:
            return f"its processes cannot be listed, {memory}"
        if processes:
            count = len(processes)
            return f"held by {count} process{'' if count == 1 else 'es'}, {memory}"
        return f"no compute process, {memory}"


@dataclass(frozen=True, slots=True)
class GpuChoice:
    """The GPUs a container gets, and why these."""

    units: tuple[GpuUnit, ...] = ()
    reason: str = ""
    """One sentence for the person who launches; empty when there is nothing to say."""
    notes: tuple[str, ...] = ()
    """Sentences about a choice that may not be meant."""
    every: bool = False
    """These are all GPUs of the machine."""

    @property
    def uuids(self) -> tuple[str, ...]:
        """The UUIDs to hand to the engine."""
        return tuple(unit.uuid for unit in self.units)


def units_of(snapshot: GpuSnapshot) -> tuple[GpuUnit, ...]:
    """What the machine can give: each GPU that answers; in MIG mode its instances in its place."""
    units: list[GpuUnit] = []
    for gpu in snapshot.gpus:
        if gpu.status is GpuStatus.LOST or not gpu.uuid:
            continue
        if gpu.migs:
            units.extend(GpuUnit(gpu, mig, position) for position, mig in enumerate(gpu.migs))
        elif not gpu.mig_enabled:
            units.append(GpuUnit(gpu))
    return tuple(units)


def choose_gpus(wish: GpuWish, snapshot: GpuSnapshot) -> GpuChoice:
    """The GPUs that fulfil ``wish``.

    Raises:
        GpuNotFound: There are not so many, or not the ones that were named.
    """
    if wish.kind is GpuWishKind.NONE:
        return GpuChoice()
    units = units_of(snapshot)
    if not units:
        raise _nothing(snapshot)
    if wish.kind is GpuWishKind.ALL:
        return _choice(units, units, f"All {len(units)} GPUs." if len(units) > 1 else f"{units[0].label}.", snapshot)
    if wish.kind is GpuWishKind.DEVICES:
        return _named(wish.devices, units, snapshot)
    return _freest(1 if wish.kind is GpuWishKind.AUTO else wish.count, units, snapshot)


def _choice(chosen: Sequence[GpuUnit], units: Sequence[GpuUnit], reason: str, snapshot: GpuSnapshot) -> GpuChoice:
    notes = [f"{unit.label} is busy: {unit.state}." for unit in chosen if _rank(unit)[0] == _BUSY]
    notes += [f"{unit.label} does not answer: {unit.gpu.problem}" for unit in chosen if unit.gpu.problem]
    complete = len(chosen) == len(units) and not any(gpu.status is GpuStatus.LOST for gpu in snapshot.gpus)
    return GpuChoice(tuple(chosen), reason, tuple(notes), every=complete)


_FREE, _UNCLEAR, _BUSY, _LAST = range(4)


def _rank(unit: GpuUnit) -> tuple[int, int, int, int, int]:
    """The order of freedom: no compute process first, then the least used memory, then the lowest utilisation."""
    processes, used = unit.compute_processes, unit.used_bytes
    if unit.gpu.status is not GpuStatus.OK or unit.gpu.compute_mode == "prohibited":
        group = _LAST
    elif processes or (used is not None and used >= _QUIET_BYTES and not unit.gpu.unified_memory):
        group = _BUSY
    else:
        group = _UNCLEAR if processes is None else _FREE
    utilisation = None if unit.mig else unit.gpu.utilization_pct
    return (
        group,
        _UNKNOWN_LAST if used is None else used,
        101 if utilisation is None else utilisation,
        unit.gpu.index,
        unit.mig_position,
    )


def _freest(count: int, units: Sequence[GpuUnit], snapshot: GpuSnapshot) -> GpuChoice:
    if count > len(units):
        raise GpuNotFound(
            f"{count} GPUs were asked for, and this machine has {len(units)} to give: {_listed(units)}."
            + _absent(snapshot),
            hint=f"Ask for {len(units)} at most." if len(units) > 1 else "Ask for 1.",
        )
    ranked = sorted(units, key=_rank)
    chosen = sorted(ranked[:count], key=lambda unit: (unit.gpu.index, unit.mig_position))
    told = "; ".join(f"{unit.label}: {unit.state}" for unit in chosen)
    rest = ranked[count:]
    if not rest:
        only = "the only one there is" if len(units) == 1 else "all there are"
        return _choice(chosen, units, f"{told} ({only}).", snapshot)
    return _choice(chosen, units, f"{told}. Next freest is {rest[0].label}: {rest[0].state}.", snapshot)


def _named(devices: Sequence[str], units: Sequence[GpuUnit], snapshot: GpuSnapshot) -> GpuChoice:
    chosen: list[GpuUnit] = []
    absent: list[str] = []
    for device in devices:
        found = _find(device, units, snapshot)
        if not found:
            absent.append(device)
        chosen.extend(unit for unit in found if unit not in chosen)
    if absent:
        what = f"GPU {absent[0]} is" if len(absent) == 1 else f"GPUs {', '.join(absent)} are"
        raise GpuNotFound(
            f"{what} not in this machine, which has {_listed(units)}." + _absent(snapshot),
            hint="Name one of these by index or UUID, or write --gpus auto for the freest.",
        )
    return _choice(chosen, units, f"{', '.join(unit.label for unit in chosen)}, as asked.", snapshot)


def _find(device: str, units: Sequence[GpuUnit], snapshot: GpuSnapshot) -> tuple[GpuUnit, ...]:
    """The units that ``device`` names: one, or every MIG instance of the GPU it names."""
    if device.replace(":", "").isdigit():
        number = ":".join(str(int(part)) for part in device.split(":"))
        exact = tuple(unit for unit in units if unit.index == number)
        of_gpu = tuple(unit for unit in units if str(unit.gpu.index) == number)
        if not exact and not of_gpu:
            _refuse_unusable(next((gpu for gpu in snapshot.gpus if str(gpu.index) == number), None))
        return exact or of_gpu
    wanted = device.lower()
    matches = [unit for unit in units if unit.uuid.lower().startswith(wanted)]
    parents = {unit.gpu.uuid for unit in units if unit.mig and (unit.gpu.uuid or "").lower().startswith(wanted)}
    exact = tuple(unit for unit in matches if unit.uuid.lower() == wanted)
    if exact:
        return exact
    if len(matches) + len(parents) > 1:
        raise GpuNotFound(
            f"{device} is the start of more than one UUID: {', '.join(unit.uuid for unit in matches)}.",
            hint="Write more of the UUID, or the index.",
        )
    if not matches and not parents:
        _refuse_unusable(next((gpu for gpu in snapshot.gpus if (gpu.uuid or "").lower().startswith(wanted)), None))
    return tuple(matches) or tuple(unit for unit in units if unit.gpu.uuid in parents)


def _refuse_unusable(gpu: Gpu | None) -> None:
    """Say why a GPU that is there cannot be given; nothing when it is not there."""
    if gpu is None:
        return
    if gpu.status is GpuStatus.LOST:
        raise GpuNotFound(
            f"{gpu.label} is lost: the driver cannot reach it any more.",
            hint="Choose another GPU; restart the machine to get this one back, and look at the kernel log for Xid.",
        )
    if gpu.mig_enabled:
        raise GpuNotFound(
            f"{gpu.label} is in MIG mode and has no instances, so nothing can run on it.",
            hint="Create instances with 'sudo nvidia-smi mig -cgi … -C', or choose another GPU.",
        )
    raise GpuNotFound(
        f"{gpu.label} does not tell its UUID, so it cannot be handed to a container safely.",
        hint="Choose another GPU, and run 'gpuconsole status' to see what is wrong with it.",
    )


def _listed(units: Sequence[GpuUnit]) -> str:
    return ", ".join(f"{unit.index} ({unit.uuid})" for unit in units)


def _absent(snapshot: GpuSnapshot) -> str:
    lost = [gpu.label for gpu in snapshot.gpus if gpu.status is GpuStatus.LOST]
    return f" Lost: {', '.join(lost)}." if lost else ""


def _nothing(snapshot: GpuSnapshot) -> GpuNotFound:
    """The error for a machine that has no GPU to give."""
    if snapshot.problem:
        return GpuNotFound(
            f"No GPU can be given: {snapshot.problem}",
            hint=snapshot.hint or "Run 'gpuconsole doctor'; or launch without GPUs by --gpus none.",
        )
    for gpu in snapshot.gpus:
        _refuse_unusable(gpu)
    return GpuNotFound(
        "No GPU can be given: this machine has none.", hint="Launch without GPUs by --gpus none, or run on CPU."
    )
