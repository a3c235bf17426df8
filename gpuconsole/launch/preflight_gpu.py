"""Preflight of GPUs: the way they take, how many there are, who has them, in which order they come."""

from __future__ import annotations

from collections.abc import Iterator

from gpuconsole.core.text import gib
from gpuconsole.engine.model import GpuPath
from gpuconsole.launch.changes import Change
from gpuconsole.launch.preflight import Facts, Finding, Rule, Severity
from gpuconsole.launch.spec import GpuWishKind
from gpuconsole.launch.units import GpuUnit

_ORDER = "CUDA_DEVICE_ORDER"
_VISIBLE = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")
_BUSY_BYTES = 2**30
"""So much in use is more than a desktop takes."""


def wiring(facts: Facts) -> Iterator[Finding]:
    """The engine has no way to give GPUs: no toolkit, no CDI specification, snap, Docker Desktop, rootless."""
    if facts.wiring is not None:
        asked = facts.spec.gpus is not None or facts.spec.gpu_path is not None
        severity = Severity.REFUSE if asked else Severity.WARN
        yield Finding("gpu-wiring", severity, "--gpus", facts.wiring.message, facts.wiring.hint)


def missing(facts: Facts) -> Iterator[Finding]:
    """More GPUs were asked for than there are, or ones that are not there."""
    if facts.shortage is not None:
        asked = facts.spec.gpus is not None
        yield Finding(
            "gpu-missing",
            Severity.REFUSE if asked else Severity.WARN,
            "--gpus",
            facts.shortage.message,
            facts.shortage.hint,
            Change("gpus", "auto") if asked and facts.gpus else None,
        )


def not_local(facts: Facts) -> Iterator[Finding]:
    """GPUs of this machine were asked for, and the engine is on another."""
    wish = facts.spec.gpus
    if facts.info.local or wish is None or wish.kind is GpuWishKind.NONE:
        return
    yield Finding(
        "engine-not-local",
        Severity.REFUSE,
        "--gpus",
        f"The engine at {facts.info.endpoint} is not on this machine, and GPUs are chosen from this machine's.",
        "Launch with --gpus none, or pass --force engine-not-local if both have the same GPUs.",
        Change("gpus", "none"),
        forceable=True,
    )


def busy(facts: Facts) -> Iterator[Finding]:
    """Somebody computes on a chosen GPU, or it is nearly full."""
    for unit in facts.choice.units:
        processes, used = unit.compute_processes, unit.used_bytes
        full = used is not None and used >= _BUSY_BYTES and not unit.gpu.unified_memory
        if not processes and not full:
            continue
        freer = _freer(facts, unit)
        yield Finding(
            "gpu-busy",
            Severity.WARN,
            "--gpus",
            f"{unit.label} is busy{_held(facts, unit)}.",
            f"Take {freer.label} instead, or wait with --when-free." if freer else "Wait for it with --when-free.",
            _taken_instead(facts, unit, freer) if freer else None,
        )


def _held(facts: Facts, unit: GpuUnit) -> str:
    who = facts.holders.get(unit.uuid, ())
    if not who:
        # The reason of the choice may have said it already.
        return "" if f"{unit.label}: {unit.state}" in facts.choice.reason else f": {unit.state}"
    held = f": held by {', '.join(who[:3])}{f' and {len(who) - 3} more' if len(who) > 3 else ''}"
    if unit.used_bytes is None or unit.total_bytes is None:
        return held
    return f"{held}; {gib(unit.total_bytes - unit.used_bytes)} of {gib(unit.total_bytes)} GiB are free"


def _freer(facts: Facts, unit: GpuUnit) -> GpuUnit | None:
    """A whole GPU that nobody is on, to be taken in its place."""
    chosen = {each.gpu.index for each in facts.choice.units}
    for gpu in facts.gpus:
        other = GpuUnit(gpu)
        idle = not other.compute_processes and (other.used_bytes or 0) < _BUSY_BYTES
        if gpu.index not in chosen and gpu.uuid and not gpu.migs and not gpu.mig_enabled and idle and unit.mig is None:
            return other
    return None


def _taken_instead(facts: Facts, unit: GpuUnit, freer: GpuUnit) -> Change:
    """The chosen GPUs, with the freer one in the busy one's place."""
    indices = (freer.index if each.uuid == unit.uuid else each.index for each in facts.choice.units)
    return Change("gpus", f"device={','.join(indices)}")


def order(facts: Facts) -> Iterator[Finding]:
    """Several GPUs of different models: CUDA puts the fastest first, NVML and ``nvidia-smi`` go by the bus."""
    names = {unit.name for unit in facts.choice.units}
    told = any(name == _ORDER for name, _ in facts.request.environment)
    in_image = facts.image is not None and any(name == _ORDER for name, _ in facts.image.environment)
    if len(names) < 2 or None in names or told or in_image:
        return
    yield Finding(
        "gpu-order",
        Severity.WARN,
        "--gpus",
        f"The GPUs differ ({', '.join(sorted(name or '' for name in names))}), so CUDA numbers them by speed and not "
        "as nvidia-smi does.",
        f"Set {_ORDER}=PCI_BUS_ID in the container.",
        Change("environment", f"{_ORDER}=PCI_BUS_ID", add=True),
    )


def overridden(facts: Facts) -> Iterator[Finding]:
    """A variable hides GPUs that the container gets, or asks for others."""
    if not facts.choice.units:
        return
    written = {variable.name: variable.value for variable in facts.spec.variables}
    from_image = {name: value for name, value in (facts.image.environment if facts.image else ()) if value is not None}
    for name in _VISIBLE:
        source, value = ("--env", written[name]) if name in written else ("IMAGE", from_image.get(name))
        # In an image NVIDIA_VISIBLE_DEVICES=all is what NVIDIA's own say, and the choice of GPUs overrides it.
        if value is None or (source == "IMAGE" and name == "NVIDIA_VISIBLE_DEVICES"):
            continue
        all_of_them = ",".join(str(number) for number in range(len(facts.choice.units)))
        if value.replace(" ", "") == all_of_them:
            continue
        item = facts.item("environment", name)
        # An empty value would hide every GPU, and a variable of the image cannot be taken out.
        change = (
            Change("environment", f"{name}={all_of_them}", add=True)
            if source == "IMAGE"
            else Change("environment", None, instead=item)
            if item
            else None
        )
        whose = "" if source == "--env" else "The image sets "
        yield Finding(
            "gpu-variable",
            Severity.WARN,
            source,
            f"{whose}{name}{f'={value}' if len(value) < 80 else ''}, which chooses once more among the GPUs that the "
            "container gets; their numbers begin at 0 inside.",
            f"Leave {name} out." if source == "--env" else f"Override it with -e {name}={all_of_them}.",
            change,
        )


def tegra(facts: Facts) -> Iterator[Finding]:
    """A Jetson's GPU comes by NVIDIA's runtime only."""
    if facts.machine.tegra and facts.choice.units and facts.request.gpu_path is not GpuPath.RUNTIME:
        yield Finding(
            "tegra-runtime",
            Severity.REFUSE,
            "--gpu-path",
            "This is a Jetson, whose GPU comes into a container by NVIDIA's runtime only.",
            "Leave --gpu-path out, or write --gpu-path runtime.",
            Change("gpu_path", "runtime"),
            forceable=True,
        )


RULES: tuple[Rule, ...] = (wiring, missing, not_local, tegra, busy, order, overridden)
"""In the order in which they are told."""
