"""The launch form's fields: what they start with, what was typed as options, which problem belongs to which field."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpuconsole.core.text import plain_line
from gpuconsole.launch.options import LaunchOptions
from gpuconsole.launch.spec import FieldProblem, GpuWishKind
from gpuconsole.launch.wish import parse_gpus
from gpuconsole.services.images import ImageView


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


Group = tuple[Field, ...]
"""Fields of one row."""

ROWS: tuple[Group, ...] = (
    (Field("image", "Image", "one that is here (down lists them), or one to pull", ("IMAGE", "--pull")),),
    (Field("gpus", "GPUs", "auto: the freest; 2: that many; device=0,1; all; none", ("--gpus", "--gpu-path")),),
    (Field("name", "Name", "made from the image's", ("--name",)),),
    (Field("volumes", "Volumes", "HOST:CONTAINER or HOST:CONTAINER:ro", ("--volume",)),),
    (Field("ports", "Ports", "8888 or 8080:80, several apart; on 127.0.0.1 unless written", ("--publish",)),),
    (Field("environment", "Env", "NAME=VALUE, or NAME from this shell; several apart", ("--env",)),),
    (
        Field("shm", "Shm size", "8g", ("--shm-size",), width=8),
        Field("user", "User", "me or image", ("--user",), width=13, choices=("me", "image")),
        Field("workdir", "Workdir", "the image's own", ("--workdir",)),
    ),
    (
        Field(
            "command",
            "Command",
            "the image's own, with a terminal",
            ("COMMAND", "--entrypoint"),
            choices=("bash", "sh"),
        ),
    ),
)
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
        Field("pull", "Pull", "missing", ("--pull",), width=8, choices=("missing", "never", "always")),
        Field("init", "Init", "yes", ("--init",), width=13, choices=("yes", "no")),
        Field("gpu_path", "GPU path", "by itself", ("--gpu-path",), choices=("auto", "cdi", "hook", "runtime")),
    ),
    (Field("ulimits", "Ulimits", "memlock=-1 stack=67108864", ("--ulimit",)),),
    (Field("env_files", "Env files", "variables from files, a line each", ("--env-file",)),),
    (Field("labels", "Labels", "KEY=VALUE, several apart", ("--label",)),),
    (Field("entrypoint", "Entrypoint", "the image's own", ("--entrypoint",)),),
    (Field("force", "Force", "engine-not-local: same GPUs there", ("--force",), choices=("engine-not-local",)),),
)  # fmt: skip
FIELDS: tuple[Field, ...] = tuple(field for group in (*ROWS, *MORE) for field in group)
MORE_KEYS = frozenset(field.key for group in MORE for field in group)
PATHS = frozenset(("volumes", "env_files"))
"""Fields whose paths are completed."""
MOST_VOLUMES = 16


def is_yes(text: str) -> bool:
    """Whether a field that is yes or no says yes; empty does."""
    return text.strip().lower() not in ("no", "n", "off", "false", "0")


@dataclass(frozen=True, slots=True)
class Ticks:
    """What is ticked."""

    remove: bool = False
    terminal: bool | None = None
    """None leaves it to the command: a shell gets one."""


def options_of(
    typed: Mapping[str, str], ticks: Ticks, *, uuids: Mapping[str, str]
) -> tuple[LaunchOptions, tuple[FieldProblem, ...]]:
    """What was typed as launch options, and what could not even be split into words.

    Args:
        typed: Fields by key; volumes stand in lines.
        ticks: What is ticked.
        uuids: UUID of each GPU that is shown, by its index: the one that was seen is the one that is meant.
    """
    problems: list[FieldProblem] = []

    def split(key: str, option: str) -> tuple[str, ...]:
        try:
            return tuple(shlex.split(typed.get(key, "")))
        except ValueError:
            problems.append(FieldProblem(option, "a quote is not closed"))
            return ()

    def one(key: str) -> str | None:
        return typed.get(key, "").strip() or None

    options = LaunchOptions(
        image=typed.get("image", "").strip(),
        command=split("command", "COMMAND"),
        entrypoint=one("entrypoint"),
        name=one("name"),
        gpus=by_uuid(one("gpus"), uuids),
        gpu_path=one("gpu_path"),
        volumes=tuple(line.strip() for line in typed.get("volumes", "").splitlines() if line.strip()),
        ports=split("ports", "--publish"),
        environment=split("environment", "--env"),
        env_files=split("env_files", "--env-file"),
        labels=split("labels", "--label"),
        working_dir=one("workdir"),
        user=one("user"),
        hostname=one("hostname"),
        shm_size=one("shm"),
        ipc=one("ipc"),
        network=one("network"),
        memory=one("memory"),
        cpus=one("cpus"),
        ulimits=split("ulimits", "--ulimit"),
        restart=one("restart"),
        auto_remove=ticks.remove,
        init=is_yes(typed.get("init", "")),
        interactive=ticks.terminal,
        pull=one("pull") or "missing",
        force=split("force", "--force"),
    )
    return options, tuple(problems)


def by_uuid(text: str | None, uuids: Mapping[str, str]) -> str | None:
    """The wish for GPUs with UUIDs in place of indices; what is not known stays as it is."""
    if text is None:
        return None
    try:
        wish = parse_gpus(text)
    except ValueError:
        return text
    if wish.kind is not GpuWishKind.DEVICES:
        return text
    return f"device={','.join(uuids.get(device, device) for device in wish.devices)}"


def problems_of(group: Group, problems: Iterable[FieldProblem]) -> tuple[str, ...]:
    """What is wrong with the fields of a row, a sentence each; with several fields, which one."""
    problems = tuple(problems)
    texts = [
        plain_line(f"{field.label}: {problem.message}" if len(group) > 1 else problem.message)
        for field in group
        for problem in problems
        if problem.field in field.options
    ]
    return tuple(dict.fromkeys(texts))


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
