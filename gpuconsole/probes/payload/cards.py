"""The devices a check goes over: every GPU that torch sees, or the CPU where CUDA does not work."""

from __future__ import annotations

from typing import Any

from gpuconsole.probes.payload import libcuda
from gpuconsole.probes.payload.outcome import FAIL, SKIP, WARN, Context, Outcome

ON_CPU = "the CPU"


class Card:
    """One device.

    Args:
        device: ``cuda:0`` or ``cpu``.
        label: How a person calls it.
        position: N of ``cuda:N``; None for the CPU.
        capability: Major and minor of its compute capability; None for the CPU.
    """

    def __init__(
        self, device: str, label: str, position: int | None = None, capability: tuple[int, int] | None = None
    ) -> None:
        self.device = device
        self.label = label
        self.position = position
        self.capability = capability

    @property
    def kind(self) -> str:
        """``cuda`` or ``cpu``."""
        return "cpu" if self.position is None else "cuda"


def cards(context: Context) -> list[Card]:
    """Every GPU that torch sees; the CPU alone where CUDA does not work."""
    if not context.cuda:
        return [Card("cpu", ON_CPU)]
    uuids = libcuda.ask()["uuids"]
    found = []
    for position in range(int(context.torch.cuda.device_count())):
        major, minor = context.torch.cuda.get_device_capability(position)
        uuid = uuids[position] if position < len(uuids) else None
        label = context.label(uuid, position)
        found.append(Card("cuda:{}".format(position), label, position, (int(major), int(minor))))
    return found


def one_of_each(context: Context) -> list[Card]:
    """The first GPU of each model: for what depends on software and model, not on the single card."""
    seen: set[Any] = set()
    found = []
    for card in cards(context):
        model = card.capability
        if card.position is not None:
            model = (context.torch.cuda.get_device_properties(card.position).name, card.capability)
        if model not in seen:
            seen.add(model)
            found.append(card)
    return found


def where(found: list[Card]) -> str:
    """``GPU 0 (NVIDIA H200)``, ``2 GPUs``, ``the CPU (no GPU took part)``: the end of a sentence."""
    if found and found[0].position is None:
        return "the CPU (no GPU took part)"
    return found[0].label if len(found) == 1 else "{} GPUs".format(len(found))


def is_full(error: BaseException | str) -> bool:
    """It failed for lack of GPU memory, which check.gpu-memory tells of."""
    return "out of memory" in str(error)


def no_room(label: str, value: dict[str, Any] | None = None) -> Outcome:
    """The outcome where a GPU has no memory left to be checked in."""
    return Outcome(SKIP, "no memory is free on {}".format(label), "See check.gpu-memory.", value)


def relative(got: Any, wanted: Any) -> float:
    """``‖got - wanted‖ / ‖wanted‖``, computed on the CPU in float64."""
    reference = wanted.detach().to("cpu").double()
    return float((got.detach().to("cpu").double() - reference).norm() / reference.norm())


def beside_full(outcome: Outcome, full: list[str]) -> Outcome:
    """``outcome`` of the GPUs that could be checked, where those in ``full`` had no memory: a fault found counts."""
    return outcome if not full or outcome.status in (FAIL, WARN) else no_room(", ".join(full), outcome.value)
