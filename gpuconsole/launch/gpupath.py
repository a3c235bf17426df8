"""How the GPUs get into the container: by CDI, by NVIDIA's hook or by its runtime, from what the engine offers.

CDI comes first: device nodes that the engine itself put in survive a ``systemctl daemon-reload``, those of the hook do
not. A Jetson has only NVIDIA's runtime.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpuconsole.core.errors import GpuNotFound
from gpuconsole.engine.model import EngineInfo, GpuPath
from gpuconsole.host.cdi import NVIDIA_KIND, CdiDevice
from gpuconsole.host.facts import LaunchFacts
from gpuconsole.launch.gpus import GpuChoice
from gpuconsole.launch.units import GpuUnit

RUNTIME_NAME = "nvidia"
_GENERATE = "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
_INSTALL = (
    "Install the nvidia-container-toolkit package, run 'sudo nvidia-ctk runtime configure --runtime=docker', "
    "then 'sudo systemctl restart docker' (this restarts containers)."
)
_MODES_WITHOUT_HOOK = ("cdi", "csv")


@dataclass(frozen=True, slots=True)
class GpuRoute:
    """The way chosen."""

    path: GpuPath
    reason: str
    """One sentence: why this way."""
    cdi_devices: tuple[str, ...] = ()
    """Fully qualified names, on the CDI path."""


class NoGpuPath(GpuNotFound):
    """There is no way, or not the one wanted, for GPUs into a container of this engine."""


class _Unusable(Exception):
    """A way that cannot be taken, and why, as half a sentence."""


def choose_gpu_path(
    info: EngineInfo, facts: LaunchFacts, *, choice: GpuChoice | None = None, wanted: GpuPath | None = None
) -> GpuRoute:
    """The way ``choice`` takes into a container of this engine.

    Args:
        info: What the engine says of itself.
        facts: What this machine has; not looked at for an engine elsewhere.
        choice: The GPUs; None asks whether and how any could be given.
        wanted: The way the user insists on.

    Raises:
        NoGpuPath: There is no way, or not the one wanted; the hint says how to get one.
    """
    if not info.local:
        facts = LaunchFacts()
    if wanted is not None:
        return _insisted(wanted, info, facts, choice)
    if facts.tegra:
        return _first(info, facts, choice, (GpuPath.RUNTIME,))
    if info.name == "podman":
        return _first(info, facts, choice, (GpuPath.CDI,))
    if facts.toolkit_mode in _MODES_WITHOUT_HOOK:
        return _first(info, facts, choice, (GpuPath.CDI, GpuPath.RUNTIME))
    return _first(info, facts, choice, (GpuPath.CDI, GpuPath.HOOK, GpuPath.RUNTIME))


def _first(info: EngineInfo, facts: LaunchFacts, choice: GpuChoice | None, paths: Sequence[GpuPath]) -> GpuRoute:
    hidden = _hidden_from_gpus(info, facts)
    if hidden is not None:
        raise hidden
    refusals: list[str] = []
    for path in paths:
        try:
            return _TRY[path](info, facts, choice)
        except _Unusable as reason:
            refusals.append(str(reason))
    raise NoGpuPath(
        f"This engine has no way to give GPUs to a container: {'; '.join(refusals)}.", hint=_remedy(info, facts)
    )


def _insisted(wanted: GpuPath, info: EngineInfo, facts: LaunchFacts, choice: GpuChoice | None) -> GpuRoute:
    """The way the user named. Only CDI needs facts, for its device names; the engine judges the others."""
    if wanted is not GpuPath.CDI:
        return GpuRoute(wanted, "As --gpu-path says.")
    try:
        return GpuRoute(wanted, "As --gpu-path says.", _by_cdi(info, facts, choice).cdi_devices)
    except _Unusable as reason:
        raise NoGpuPath(f"The GPUs cannot be given by CDI: {reason}.", hint=_cdi_remedy(facts)) from reason


def _by_cdi(info: EngineInfo, facts: LaunchFacts, choice: GpuChoice | None) -> GpuRoute:
    known = _cdi_devices(info, facts)
    if info.name != "podman" and not info.cdi_spec_dirs and not info.cdi_devices:
        raise _Unusable("it does not read CDI specifications")
    if not known:
        where = " or ".join(info.cdi_spec_dirs) or "/etc/cdi"
        unread = f" ({facts.cdi.problems[0].rstrip('.')})" if facts.cdi.problems else ""
        raise _Unusable(f"there is no CDI specification for NVIDIA GPUs in {where}{unread}")
    names = () if choice is None else cdi_names(choice, known)
    source = next((device.source for device in known.values() if device.source), "")
    return GpuRoute(GpuPath.CDI, f"By CDI: the engine reads {source or 'specifications that list the GPUs'}.", names)


def _cdi_devices(info: EngineInfo, facts: LaunchFacts) -> dict[str, CdiDevice]:
    """The NVIDIA devices by their short names. Where the engine lists its own, only those count."""
    on_disk = {device.short_name: device for device in facts.cdi.devices}
    listed = [name.partition("=")[2] for name in info.cdi_devices if name.startswith(f"{NVIDIA_KIND}=")]
    if not listed:
        return on_disk
    return {name: on_disk.get(name, CdiDevice(f"{NVIDIA_KIND}={name}")) for name in listed}


def cdi_names(choice: GpuChoice, known: dict[str, CdiDevice]) -> tuple[str, ...]:
    """The CDI names of the chosen GPUs: by UUID; else by device node, since indices in a file may be out of date.

    Raises:
        _Unusable: A GPU is in no specification.
    """
    names: list[str] = []
    for unit in choice.units:
        device = known.get(unit.uuid) or _by_node(unit, known)
        if device is None and choice.every and "all" in known:
            return (known["all"].name,)
        if device is None:
            raise _Unusable(f"the CDI specification does not list {unit.label}, {unit.uuid}")
        names.append(device.name)
    return tuple(names)


def _by_node(unit: GpuUnit, known: dict[str, CdiDevice]) -> CdiDevice | None:
    """The device that brings exactly this GPU's node. A MIG instance shares its node with the whole GPU."""
    if unit.mig or unit.gpu.minor is None:
        return None
    wanted = f"/dev/nvidia{unit.gpu.minor}"
    for name, device in known.items():
        gpu_nodes = [node for node in device.nodes if node.removeprefix("/dev/nvidia").isdigit()]
        if name != "all" and ":" not in name and gpu_nodes == [wanted]:
            return device
    return None


def _by_hook(info: EngineInfo, facts: LaunchFacts, choice: GpuChoice | None) -> GpuRoute:
    if info.local and facts.hook is None:
        raise _Unusable("NVIDIA's container toolkit is not installed where the engine looks")
    if not info.local and RUNTIME_NAME not in info.runtimes:
        raise _Unusable("it does not name NVIDIA's runtime")
    if info.rootless and not facts.no_cgroups:
        raise _Unusable("a rootless engine's hook may not change device cgroups")
    seen = facts.hook or "the engine names NVIDIA's runtime"
    return GpuRoute(GpuPath.HOOK, f"By NVIDIA's hook ({seen}), as --gpus does.")


def _by_runtime(info: EngineInfo, facts: LaunchFacts, choice: GpuChoice | None) -> GpuRoute:
    if RUNTIME_NAME not in info.runtimes:
        raise _Unusable("its configuration names no nvidia runtime")
    if info.rootless and not facts.no_cgroups:
        raise _Unusable("NVIDIA's runtime may not change device cgroups of a rootless engine")
    why = "a Jetson's GPU comes by it only" if facts.tegra else "the engine names it and offers no other way"
    return GpuRoute(GpuPath.RUNTIME, f"By NVIDIA's runtime: {why}.")


_TRY = {GpuPath.CDI: _by_cdi, GpuPath.HOOK: _by_hook, GpuPath.RUNTIME: _by_runtime}


def _hidden_from_gpus(info: EngineInfo, facts: LaunchFacts) -> NoGpuPath | None:
    """The error for an engine that cannot see this machine's GPUs, whatever is installed."""
    if info.operating_system.startswith("Docker Desktop") and not facts.wsl:
        return NoGpuPath(
            "Docker Desktop runs its engine in a virtual machine that does not see the GPUs.",
            hint="Use Docker Engine: 'docker context use default' (install docker-ce if it is not there).",
        )
    if info.root_dir.startswith("/var/snap/"):
        return NoGpuPath(
            "Docker was installed from snap, which hides NVIDIA's toolkit and most of the file system from it.",
            hint="Remove the snap and install docker-ce from Docker's own repository; images must be pulled again.",
        )
    return None


def _remedy(info: EngineInfo, facts: LaunchFacts) -> str:
    if facts.tegra:
        return (
            "Run 'sudo nvidia-ctk runtime configure --runtime=docker' and 'sudo systemctl restart docker': a Jetson "
            "needs the nvidia runtime."
        )
    if info.name == "podman":
        return f"Podman takes GPUs by CDI: run '{_GENERATE}'."
    if info.rootless:
        return (
            f"A rootless engine takes GPUs by CDI: turn on the engine's cdi feature and run '{_GENERATE}'; or set "
            "no-cgroups=true for the toolkit and use --gpu-path hook."
        )
    if facts.cdi.problems:
        return f"Make the CDI specification readable, or write it anew: '{_GENERATE}'."
    if facts.hook is None and facts.ctk is None:
        return _INSTALL
    if info.cdi_spec_dirs:
        return f"Run '{_GENERATE}'."
    return _INSTALL


def _cdi_remedy(facts: LaunchFacts) -> str:
    if facts.ctk is None and not facts.cdi.devices:
        return f"{_INSTALL} Then run '{_GENERATE}'."
    return f"Run '{_GENERATE}' again, and see that the engine's cdi feature is on."
