"""Preflight: what is likely to go wrong with a launch, found before it begins; pure rules over spec and facts.

Each rule has a slug, the field it concerns, one sentence and, where one change mends it, that change. A refusal stands
in the way until ``--force SLUG`` lifts it, where it can be lifted; a warning is said and nothing is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gpuconsole.engine.model import EngineInfo, Image
from gpuconsole.engine.request import CreateRequest
from gpuconsole.gpu.model import Gpu
from gpuconsole.host.devices import DeviceFacts
from gpuconsole.host.facts import LaunchFacts
from gpuconsole.host.memorygroup import MemoryGroup
from gpuconsole.launch.changes import Change
from gpuconsole.launch.gpupath import GpuRoute
from gpuconsole.launch.gpus import GpuChoice
from gpuconsole.launch.spec import LaunchSpec


class Severity(StrEnum):
    """What a finding does to a launch."""

    REFUSE = "refuse"
    """It is not begun."""
    WARN = "warn"
    """It is begun, and is likely to fail, to lose something or to surprise."""
    HINT = "hint"
    """It is begun and works; it could be better."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is likely to go wrong."""

    slug: str
    """``shm-size``; what ``--force`` names."""
    severity: Severity
    field: str
    """As the command line calls it: ``--shm-size``."""
    sentence: str
    """What is wrong, and what comes of it."""
    fix: str = ""
    """What to do, one sentence."""
    change: Change | None = None
    forceable: bool = False
    """``--force SLUG`` lifts the refusal."""

    @property
    def remedy(self) -> str:
        """What to do, and how the refusal is lifted where it can be; empty when there is nothing."""
        lift = f"--force {self.slug}"
        told = f"Pass {lift} if this is meant." if self.forceable and lift not in self.fix else ""
        return f"{self.fix} {told}".strip()


@dataclass(frozen=True, slots=True)
class Said:
    """What was found out elsewhere, in two sentences."""

    message: str
    hint: str = ""
    change: Change | None = None
    """What mends it, where one change does."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A path of the engine's machine that is to be mounted. What is not known is None."""

    exists: bool | None = None
    readable: bool | None = None
    """By the one who launches."""
    owner_uid: int | None = None
    filesystem: str | None = None
    """``ext4``, ``nfs4`` …"""
    real: str | None = None
    """Where its links lead in the end: what the engine mounts."""


UNKNOWN_FOLDER = Folder()


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything the rules look at. What is not known is None or empty, and then no rule fires because of it."""

    spec: LaunchSpec
    request: CreateRequest
    """What the engine would be told."""
    info: EngineInfo = field(default_factory=lambda: EngineInfo(endpoint=""))
    choice: GpuChoice = field(default_factory=GpuChoice)
    route: GpuRoute | None = None
    machine: LaunchFacts = field(default_factory=LaunchFacts)
    gpus: tuple[Gpu, ...] = ()
    """All of this machine."""
    holders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """UUID of a GPU → who holds memory on it, a phrase each."""
    uid: int = 0
    """Who launches."""
    home: str = ""
    wiring: Said | None = None
    """Why no GPU can be brought into a container of this engine."""
    shortage: Said | None = None
    """Why the GPUs that were asked for cannot be given."""
    image: Image | None = None
    """None while it is not here."""
    unfit: Said | None = None
    """The image will not run on the chosen GPUs."""
    moving: Said | None = None
    """The reference means another image with every release."""
    needed_bytes: int | None = None
    """Disk that the pull takes: what comes and what it becomes."""
    disk_free_bytes: int | None = None
    memory_available_bytes: int | None = None
    """Of the engine's machine, now."""
    name_taken: Said | None = None
    ports_taken: tuple[Said, ...] = ()
    folders: Mapping[str, Folder] = field(default_factory=dict)
    """Host path of a bind mount → what is known of it."""
    devices: Mapping[str, DeviceFacts] = field(default_factory=dict)
    """Host path of a device → what it is."""
    volume_folders: Mapping[str, str] = field(default_factory=dict)
    """Name of a volume → the host path that it was made over."""
    sockets: Mapping[str, str] = field(default_factory=dict)
    """Host path of a bind mount → the socket of an engine that it is, under whatever name, or that is in it."""
    engine_gid: int | None = None
    """The group that may use the engine's socket."""
    memory_group: MemoryGroup | None = None
    """The limit that all containers of the engine share, where it is less than the machine has."""
    selinux: bool = False
    """The kernel enforces it, and the engine labels containers."""
    secrets_written: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Option → what of it holds a secret in plain sight: ``the command``, names of variables and labels."""
    unresolved: str = ""
    """A sentence when the image is pinned nowhere and cannot be resolved."""

    def folder(self, path: str) -> Folder:
        """What is known of a host path."""
        return self.folders.get(path, UNKNOWN_FOLDER)

    def item(self, option: str, key: str, separator: str = "=") -> str:
        """The one item of a list option that was written with this key; empty when there is none, or more than one."""
        items: tuple[str, ...] = getattr(self.spec.written, option, ())
        found = [item for item in items if item.partition(separator)[0] == key]
        return found[0] if len(found) == 1 else ""


Rule = Callable[[Facts], Iterable[Finding]]
_ORDER = {severity: place for place, severity in enumerate(Severity)}


def examine(facts: Facts) -> tuple[Finding, ...]:
    """Every finding, refusals first and hints last, each kind in the order of the rules."""
    from gpuconsole.launch.preflight_gpu import RULES as GPU
    from gpuconsole.launch.preflight_machine import RULES as MACHINE
    from gpuconsole.launch.preflight_room import RULES as ROOM
    from gpuconsole.launch.preflight_storage import RULES as STORAGE
    from gpuconsole.launch.preflight_work import RULES as WORK

    found = [finding for rule in (*GPU, *STORAGE, *ROOM, *MACHINE, *WORK) for finding in rule(facts)]
    return tuple(sorted(found, key=lambda finding: _ORDER[finding.severity]))


def standing(findings: Iterable[Finding], force: Iterable[str]) -> tuple[Finding, ...]:
    """The refusals that ``force`` does not lift."""
    lifted = {str(slug) for slug in force}
    return tuple(
        finding
        for finding in findings
        if finding.severity is Severity.REFUSE and not (finding.forceable and finding.slug in lifted)
    )
