"""The launch form's texts: what was typed as options, problems by field, the GPUs to choose from."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpuconsole.core.text import gib
from gpuconsole.host.model import HostView
from gpuconsole.host.state import memory_state
from gpuconsole.launch.options import LaunchOptions
from gpuconsole.launch.spec import FieldProblem
from gpuconsole.services.images import ImageView
from gpuconsole.tui.present.cell import Cell, Tone
from gpuconsole.tui.present.gpu import short_name


@dataclass(frozen=True, slots=True)
class Field:
    """One line of the form."""

    key: str
    label: str
    hint: str
    options: tuple[str, ...]
    """The options whose problems stand beside it."""


FIELDS = (
    Field("image", "Image", "a local image, or one to pull", ("IMAGE", "--pull")),
    Field("gpus", "GPUs", "auto, 2, device=0,1, all or none", ("--gpus", "--gpu-path")),
    Field("name", "Name", "made from the image when empty", ("--name",)),
    Field("volumes", "Volumes", "HOST:CONTAINER[:ro] …", ("--volume",)),
    Field("ports", "Ports", "8888 or 8080:80 …, on loopback", ("--publish",)),
    Field("environment", "Env", "NAME=VALUE or NAME …", ("--env",)),
    Field("shm", "Shm size", "8g when empty", ("--shm-size",)),
    Field("user", "User", "image, me, or uid:gid", ("--user",)),
    Field("workdir", "Workdir", "the image's own when empty", ("--workdir",)),
    Field("command", "Command", "a shell, or the image's own, when empty", ("COMMAND", "--entrypoint")),
)


def words(text: str) -> tuple[str, ...]:
    """Typed words as a shell would split them.

    Raises:
        ValueError: A quote is not closed.
    """
    return tuple(shlex.split(text))


def options_of(typed: Mapping[str, str], *, auto_remove: bool) -> tuple[LaunchOptions, list[FieldProblem]]:
    """What was typed as launch options, and what could not even be split into words."""
    problems: list[FieldProblem] = []

    def split(key: str, option: str) -> tuple[str, ...]:
        try:
            return words(typed.get(key, ""))
        except ValueError:
            problems.append(FieldProblem(option, "a quote is not closed", False))
            return ()

    def one(key: str) -> str | None:
        return typed.get(key, "").strip() or None

    options = LaunchOptions(
        image=typed.get("image", "").strip(),
        command=split("command", "COMMAND"),
        name=one("name"),
        gpus=one("gpus"),
        volumes=split("volumes", "--volume"),
        ports=split("ports", "--publish"),
        environment=split("environment", "--env"),
        shm_size=one("shm"),
        user=one("user") or "image",
        working_dir=one("workdir"),
        auto_remove=auto_remove,
    )
    return options, problems


def problem_of(field: Field, problems: Iterable[FieldProblem]) -> str:
    """What is wrong with a field; empty when nothing is."""
    return "; ".join(problem.message for problem in problems if problem.field in field.options)


def defaults(images: Sequence[ImageView], chosen: str | None, *, folder: str) -> dict[str, str]:
    """What the form starts with: an image with PyTorch, one free GPU, this folder as the workspace."""
    names = [view.image.tags[0] for view in images if view.image.tags]
    torch = [view.image.tags[0] for view in images if view.image.tags and view.facts.torch]
    image = chosen or next(iter(torch or names), "")
    home = os.path.expanduser("~")
    mount = "" if folder in (home, "/") else f"{shlex.quote(folder)}:/workspace"
    return {"image": image, "gpus": "auto", "volumes": mount, "workdir": "/workspace" if mount else ""}


def gpu_lines(host: HostView | None, *, at_most: int) -> list[tuple[Cell, ...]]:
    """The GPUs with what is free and who holds them."""
    if host is None:
        return [(Cell("Looking for GPUs …", "dim"),)]
    if not host.gpus:
        return [(Cell(host.snapshot.problem or "No GPU here.", "dim"),)]
    lines: list[tuple[Cell, ...]] = []
    for view in host.gpus[:at_most]:
        gpu = view.gpu
        names = dict.fromkeys(each.container_name or each.user or str(each.pid) for each in view.holders)
        held = f"held by {', '.join(names)}" if names else ""
        free = f"{gib(gpu.memory_free_bytes):>6} of {gib(gpu.memory_total_bytes)} GiB free"
        state = memory_state(view)
        tone: Tone = "ok" if state.value == "free" else "dim"
        lines.append((Cell(f"{gpu.index:>2} {short_name(gpu.name):<12} {free}  {state.value:<8} {held}", tone),))
    if len(host.gpus) > at_most:
        lines[-1] = (Cell(f" … and {len(host.gpus) - at_most + 1} more", "dim"),)
    return lines
