"""Which GPUs of this machine a container was given: what its configuration says, resolved to UUIDs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpuconsole.engine.model import GpuClaim, GpuRequestKind
from gpuconsole.gpu.model import Gpu, Mig

_NOTHING = frozenset({"", "none", "void"})
_NODE = re.compile(r"^/dev/nvidia(\d+)$")
_MIG_INDEX = re.compile(r"^(\d+):(\d+)$")
_OLD_MIG = re.compile(r"^MIG-(GPU-[0-9a-f-]+)/(\d+)/(\d+)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ClaimedGpu:
    """A GPU a container was given; what this machine does not know of it is None."""

    index: int | None = None
    uuid: str | None = None
    """Of the whole GPU, also where only a MIG instance of it was given."""
    mig_uuid: str | None = None


@dataclass(frozen=True, slots=True)
class ClaimedGpus:
    """The GPUs a container was given."""

    gpus: tuple[ClaimedGpu, ...] | None = ()
    """By index; None when it has GPUs and which ones cannot be told."""
    count: int | None = 0
    """How many, where that is known although ``gpus`` is not."""
    reason: str | None = None
    """Why a part of it is unknown, or does not fit this machine."""


def resolve_claims(
    claims: Iterable[GpuClaim], gpus: Sequence[Gpu] | None, *, unknown: str = "this machine's GPUs are unknown"
) -> ClaimedGpus:
    """The GPUs that ``claims`` amount to among ``gpus``.

    Args:
        claims: What the container's configuration says.
        gpus: The GPUs of the machine the container runs on; None when they cannot be known.
        unknown: Why they cannot be known, one short phrase.
    """
    chosen = _effective(tuple(claims))
    if not chosen:
        return ClaimedGpus()
    if any(_wants_all(claim) for claim in chosen):
        if gpus is None:
            return ClaimedGpus(gpus=None, count=None, reason=f"all GPUs of the machine, and {unknown}")
        found = tuple(_whole(gpu) for gpu in gpus)
        return ClaimedGpus(gpus=_sorted(found), count=len(found))
    named: list[ClaimedGpu] = []
    reasons: list[str] = []
    for claim in chosen:
        for device in claim.devices:
            _add(named, reasons, _Machine(gpus, unknown).find(device))
    for claim in chosen:
        if claim.count and not claim.devices:
            _add_counted(named, claim.count, gpus)
    result = _sorted(named)
    return ClaimedGpus(gpus=result, count=len(result), reason="; ".join(dict.fromkeys(reasons)) or None)


def _effective(claims: tuple[GpuClaim, ...]) -> tuple[GpuClaim, ...]:
    """The claims that count: an explicit request overrides the environment an image came with."""
    asked = [claim for claim in claims if claim.kind is not GpuRequestKind.ENVIRONMENT]
    if any(claim.kind is not GpuRequestKind.DEVICE_NODE for claim in asked):
        return tuple(asked)
    return claims


def _wants_all(claim: GpuClaim) -> bool:
    return claim.everything or (claim.count is not None and claim.count < 0)


def _add_counted(named: list[ClaimedGpu], count: int, gpus: Sequence[Gpu] | None) -> None:
    """Add the GPUs of a request by number. Engines do not choose: they hand out indices from 0 upwards."""
    if len(named) >= count:
        return
    by_index = {gpu.index: gpu for gpu in gpus or ()}
    for index in range(count):
        gpu = by_index.get(index)
        _add(named, [], (_whole(gpu) if gpu else ClaimedGpu(index=index), None))


def _add(named: list[ClaimedGpu], reasons: list[str], found: tuple[ClaimedGpu | None, str | None]) -> None:
    gpu, reason = found
    if gpu is not None and gpu not in named:
        named.append(gpu)
    if reason is not None:
        reasons.append(reason)


def _whole(gpu: Gpu) -> ClaimedGpu:
    return ClaimedGpu(index=gpu.index, uuid=gpu.uuid)


def _sorted(gpus: Iterable[ClaimedGpu]) -> tuple[ClaimedGpu, ...]:
    return tuple(sorted(gpus, key=lambda gpu: (gpu.index is None, gpu.index or 0, gpu.uuid or "", gpu.mig_uuid or "")))


@dataclass(frozen=True, slots=True)
class _Machine:
    """The GPUs there are, to look one up by what a configuration calls it."""

    gpus: Sequence[Gpu] | None
    unknown: str

    def find(self, device: str) -> tuple[ClaimedGpu | None, str | None]:
        """The GPU called ``device`` and what cannot be told of it; no GPU for words and nodes that name none.

        Which kind of device an engine or CDI calls by that name is not in it any more: the engine's adapter takes
        ``nvidia.com/gpu=0`` apart.
        """
        name = device.strip()
        lower = name.lower()
        if lower in _NOTHING:
            return None, None
        if lower.startswith("/dev/"):
            return self._by_node(lower)
        if lower.startswith("mig-"):
            return self._by_mig_uuid(name)
        if lower.startswith("gpu-"):
            return self._by_uuid(name)
        if match := _MIG_INDEX.match(lower):
            return self._by_mig_index(int(match[1]), int(match[2]))
        if lower.isascii() and lower.isdigit() and len(lower) < 6:
            return self._by_index(int(lower))
        return ClaimedGpu(), f"{name!r} is not a GPU's index or UUID"

    def _by_index(self, index: int) -> tuple[ClaimedGpu, str | None]:
        if self.gpus is None:
            return ClaimedGpu(index=index), self.unknown
        for gpu in self.gpus:
            if gpu.index == index:
                return _whole(gpu), None
        return ClaimedGpu(index=index), f"GPU {index} is not in this machine"

    def _by_uuid(self, uuid: str) -> tuple[ClaimedGpu, str | None]:
        if self.gpus is None:
            return ClaimedGpu(uuid=uuid), self.unknown
        found = [gpu for gpu in self.gpus if gpu.uuid and gpu.uuid.lower().startswith(uuid.lower())]
        if len(found) == 1:
            return _whole(found[0]), None
        problem = "is the start of several UUIDs" if found else "is not in this machine"
        return ClaimedGpu(uuid=uuid), f"{uuid} {problem}"

    def _by_node(self, path: str) -> tuple[ClaimedGpu | None, str | None]:
        match = _NODE.match(path)
        if match is None:  # nvidiactl, nvidia-uvm …: every container with a GPU has them
            return None, None
        minor = int(match[1])
        if self.gpus is None:
            return ClaimedGpu(), f"{path}, and {self.unknown}"
        for gpu in self.gpus:
            if gpu.minor == minor:
                return _whole(gpu), None
        return ClaimedGpu(), f"{path} belongs to no GPU that is known"

    def _by_mig_uuid(self, uuid: str) -> tuple[ClaimedGpu, str | None]:
        if self.gpus is None:
            return ClaimedGpu(mig_uuid=uuid), self.unknown
        old = _OLD_MIG.match(uuid)
        for gpu in self.gpus:
            for mig in gpu.migs:
                if (mig.uuid or "").lower() == uuid.lower() or (old is not None and _is_old(gpu, mig, old)):
                    return ClaimedGpu(index=gpu.index, uuid=gpu.uuid, mig_uuid=mig.uuid), None
        return ClaimedGpu(mig_uuid=uuid), f"{uuid} is not in this machine"

    def _by_mig_index(self, index: int, position: int) -> tuple[ClaimedGpu, str | None]:
        for gpu in self.gpus or ():
            if gpu.index != index or position >= len(gpu.migs):
                continue
            mig_uuid = gpu.migs[position].uuid
            if mig_uuid is None:  # with the UUID of the GPU it would read as all of it
                return ClaimedGpu(index=index), f"MIG instance {index}:{position} does not tell its UUID"
            return ClaimedGpu(index=index, uuid=gpu.uuid, mig_uuid=mig_uuid), None
        why = self.unknown if self.gpus is None else f"MIG instance {index}:{position} is not in this machine"
        return ClaimedGpu(index=index), why


def _is_old(gpu: Gpu, mig: Mig, old: re.Match[str]) -> bool:
    """Whether ``mig`` is what drivers before R470 called ``MIG-GPU-<uuid>/<gpu instance>/<compute instance>``."""
    return (gpu.uuid or "").lower() == old[1].lower() and (mig.gpu_instance, mig.compute_instance) == (
        int(old[2]),
        int(old[3]),
    )
