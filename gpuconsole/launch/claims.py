"""Which GPUs running containers were given, whether they use them at the moment or not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpuconsole.engine.model import Container, ContainerState
from gpuconsole.gpu.model import Gpu
from gpuconsole.host.claims import resolve_claims
from gpuconsole.launch.labels import USER

_ALIVE = (ContainerState.RUNNING, ContainerState.PAUSED, ContainerState.RESTARTING)
"""States in which a container has its GPUs, or gets them back by itself in a moment."""


@dataclass(frozen=True, slots=True)
class Claimant:
    """A container that was given a GPU."""

    name: str
    user: str | None = None
    """Who launched it; None where nothing says so."""

    def __str__(self) -> str:
        """As a person calls it: ``llama-ft of anna``."""
        return f"{self.name} of {self.user}" if self.user else self.name


Claims = Mapping[str, tuple[Claimant, ...]]
"""UUID of a GPU or MIG instance → the running containers it was given to."""


def claims_of(containers: Iterable[Container], gpus: Sequence[Gpu]) -> Claims:
    """Who was given which of ``gpus``, in the order of ``containers``.

    A GPU that a container has in part, as a MIG instance, is not claimed as a whole. A UUID that this machine does not
    know stays as it was written.
    """
    claims: dict[str, tuple[Claimant, ...]] = {}
    for container in containers:
        if container.state not in _ALIVE:
            continue
        claimant = Claimant(container.name, container.labels.get(USER) or None)
        for claimed in resolve_claims(container.gpu_claims, gpus).gpus or ():
            uuid = claimed.mig_uuid or claimed.uuid
            if uuid:
                claims[uuid] = (*claims.get(uuid, ()), claimant)
    return claims
