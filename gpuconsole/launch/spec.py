"""What a person wants launched, understood but not yet weighed against this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from gpuconsole.core.errors import ConsoleError, ExitCode
from gpuconsole.engine.model import GpuPath, Mount
from gpuconsole.engine.request import DeviceRequest, PortRequest, Tmpfs, Ulimit
from gpuconsole.launch.changes import Change
from gpuconsole.launch.work import Work

if TYPE_CHECKING:
    from gpuconsole.launch.options import LaunchOptions


class GpuWishKind(StrEnum):
    """How GPUs were asked for."""

    NONE = "none"
    AUTO = "auto"
    """One, the freest."""
    COUNT = "count"
    """So many, the freest."""
    ALL = "all"
    DEVICES = "devices"
    """These."""


@dataclass(frozen=True, slots=True)
class GpuWish:
    """The GPUs that were asked for, as ``--gpus`` says it."""

    kind: GpuWishKind
    count: int = 0
    devices: tuple[str, ...] = ()
    """Indices, UUIDs, or starts of UUIDs."""

    def __str__(self) -> str:
        if self.kind is GpuWishKind.COUNT:
            return str(self.count)
        return f"device={','.join(self.devices)}" if self.kind is GpuWishKind.DEVICES else str(self.kind)


class VariableSource(StrEnum):
    """Where the value of an environment variable came from."""

    WRITTEN = "written"
    """``-e NAME=VALUE``."""
    SHELL = "shell"
    """``-e NAME``: the caller's own environment."""
    FILE = "file"
    """``--env-file``."""


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable for the container."""

    name: str
    value: str = field(repr=False)
    """Not in the repr: it may be a secret, and a repr ends in tracebacks."""
    source: VariableSource = VariableSource.WRITTEN


@dataclass(frozen=True, slots=True)
class Secret:
    """A file with a secret, mounted at ``/run/secrets/NAME``: its content is in no environment and no label."""

    name: str
    path: str
    """On the engine's machine."""

    @property
    def target(self) -> str:
        """Where it stands in the container."""
        return f"/run/secrets/{self.name}"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who launches, as the container's user is to be."""

    uid: int
    gid: int
    name: str
    groups: tuple[int, ...] = ()
    """Further groups of theirs that own a mounted folder."""


class PullPolicy(StrEnum):
    """When an image is pulled before its container is made."""

    MISSING = "missing"
    NEVER = "never"
    ALWAYS = "always"


class Force(StrEnum):
    """Refusals that ``--force`` lifts."""

    ENGINE_NOT_LOCAL = "engine-not-local"
    OUTSIDE_PROJECT = "outside-project"
    """What a project's profile takes from outside of its folder."""
    DANGEROUS_MOUNT = "dangerous-mount"
    DANGEROUS_DEVICE = "dangerous-device"
    OPEN_JUPYTER = "open-jupyter"
    PRIVILEGED = "privileged"
    TEGRA_RUNTIME = "tegra-runtime"
    DISK_SPACE = "disk-space"


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """Everything that was asked for. None leaves a thing to the image, the engine, or the rules of launch."""

    image: str
    command: tuple[str, ...] = ()
    """Empty runs the image's own command."""
    entrypoint: tuple[str, ...] | None = None
    name: str | None = None
    """None has one made from the image's name."""
    gpus: GpuWish | None = None
    """None gives one GPU where that is possible, else none."""
    gpu_path: GpuPath | None = None
    """None takes what the engine offers."""
    mounts: tuple[Mount, ...] = ()
    ports: tuple[PortRequest, ...] = ()
    variables: tuple[Variable, ...] = ()
    env_files: tuple[str, ...] = ()
    """Absolute paths of the files that variables were read from."""
    labels: tuple[tuple[str, str], ...] = ()
    working_dir: str | None = None
    user: str | None = None
    """``uid:gid``, ``uid`` or names of the image; None is the image's own user, or the caller."""
    caller: Caller | None = None
    """Who the container runs as, with a home and a name there; None leaves it to ``user``."""
    work: Work = Work()  # noqa: RUF009  # frozen
    """The kind of work, which makes the command."""
    tmpfs: tuple[Tmpfs, ...] = ()
    secrets: tuple[Secret, ...] = ()
    devices: tuple[DeviceRequest, ...] = ()
    group_add: tuple[str, ...] = ()
    extra_hosts: tuple[tuple[str, str], ...] = ()
    read_only: bool = False
    """Its own file system cannot be written."""
    privileged: bool = False
    """It has every device and every right of the engine's machine."""
    hostname: str | None = None
    shm_bytes: int | None = None
    ipc_mode: str | None = None
    network: str | None = None
    memory_bytes: int | None = None
    cpus: float | None = None
    ulimits: tuple[Ulimit, ...] = ()
    restart_policy: str | None = None
    auto_remove: bool = False
    init: bool = True
    interactive: bool | None = None
    """A terminal and open input; None gives them when the container would run a shell."""
    pull: PullPolicy = PullPolicy.MISSING
    force: frozenset[Force] = frozenset()
    written: LaunchOptions | None = field(default=None, compare=False, repr=False)
    """The options it was read from, so that the launch can be written down and done again."""
    folder: str = field(default="", compare=False)
    """Where they were written: what relative paths in them mean."""
    taken: frozenset[str] = field(default=frozenset(), compare=False)
    """Variables of the shell whose values its profile has put in."""
    profile: str = field(default="", compare=False)
    """The profile they came from, wholly or in part; empty when from none."""


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One field that cannot be used as it is."""

    field: str
    """As the command line calls it: ``--volume``."""
    message: str
    """What is wrong, without the field's name, and without a full stop."""
    exit_code: ExitCode = ExitCode.USAGE
    """What a launch with this problem alone ends with: written wrongly, a path that is not there, or a bad file."""
    change: Change | None = None
    """What mends it, where one change does."""


class SpecInvalid(ConsoleError):
    """Fields of a launch cannot be used; ``problems`` names every one of them."""

    def __init__(self, problems: Sequence[FieldProblem]) -> None:
        self.problems = tuple(problems)
        told = [f"{problem.field}: {problem.message}." for problem in self.problems]
        several = len(told) > 1
        what = "them" if several else "it"
        super().__init__(
            "\n  ".join([f"{len(told)} options cannot be used:", *told]) if several else told[0],
            hint=f"Correct {what} and launch again; 'gpuconsole launch --help' shows every form.",
        )

    @property
    def exit_code(self) -> ExitCode:  # type: ignore[override]  # one class, since a form shows all problems at once
        """Wrongly written comes before not there, and that before what a file holds."""
        return min((problem.exit_code for problem in self.problems), default=ExitCode.USAGE)
