"""The launch form's fields: which there are, what they start with, which problem belongs to which."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from gpuconsole.core.text import plain_line
from gpuconsole.launch.spec import FieldProblem, Force
from gpuconsole.launch.work import Kind
from gpuconsole.services.images import ImageView


class Shape(Enum):
    """How a field's text is read."""

    ONE = "one"
    """It is the value."""
    WORDS = "words"
    """Several values, apart as a shell has them."""
    LINES = "lines"
    """Several values, each in a line of its own."""
    SWITCH = "switch"
    """Yes or no."""


@dataclass(frozen=True, slots=True)
class Field:
    """One thing to fill in."""

    key: str
    label: str
    hint: str
    options: tuple[str, ...]
    """The options whose problems stand beside it."""
    width: int = 0
    """Cells of its input; 0 takes what is left of the row."""
    choices: tuple[str, ...] = ()
    """What it can be, among other things."""
    shape: Shape = Shape.ONE
    of: str = ""
    """The field of ``LaunchOptions`` that it writes, where that is called otherwise."""
    kinds: tuple[str, ...] = ()
    """It is shown beside these kinds of work only, or when something stands in it."""
    usual: str = ""
    """What it means to write nothing, where that can be written as well."""

    @property
    def writes(self) -> str:
        """The field of ``LaunchOptions`` that it writes."""
        return self.of or self.key


Group = tuple[Field, ...]
"""Fields of one row."""

_KINDS = tuple(map(str, Kind))
_RULES = tuple(map(str, Force))
_WORDS, _LINES, _SWITCH = Shape.WORDS, Shape.LINES, Shape.SWITCH
_YES_NO = ("yes", "no")
ROWS: tuple[Group, ...] = (
    (
        Field("profile", "Profile", "down lists them", ("PROFILE",), width=26),
        Field("name", "Name", "made from the image's", ("--name",)),
    ),
    (Field("image", "Image", "one that is here (down lists them), or one to pull", ("IMAGE", "--pull")),),
    (Field("gpus", "GPUs", "auto: the freest; 2: that many; device=0,1; all; none", ("--gpus", "--gpu-path")),),
    (
        Field("kind", "Kind", "own command", ("--kind",), width=13, choices=_KINDS),
        Field("logdir", "Log folder", "in the container: /runs", ("--logdir",), kinds=("tensorboard",)),
        Field("processes", "Processes", "one for each GPU", ("--nproc-per-node",), kinds=("torchrun",)),
    ),
    (
        Field("command", "Command", "the image's own, with a terminal", ("COMMAND", "--entrypoint"),
              choices=("bash", "sh"), shape=_WORDS),
    ),
    (Field("volumes", "Volumes", "HOST:CONTAINER or HOST:CONTAINER:ro", ("--volume",), shape=_LINES),),
    (Field("ports", "Ports", "8888 or 8080:80, several apart; on 127.0.0.1 unless written", ("--publish",),
           shape=_WORDS),),
    (Field("environment", "Env", "NAME=VALUE, or NAME from this shell; several apart", ("--env",), shape=_WORDS),),
    (
        Field("shm", "Shm size", "8g", ("--shm-size",), width=8, of="shm_size"),
        Field("user", "User", "me or image", ("--user",), width=13, choices=("me", "image")),
        Field("workdir", "Workdir", "the image's own", ("--workdir",), of="working_dir"),
    ),
)  # fmt: skip
MORE: tuple[Group, ...] = (
    (
        Field("memory", "Memory", "no limit", ("--memory",), width=8),
        Field("cpus", "CPUs", "all", ("--cpus",), width=13),
        Field("hostname", "Hostname", "its id", ("--hostname",)),
    ),
    (
        Field("ipc", "Ipc", "private", ("--ipc",), width=8, choices=("private", "shareable", "host")),
        Field("network", "Net", "bridge", ("--network",), width=13, choices=("bridge", "host", "none")),
        Field("restart", "Restart", "no", ("--restart",), choices=("no", "on-failure", "unless-stopped", "always")),
    ),
    (
        Field("pull", "Pull", "missing", ("--pull",), width=8, choices=("missing", "never", "always"), usual="missing"),
        Field("init", "Init", "yes", ("--init",), width=13, choices=_YES_NO, shape=_SWITCH, usual="yes"),
        Field("gpu_path", "GPU path", "by itself", ("--gpu-path",), choices=("auto", "cdi", "hook", "runtime")),
    ),
    (
        Field("read_only", "Read-only", "no", ("--read-only",), width=8, choices=_YES_NO, shape=_SWITCH, usual="no"),
        Field("privileged", "Privileged", "no", ("--privileged",), width=13, choices=_YES_NO, shape=_SWITCH,
              usual="no"),
        Field("group_add", "Groups", "further groups", ("--group-add",), shape=_WORDS),
    ),
    (Field("secrets", "Secrets", "NAME=FILE: a file at /run/secrets/NAME, seen by nobody else", ("--secret",),
           shape=_WORDS),),
    (Field("env_files", "Env files", "variables from files, a line each", ("--env-file",), shape=_WORDS),),
    (Field("tmpfs", "Tmpfs", "memory as a folder: /tmp:size=8g, several apart", ("--tmpfs",), shape=_WORDS),),
    (Field("mounts", "Mounts", "type=bind,source=HOST,target=CONTAINER,readonly", ("--mount",), shape=_WORDS),),
    (
        Field("nodes", "Machines", "1", ("--nnodes",), width=8),
        Field("rendezvous", "Meet at", "HOST:PORT", ("--rdzv-endpoint",), width=13),
        Field("rendezvous_id", "Meeting", "torchrun's name", ("--rdzv-id",)),
    ),
    (Field("ulimits", "Ulimits", "memlock=-1 stack=67108864", ("--ulimit",), shape=_WORDS),),
    (Field("devices", "Devices", "that are no GPUs: /dev/X, /dev/X:/dev/Y:rwm", ("--device",), shape=_WORDS),),
    (Field("extra_hosts", "Hosts", "NAME:ADDRESS, several apart", ("--add-host",), shape=_WORDS),),
    (Field("labels", "Labels", "KEY=VALUE, several apart", ("--label",), shape=_WORDS),),
    (Field("entrypoint", "Entrypoint", "the image's own; '' for none", ("--entrypoint",)),),
    (Field("force", "Force", "lift a refusal, as the refusal names it", ("--force",), choices=_RULES,
           shape=_WORDS),),
)  # fmt: skip
FIELDS: tuple[Field, ...] = tuple(field for group in (*ROWS, *MORE) for field in group)
MORE_KEYS = frozenset(field.key for group in MORE for field in group)
PATHS = frozenset(("volumes", "env_files", "secrets"))
"""Fields whose paths are completed."""
MOST_VOLUMES = 16
"""Lines for volumes that are opened by themselves, one after the other; a profile may bring more."""
_KIND_WORDS = {
    "": "down lists what it can be for",
    Kind.SHELL: "a terminal to work in",
    Kind.JUPYTER: "JupyterLab behind a token",
    Kind.SCRIPT: "the command is a script, and what it is given",
}
_COMMANDS = {
    Kind.SHELL: "bash, or sh where there is none",
    Kind.JUPYTER: "further options of jupyter lab",
    Kind.TENSORBOARD: "further options of tensorboard",
    Kind.TORCHRUN: "train.py --lr 0.1",
    Kind.SCRIPT: "train.py --lr 0.1",
}


def kind_words(kind: str) -> str:
    """What a kind of work is, where it has no option of its own to stand beside it."""
    return _KIND_WORDS.get(kind, "")


def command_hint(kind: str) -> str:
    """What the command is beside a kind of work."""
    return _COMMANDS.get(kind, "the image's own, with a terminal")  # type: ignore[call-overload,no-any-return]


def field_named(key: str) -> Field:
    """The field of this key."""
    return next(field for field in FIELDS if field.key == key)


def field_of(problem: FieldProblem) -> Field | None:
    """The field a problem belongs to."""
    return next((field for field in FIELDS if problem.field in field.options), None)


def proposed_image(images: Sequence[ImageView]) -> str:
    """The newest local image with PyTorch, one with CUDA before one without; empty when there is none."""
    known = [view for view in images if view.image.tags and view.facts.torch]
    known.sort(key=lambda view: (view.facts.cpu_only is not True, view.image.created_at or 0), reverse=True)
    return known[0].image.tags[0] if known else ""


def proposed(folder: str | None, *, engine_is_local: bool, without_gpus: bool = False) -> dict[str, str]:
    """What a form starts with: one free GPU where there are any, and the folder one stands in as the workspace."""
    gpus = {} if without_gpus else {"gpus": "auto"}
    fitting = folder and ":" not in folder and plain_line(folder) == folder
    if not fitting or not engine_is_local or folder in (os.path.expanduser("~"), "/"):
        return gpus
    return gpus | {"volumes": f"{folder}:/workspace", "workdir": "/workspace"}


def current_folder() -> str | None:
    """The folder this program works in; None when it is gone."""
    try:
        return os.getcwd()
    except OSError:
        return None
