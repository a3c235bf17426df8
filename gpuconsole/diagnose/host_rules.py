"""Rules about the host: is there a GPU, is its driver whole, is the engine there, can it give GPUs to containers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpuconsole.core.errors import ConsoleError, ExitCode
from gpuconsole.core.text import size
from gpuconsole.diagnose.finding import Finding, Level, Subject
from gpuconsole.engine.model import EngineInfo
from gpuconsole.gpu.model import GpuSnapshot, GpuStatus
from gpuconsole.host.machine import Machine

LOW_DISK_BYTES = 30 * 2**30
"""A PyTorch-CUDA image takes 5 to 20 GiB unpacked, and its layers lie beside it while it is pulled."""

INSTALL_DRIVER = {
    "ubuntu": "sudo ubuntu-drivers install, then reboot.",
    "debian": "Enable non-free, sudo apt install nvidia-driver firmware-misc-nonfree, then reboot.",
    "fedora": "Install the driver from RPM Fusion or NVIDIA's repository (sudo dnf install akmod-nvidia), then reboot.",
    "suse": "sudo zypper install nvidia-open-driver-G06-signed-kmp-default, then reboot.",
    "arch": "sudo pacman -S nvidia-open, then reboot.",
    "other": "Install your distribution's NVIDIA driver package, then reboot.",
}
INSTALL_ENGINE = {
    "ubuntu": "sudo apt install docker.io, or Docker's own packages: https://docs.docker.com/engine/install/ubuntu/",
    "debian": "sudo apt install docker.io, or Docker's own packages: https://docs.docker.com/engine/install/debian/",
    "fedora": "Install Docker's packages: https://docs.docker.com/engine/install/",
    "suse": "sudo zypper install docker && sudo systemctl enable --now docker",
    "arch": "sudo pacman -S docker && sudo systemctl enable --now docker",
    "other": "Install Docker Engine: https://docs.docker.com/engine/install/",
}
INSTALL_TMUX = {
    "fedora": "sudo dnf install tmux",
    "suse": "sudo zypper install tmux",
    "arch": "sudo pacman -S tmux",
    "ubuntu": "sudo apt install tmux",
    "debian": "sudo apt install tmux",
    "other": "Install tmux with your package manager.",
}


HARDWARE = Subject("doctor.gpu", "GPU hardware")
NO_CARD = "H01"


@dataclass(frozen=True, slots=True)
class Wiring:
    """Whether and how the engine can give GPUs to containers."""

    path: str | None
    """``cdi``, ``hook`` or ``runtime``; None when there is no way."""
    reason: str
    """One sentence: why this way, or why none."""
    fix: str = ""


@dataclass(frozen=True, slots=True)
class HostFacts:
    """All that the host rules look at."""

    machine: Machine
    gpus: GpuSnapshot
    engine: EngineInfo | None = None
    engine_error: ConsoleError | None = None
    endpoint: str = ""
    wiring: Wiring | None = None
    disk: tuple[str, int, int] | None = None
    """Folder of the images, free and total bytes; None when it cannot be seen from here."""
    engine_installed: bool = False
    """The program of an engine is on this machine; Docker's client alone is none."""
    tmux: str | None = None
    """Version of tmux; None when it is not installed."""


def examine(facts: HostFacts) -> tuple[Finding, ...]:
    """Every finding, from the card up to what stands on it."""
    return (
        hardware(facts),
        driver(facts),
        gpu_health(facts),
        device_nodes(facts),
        engine(facts),
        gpu_wiring(facts),
        disk(facts),
        tmux(facts),
    )


def to_mend(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """What is failing, in the order a person would mend it.

    What a command mends comes before what must be bought: without a card, containers work all the same once there is
    an engine.
    """
    failing = [finding for finding in findings if finding.level is Level.FAIL]
    return tuple(sorted(failing, key=lambda finding: finding.id == HARDWARE.id and finding.code == NO_CARD))


def hardware(facts: HostFacts) -> Finding:
    """Is there an NVIDIA GPU at all, and does NVIDIA's driver own it?"""
    subject = HARDWARE
    machine = facts.machine
    count = len(machine.pci_gpus)
    if facts.gpus.gpus and not count:
        return subject.ok(f"{_gpus(len(facts.gpus.gpus))}, not listed on the PCI bus.")
    if not count:
        if machine.wsl:
            return subject.skip("This is WSL: GPUs are not on the PCI bus here.")
        return subject.fail(
            "No NVIDIA GPU is on the PCI bus.",
            "Check the card's seat and power, or the machine's pass-through; everything else works on CPU.",
            NO_CARD,
        )
    foreign = [gpu for gpu in machine.pci_gpus if gpu.driver not in (None, "nvidia")]
    if foreign:
        names = ", ".join(f"{gpu.address} by {gpu.driver}" for gpu in foreign)
        fix = (
            "Blacklist nouveau, rebuild the initramfs and reboot: install the NVIDIA driver package, which does this."
            if any(gpu.driver == "nouveau" for gpu in foreign)
            else "Unbind it from vfio-pci unless a virtual machine is meant to have it."
        )
        return subject.fail(f"Another driver owns {len(foreign)} of {_gpus(count)}: {names}.", fix, "H03")
    return subject.ok(f"{_gpus(count)} on the PCI bus.")


def driver(facts: HostFacts) -> Finding:
    """Does NVML answer, and if not, why?"""
    subject = Subject("doctor.driver", "NVIDIA driver")
    machine, gpus = facts.machine, facts.gpus
    if gpus.problem is None:
        return subject.ok(f"Driver {gpus.driver_version}, CUDA up to {gpus.cuda_version}.")
    if machine.wsl:
        return subject.fail(
            gpus.problem,
            "Update the NVIDIA driver in Windows; install no Linux driver inside WSL.",
            "H14",
        )
    loaded, library = machine.module_version, machine.library_version
    if gpus.reason == "version-mismatch" or (loaded and library and loaded != library):
        return subject.fail(
            f"The loaded kernel module is {loaded or 'another version'}, the driver's libraries are "
            f"{library or 'newer'}: an update replaced the files under a running driver.",
            "Reboot when running jobs allow; containers that run already go on, new ones fail.",
            "H02",
        )
    if loaded is None and machine.module_for_kernel is False and library:
        why = " and Secure Boot is on" if machine.secure_boot else ""
        return subject.fail(
            f"The driver's libraries ({library}) are installed, but kernel {machine.kernel} has no nvidia module{why}.",
            "Rebuild it (sudo dkms autoinstall), enrol its key if Secure Boot asks for it (mokutil), and reboot.",
            "H04",
        )
    if not machine.pci_gpus:
        return subject.skip(f"{gpus.problem} Without a GPU none is needed.")
    return subject.fail(gpus.problem, INSTALL_DRIVER[machine.os_family], "H01")


def gpu_health(facts: HostFacts) -> Finding:
    """Does every GPU answer, and are there as many as on the bus?"""
    subject = Subject("doctor.gpu-health", "GPU health")
    gpus = facts.gpus.gpus
    if facts.gpus.problem is not None:
        return subject.skip("Not looked at: the driver does not answer.")
    lost = [gpu for gpu in gpus if gpu.status is not GpuStatus.OK]
    if lost:
        names = "; ".join(f"{gpu.label}: {gpu.problem}" for gpu in lost)
        return subject.fail(
            names,
            "Save what runs on the other GPUs, then power-cycle the machine; should it recur, check power and cooling.",
            "H06",
        )
    if len(facts.machine.pci_gpus) > len(gpus):
        return subject.fail(
            f"{_gpus(len(facts.machine.pci_gpus))} on the bus, but the driver sees {len(gpus)}.",
            "Read sudo dmesg | grep -i nvrm, then power-cycle the machine and check power leads.",
            "H05",
        )
    worn = [
        gpu.label
        for gpu in gpus
        if gpu.ecc.remap_failed or (gpu.ecc.volatile_uncorrected or 0) > 0 or gpu.ecc.remap_pending
    ]
    if worn:
        return subject.warn(
            f"Memory errors were counted on {', '.join(worn)}.",
            "See nvidia-smi -q -d ECC,ROW_REMAPPER; a reboot does a pending remap, a failed one is a warranty case.",
            "H07",
        )
    names = ", ".join(dict.fromkeys(gpu.name or "unnamed GPU" for gpu in gpus))
    return subject.ok(f"{_gpus(len(gpus))} {'answers' if len(gpus) == 1 else 'answer'}: {names}.")


def device_nodes(facts: HostFacts) -> Finding:
    """Are the nodes there that containers are given?"""
    subject = Subject("doctor.device-nodes", "Device nodes")
    nodes = facts.machine.device_nodes
    if facts.gpus.problem is not None or facts.machine.wsl:
        return subject.skip("Not looked at: no driver, or WSL.")
    if "nvidia-uvm" not in nodes:
        return subject.warn(
            "/dev/nvidia-uvm is missing: nobody has used CUDA since boot.",
            "sudo nvidia-modprobe -u -c=0; to have it at every boot: sudo systemctl enable --now nvidia-persistenced.",
            "H08",
        )
    return subject.ok(f"{', '.join(nodes)}.")


def engine(facts: HostFacts) -> Finding:
    """Does the container engine answer?"""
    subject = Subject("doctor.engine", "Container engine")
    error = facts.engine_error
    if facts.engine is not None:
        info = facts.engine
        name = "Podman" if info.name == "podman" else "Docker"
        return subject.ok(f"{name} {info.version} (API {info.api_version}) at {facts.endpoint}.")
    if error is None:
        return subject.skip("Not looked at.")
    fix, code = error.hint, "C02" if error.exit_code is ExitCode.REFUSED else "C01"
    here = not facts.endpoint or facts.endpoint.startswith("unix://")
    if here and not facts.engine_installed and error.exit_code is ExitCode.NO_ENGINE:
        other = "name an engine elsewhere by --host." if fix.startswith("Install") else f"if it is installed: {fix}"
        fix = f"{INSTALL_ENGINE[facts.machine.os_family]} – or {other}"
    return subject.fail(error.message, fix, code)


def gpu_wiring(facts: HostFacts) -> Finding:
    """Can the engine give GPUs to containers?"""
    subject = Subject("doctor.gpu-wiring", "GPUs in containers")
    wiring = facts.wiring
    if wiring is None:
        return subject.skip("Not looked at: no engine answers.")
    if wiring.path is not None:
        return subject.ok(wiring.reason)
    if not facts.gpus.gpus:
        return subject.skip(f"{wiring.reason} Without a GPU none is needed.")
    return subject.fail(wiring.reason, wiring.fix, "C05")


def disk(facts: HostFacts) -> Finding:
    """Is there room for images?"""
    subject = Subject("doctor.disk", "Disk for images")
    if facts.disk is None:
        return subject.skip("The engine's folder cannot be seen from here.")
    folder, free, total = facts.disk
    what = f"{size(free)} of {size(total)} free for {folder}."
    if free < LOW_DISK_BYTES:
        return subject.warn(
            what,
            "Make room: docker system df shows what images and containers take, docker image prune frees unused ones.",
            "I06",
        )
    return subject.ok(what)


def tmux(facts: HostFacts) -> Finding:
    """Is tmux there, so that a lost connection loses nothing?"""
    subject = Subject("doctor.tmux", "tmux")
    if facts.tmux is None:
        return subject.warn(
            "tmux is not installed; shells do not survive a lost connection.",
            INSTALL_TMUX[facts.machine.os_family],
        )
    return subject.ok(f"{facts.tmux}.")


def _gpus(count: int) -> str:
    return "1 NVIDIA GPU" if count == 1 else f"{count} NVIDIA GPUs"
