"""What this machine has for giving GPUs to containers: CDI specifications, NVIDIA's toolkit, its kind of board."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from gpuconsole.host.cdi import DEFAULT_DIRS, CdiDevices, read_cdi

HOOKS = ("nvidia-container-runtime-hook", "nvidia-cdi-hook")
"""The programs a Docker engine looks for at its start before it offers ``--gpus``."""
_USUAL_FOLDERS = ("/usr/bin", "/usr/local/bin", "/usr/sbin", "/usr/local/sbin", "/usr/local/nvidia/toolkit")
_CONFIG = "etc/nvidia-container-runtime/config.toml"


@dataclass(frozen=True, slots=True)
class LaunchFacts:
    """Facts of this machine that decide how a container gets its GPUs. True of an engine on this machine only."""

    cdi: CdiDevices = field(default_factory=CdiDevices)
    hook: str | None = None
    """Path of the toolkit's hook, None when none was found."""
    ctk: str | None = None
    """Path of ``nvidia-ctk``."""
    toolkit_mode: str | None = None
    """``mode`` of the toolkit's configuration: ``auto``, ``legacy``, ``cdi``, ``csv``; None when it says nothing."""
    no_cgroups: bool | None = None
    """The toolkit is told to leave device cgroups alone, as rootless engines need it; None when it says nothing."""
    tegra: bool = False
    """A Jetson: its GPU is no PCI device, and only NVIDIA's runtime brings it into a container."""
    wsl: bool = False


def launch_facts(
    *, cdi_dirs: Iterable[str] = DEFAULT_DIRS, root: Path = Path("/"), search_path: str | None = None
) -> LaunchFacts:
    """Look at this machine.

    Args:
        cdi_dirs: The folders the engine reads CDI specifications from.
        root: Where the machine's file system is.
        search_path: Folders to look for programs in before the usual ones; None takes ``PATH``.
    """
    folders = (os.environ.get("PATH", os.defpath) if search_path is None else search_path).split(os.pathsep)
    usual = [str(root / folder.lstrip("/")) for folder in _USUAL_FOLDERS]
    places = [*folders, *usual]
    mode, no_cgroups = _toolkit_config(root)
    return LaunchFacts(
        cdi=read_cdi(cdi_dirs, root=root),
        hook=next((found for name in HOOKS if (found := _program(name, places))), None),
        ctk=_program("nvidia-ctk", places),
        toolkit_mode=mode,
        no_cgroups=no_cgroups,
        tegra=_is_tegra(root),
        wsl=_is_wsl(root),
    )


def _program(name: str, folders: Iterable[str]) -> str | None:
    for folder in folders:
        path = os.path.join(folder, name)
        if folder and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", errors="replace")
    except OSError:
        return ""


def _toolkit_config(root: Path) -> tuple[str | None, bool | None]:
    try:
        config = tomllib.loads(_text(root / _CONFIG))
    except tomllib.TOMLDecodeError:
        return None, None
    runtime, cli = config.get("nvidia-container-runtime"), config.get("nvidia-container-cli")
    mode = runtime.get("mode") if isinstance(runtime, dict) else None
    no_cgroups = cli.get("no-cgroups") if isinstance(cli, dict) else None
    return mode if isinstance(mode, str) else None, no_cgroups if isinstance(no_cgroups, bool) else None


def _is_tegra(root: Path) -> bool:
    if (root / "etc/nv_tegra_release").exists():
        return True
    family = _text(root / "sys/devices/soc0/family").strip().lower()
    return family == "tegra" or "nvidia,tegra" in _text(root / "proc/device-tree/compatible")


def _is_wsl(root: Path) -> bool:
    return "microsoft" in _text(root / "proc/sys/kernel/osrelease").lower() or (root / "dev/dxg").exists()
