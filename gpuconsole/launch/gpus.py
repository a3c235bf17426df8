"""Which GPUs a container gets: a wish and a snapshot in, UUIDs and the reason out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpuconsole.core.errors import GpuNotFound
from gpuconsole.gpu.model import GpuSnapshot, GpuStatus
from gpuconsole.launch.claims import Claims
from gpuconsole.launch.spec import GpuWish, GpuWishKind
from gpuconsole.launch.units import GpuUnit, Withheld, units_of, withheld_of

_QUIET_BYTES = 2**30
"""Memory used on a GPU without compute processes, up to which it counts as free: a desktop takes a few hundred MiB,
while more is a process that cannot be seen from here."""
_UNKNOWN_LAST = 2**62


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


@dataclass(frozen=True, slots=True)
class _Machine:
    """What there is to choose from."""

    snapshot: GpuSnapshot
    units: tuple[GpuUnit, ...]
    withheld: tuple[Withheld, ...]

    @property
    def listed(self) -> str:
        """What can be given, and what cannot, for a person who asked for something else."""
        given = ", ".join(f"{unit.index} ({unit.uuid})" for unit in self.units)
        lost = [one.unit.label for one in self.withheld if one.unit.gpu.status is GpuStatus.LOST]
        nameless = [one.unit.label for one in self.withheld if one.unit.gpu.status is not GpuStatus.LOST]
        sentences = [f"{given}."]
        if lost:
            sentences.append(f"Lost: {', '.join(lost)}.")
        if nameless:
            sentences.append(f"Not to be given: {', '.join(nameless)}.")
        return " ".join(sentences)


def choose_gpus(wish: GpuWish, snapshot: GpuSnapshot, claims: Claims | None = None) -> GpuChoice:
    """The GPUs that fulfil ``wish``.

    Args:
        wish: What was asked for.
        snapshot: The GPUs as they are.
        claims: What running containers were given: such a GPU comes after those that nobody has, used or not.

    Raises:
        GpuNotFound: There are not so many, or not the ones that were named.
    """
    if wish.kind is GpuWishKind.NONE:
        return GpuChoice()
    machine = _Machine(snapshot, units_of(snapshot, claims), withheld_of(snapshot))
    if not machine.units:
        raise _nothing(machine)
    if wish.kind is GpuWishKind.ALL:
        return _all(machine)
    if wish.kind is GpuWishKind.DEVICES:
        return _named(wish.devices, machine)
    return _freest(1 if wish.kind is GpuWishKind.AUTO else wish.count, machine)


def _choice(chosen: Sequence[GpuUnit], machine: _Machine, reason: str, *notes: str) -> GpuChoice:
    complete = len(chosen) == len(machine.units) and not machine.withheld
    told = (note for unit in chosen for note in _notes(unit))
    return GpuChoice(tuple(chosen), reason, (*told, *notes), every=complete)


def _notes(unit: GpuUnit) -> list[str]:
    """What to know of a chosen one; that it is busy is found by preflight."""
    notes = []
    if unit.claimants and freedom(unit)[0] != _BUSY:
        runs = "runs" if len(unit.claimants) == 1 else "run"
        notes.append(f"{unit.label} was given to {unit.claimed_by} already, which {runs}.")
    if unit.gpu.problem:
        notes.append(f"{unit.label} does not answer: {unit.gpu.problem}")
    return notes


_FREE, _UNCLEAR, _CLAIMED, _BUSY, _LAST = range(5)


def freedom(unit: GpuUnit) -> tuple[int, int, int, int, int, int]:
    """The order of freedom: no compute process and no claim first, then the least used memory and utilisation."""
    group, used = _group(unit), unit.used_bytes
    utilisation = None if unit.mig else unit.gpu.utilization_pct
    return (
        group,
        len(unit.claimants) if group == _CLAIMED else 0,
        _UNKNOWN_LAST if used is None else used,
        101 if utilisation is None else utilisation,
        unit.gpu.index,
        unit.mig_position,
    )


def _group(unit: GpuUnit) -> int:
    gpu, processes, used = unit.gpu, unit.compute_processes, unit.used_bytes
    if gpu.status is not GpuStatus.OK or gpu.compute_mode == "prohibited":
        return _LAST
    if processes or (used is not None and used >= _QUIET_BYTES and not gpu.unified_memory):
        return _BUSY
    if unit.claimants:
        return _CLAIMED
    may_be_divided = gpu.mig_enabled is None and "mig_enabled" in gpu.unknown
    return _UNCLEAR if processes is None or may_be_divided else _FREE


def is_free(unit: GpuUnit) -> bool:
    """Nobody is known to be on it or to have been given it."""
    return _group(unit) <= _UNCLEAR


def _all(machine: _Machine) -> GpuChoice:
    units = machine.units
    reason = f"All {len(units)} GPUs." if len(units) > 1 else f"{units[0].label}."
    return _choice(units, machine, reason, *(f"Left out: {one.message}" for one in machine.withheld))


def _freest(count: int, machine: _Machine) -> GpuChoice:
    units = machine.units
    if count > len(units):
        raise GpuNotFound(
            f"{count} GPUs were asked for, and this machine has {len(units)} to give: {machine.listed}",
            hint=f"Ask for {len(units)} at most." if len(units) > 1 else "Ask for 1.",
        )
    ranked = sorted(units, key=freedom)
    chosen = sorted(ranked[:count], key=lambda unit: (unit.gpu.index, unit.mig_position))
    told = "; ".join(f"{unit.label}: {unit.state}" for unit in chosen)
    rest = ranked[count:]
    if not rest:
        only = "the only one there is" if len(units) == 1 else "all there are"
        return _choice(chosen, machine, f"{told} ({only}).")
    return _choice(chosen, machine, f"{told}. Next freest is {rest[0].label}: {rest[0].state}.")


def _named(devices: Sequence[str], machine: _Machine) -> GpuChoice:
    chosen: list[GpuUnit] = []
    absent: list[str] = []
    for device in devices:
        found = _find(device, machine)
        if not found:
            absent.append(device)
        chosen.extend(unit for unit in found if unit not in chosen)
    if absent:
        what = f"GPU {absent[0]} is" if len(absent) == 1 else f"GPUs {', '.join(absent)} are"
        raise GpuNotFound(
            f"{what} not in this machine, which has {machine.listed}",
            hint="Name one of these by index or UUID, or write --gpus auto for the freest.",
        )
    return _choice(chosen, machine, f"{', '.join(unit.label for unit in chosen)}, as asked.")


def _find(device: str, machine: _Machine) -> tuple[GpuUnit, ...]:
    """The units that ``device`` names: one, or every MIG instance of the GPU it names."""
    if device.replace(":", "").isdigit():
        return _by_index(":".join(str(int(part)) for part in device.split(":")), machine)
    wanted = device.lower()
    matches = [unit for unit in machine.units if unit.uuid.lower().startswith(wanted)]
    parents = {unit.gpu.uuid for unit in machine.units if unit.mig and _starts(unit.gpu.uuid, wanted)}
    exact = tuple(unit for unit in matches if unit.uuid.lower() == wanted)
    if exact:
        return exact
    if len(matches) + len(parents) > 1:
        raise GpuNotFound(
            f"{device} is the start of more than one UUID: {', '.join(unit.uuid for unit in matches)}.",
            hint="Write more of the UUID, or the index.",
        )
    if not matches:
        _refuse(next((one for one in machine.withheld if _starts(one.unit.gpu.uuid, wanted)), None))
    return tuple(matches) or tuple(unit for unit in machine.units if unit.gpu.uuid in parents)


def _by_index(number: str, machine: _Machine) -> tuple[GpuUnit, ...]:
    exact = tuple(unit for unit in machine.units if unit.index == number)
    of_gpu = tuple(unit for unit in machine.units if str(unit.gpu.index) == number)
    if not exact:
        # Not even in part: who names the whole of a divided GPU means all of its instances.
        _refuse(next((one for one in machine.withheld if number in (one.unit.index, str(one.unit.gpu.index))), None))
    return exact or of_gpu


def _starts(uuid: str | None, wanted: str) -> bool:
    return (uuid or "").lower().startswith(wanted)


def _refuse(withheld: Withheld | None) -> None:
    """Say why what is there cannot be given; nothing when it is not there."""
    if withheld is not None:
        raise GpuNotFound(withheld.message, hint=withheld.hint)


def _nothing(machine: _Machine) -> GpuNotFound:
    """The error for a machine that has no GPU to give."""
    snapshot = machine.snapshot
    if snapshot.problem:
        return GpuNotFound(
            f"No GPU can be given: {snapshot.problem}",
            hint=snapshot.hint or "Run 'gpuconsole doctor'; or launch without GPUs by --gpus none.",
        )
    for one in machine.withheld:
        return GpuNotFound(one.message, hint=one.hint)
    return GpuNotFound(
        "No GPU can be given: this machine has none.", hint="Launch without GPUs by --gpus none, or run on CPU."
    )
