"""Building an image with PyTorch from our Dockerfile: what is to be built, how far it is, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuconsole.launch.spec import PullPolicy

if TYPE_CHECKING:
    from gpuconsole.engine.model import Image
    from gpuconsole.services.cancelling import Cancellation
    from gpuconsole.services.pulling import PullState
    from gpuconsole.services.runs import Runs
    from gpuconsole.services.session import Session


@dataclass(frozen=True, slots=True)
class BuildOrder:
    """What somebody wants built; what is None is chosen for this machine."""

    torch: str | None = None
    """``2.9.1``, or ``2.9`` for its newest."""
    cuda: str | None = None
    """``12.8``."""
    python: str | None = None
    """``3.12``; only where the base is ours."""
    base: str | None = None
    """The image to build on, in place of ``nvidia/cuda``."""
    tag: str | None = None
    """The new image's name."""
    index_url: str | None = None
    """Where all Python packages come from, in place of PyPI and PyTorch's own index."""
    torch_index_url: str | None = None
    """Where torch comes from, in place of PyTorch's own index."""
    network: str | None = None
    """The network that the build's steps have, as ``docker build --network`` has it."""
    pull: PullPolicy = PullPolicy.MISSING
    """When the base is pulled."""
    force: bool = False
    """Also where the engine's disk seems too small."""


@dataclass(frozen=True, slots=True)
class BuildState:
    """How far a build is."""

    name: str
    """The new image's name."""
    step: int = 0
    """The step under way, from 1; 0 before the first."""
    steps: int = 0
    """How many there are; 0 as long as that is not known."""
    words: str = ""
    """What the step does, in a few words."""
    line: str = ""
    """The last line that came out of it."""
    pull: PullState | None = None
    """The pull of the base while it is under way."""
    current_bytes: int | None = None
    """Of the package that is being downloaded."""
    total_bytes: int | None = None
    rate: float | None = None
    """Bytes a second of that download."""


@dataclass(frozen=True, slots=True)
class Built:
    """An image that was built."""

    name: str
    image: Image
    torch: str
    cuda: str
    base: str
    """What it is laid on: ``name:tag@sha256:…``, or the name alone where no registry knows it."""
    dockerfile: str
    replaced_id: str | None = None
    """The image that had the name before, which stays without it."""
    seconds: float = 0.0


def build_image(
    session: Session,
    order: BuildOrder,
    *,
    cancel: Cancellation,
    on_state: Callable[[BuildState], None],
    runs: Runs | None = None,
) -> Built:
    """Build what is ordered; returns when it is there.

    Args:
        session: Whose engine.
        order: What to build.
        cancel: Ends it, also in the engine; nothing half made is left.
        on_state: Told how far it is, on the thread of the caller, some times a second.
        runs: Where it is a run of kind BUILD, with the whole log as its document's end; None records nothing.

    Raises:
        UsageError: PyTorch was never published in that combination; the hint names those there are.
        Cancelled: ``cancel`` was used.
        ConsoleError: The base cannot be had, or the build failed, with the reason and the remedy.
    """
    raise NotImplementedError
