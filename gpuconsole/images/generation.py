"""Whether the driver knows the GPU at all: a question for machines that are described, since it lists what it knows."""

from __future__ import annotations

from collections.abc import Iterator

from gpuconsole.images.criteria import Case
from gpuconsole.images.verdict import Effect, Reason
from gpuconsole.images.versions import at_least, capability_text


def known_to_driver(case: Case) -> Iterator[Reason]:
    """A driver older than the GPU's generation runs nothing on it; the image's own CUDA does not help."""
    gpu, have = case.gpu.capability, case.host.driver
    if gpu is None or have is None or case.image.cpu_only:
        return
    first = case.compatibility.first_drivers.get(gpu[0])
    if first is not None and not at_least(have, first):
        text = (
            f"driver {have} does not know GPUs of compute capability {capability_text(gpu)}: they need {first} or newer"
        )
        yield Reason("driver-too-old", text, Effect.PREVENTS, {"driver": first})
