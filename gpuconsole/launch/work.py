"""Kinds of work: what a container is for, and the command, port and defaults that follow from it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from gpuconsole.launch.limits import is_number, number_up_to


class Kind(StrEnum):
    """What a container is for."""

    SHELL = "shell"
    """A terminal to work in."""
    JUPYTER = "jupyter"
    """JupyterLab behind a token."""
    TENSORBOARD = "tensorboard"
    """Curves of a log folder; needs no GPU."""
    TORCHRUN = "torchrun"
    """A script, one process for each GPU."""
    SCRIPT = "script"
    """A script with its arguments."""


PORTS = {Kind.JUPYTER: 8888, Kind.TENSORBOARD: 6006}
"""The port inside of the kinds that are used through a browser. No other kind opens one."""
EVERYWHERE = "0.0.0.0"  # noqa: S104  # in a container's own network
TOKEN_NAME = "jupyter_token"  # noqa: S105  # the name of the file
TOKEN_VARIABLE = "JUPYTER_TOKEN_FILE"  # noqa: S105
"""Jupyter reads its token from the file that it names, and then writes ``token=...`` into its log."""
_TOKEN_OPTION = re.compile(r"--?\w+\.(token|password|hashed_password)\b", re.IGNORECASE)
_SHELL = "command -v bash >/dev/null 2>&1 && exec bash; exec sh"
_HOST_PORT = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9_.-]+):([0-9]{1,9})")
_MOST_PROCESSES = 4096


@dataclass(frozen=True, slots=True)
class Work:
    """The kind of work and its own options."""

    kind: Kind | None = None
    """None takes the command as it is written."""
    processes: int | None = None
    """Of torchrun on this machine; None is one for each GPU."""
    nodes: int | None = None
    """Machines that work together; None is this one alone."""
    rendezvous: str | None = None
    """``HOST:PORT`` where they meet."""
    rendezvous_id: str | None = None
    logdir: str | None = None
    """What TensorBoard reads, in the container."""

    @property
    def port(self) -> int | None:
        """The port it listens on inside; None when the kind opens none."""
        return PORTS.get(self.kind) if self.kind else None


def command_of(work: Work, words: tuple[str, ...], *, gpus: int, address: str, port: int | None) -> tuple[str, ...]:
    """The command for the container.

    Args:
        work: The kind.
        words: What was written after ``--``.
        gpus: How many the container gets.
        address: Where a server listens: everywhere in a network of its own, on loopback in the host's.
        port: Where it listens.
    """
    if work.kind is Kind.SHELL:
        return words or ("sh", "-c", _SHELL)
    if work.kind is Kind.JUPYTER:
        where = (f"--ip={address}", f"--port={port}", "--port-retries=0")
        return ("jupyter", "lab", *where, "--no-browser", "--allow-root", *words)
    if work.kind is Kind.TENSORBOARD:
        return ("tensorboard", f"--logdir={work.logdir}", f"--host={address}", f"--port={port}", *words)
    if work.kind is Kind.TORCHRUN:
        return ("torchrun", *_torchrun(work, gpus), *words)
    if work.kind is Kind.SCRIPT:
        return (*_interpreter(words[0]), *words)
    return words


def _torchrun(work: Work, gpus: int) -> tuple[str, ...]:
    count = f"--nproc-per-node={work.processes or max(1, gpus)}"
    if work.rendezvous is None:
        return "--standalone", count
    met = (f"--nnodes={work.nodes or 1}", "--rdzv-backend=c10d", f"--rdzv-endpoint={work.rendezvous}")
    named = (f"--rdzv-id={work.rendezvous_id}",) if work.rendezvous_id else ()
    return (*met, *named, count)


def _interpreter(script: str) -> tuple[str, ...]:
    if script.endswith(".py"):
        return "python", "-u"  # what it prints is in the log at once
    return ("sh",) if script.endswith(".sh") else ()


def words_of(kind: Kind, command: tuple[str, ...]) -> tuple[str, ...]:
    """What was written after ``--``, of the command that :func:`command_of` made of it."""
    if kind is Kind.SHELL:
        return () if command == ("sh", "-c", _SHELL) else command
    last = {Kind.JUPYTER: "--allow-root", Kind.TENSORBOARD: "--port=", Kind.TORCHRUN: "--nproc-per-node="}.get(kind)
    if last is None:
        return command[2:] if command[:2] == ("python", "-u") else command[1:] if command[:1] == ("sh",) else command
    ours = next((place for place, word in enumerate(command) if word.startswith(last)), -1)
    return command[ours + 1 :]


def parse_kind(text: str) -> Kind:
    """A kind by its word."""
    try:
        return Kind(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no kind; there is {', '.join(Kind)}") from error


def parse_processes(text: str) -> int:
    """A number of processes or machines."""
    count = number_up_to(text, _MOST_PROCESSES) if is_number(text) else None
    if not count:
        raise ValueError(f"{text!r} is no number from 1 to {_MOST_PROCESSES}")
    return count


def parse_rendezvous(text: str) -> str:
    """``HOST:PORT``."""
    match = _HOST_PORT.fullmatch(text)
    if match is None or not number_up_to(match[2], 65535) or int(match[2]) == 0:
        raise ValueError(f"{text!r} is no address to meet at; write HOST:PORT, such as node-1:29500")
    return text


def parse_word(text: str) -> str:
    """A name without white space, for programs that take it as one word."""
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,100}", text):
        raise ValueError(f"{text!r} cannot be a name; use letters, digits, _ . -")
    return text


def parse_logdir(text: str) -> str:
    """A folder in the container; relative to where the command starts."""
    if not text.strip() or text.startswith("-"):
        raise ValueError(f"{text!r} is no folder; write its path in the container, such as /runs")
    return text


def wrong_together(work: Work, words: tuple[str, ...], *, network: str | None) -> list[tuple[str, str]]:
    """Option → what is wrong with it beside the kind."""
    found: list[tuple[str, str]] = []
    for_torchrun = {
        "--nproc-per-node": work.processes, "--nnodes": work.nodes, "--rdzv-endpoint": work.rendezvous,
        "--rdzv-id": work.rendezvous_id,
    }  # fmt: skip
    if work.kind is not Kind.TORCHRUN:
        found += [(option, "is for --kind torchrun") for option, value in for_torchrun.items() if value is not None]
    elif work.nodes is not None and work.nodes > 1 and work.rendezvous is None:
        found.append(("--nnodes", "several machines need --rdzv-endpoint HOST:PORT, the same on all of them"))
    elif work.rendezvous_id is not None and work.rendezvous is None:
        found.append(("--rdzv-id", "is for --rdzv-endpoint"))
    if work.kind is Kind.TENSORBOARD:
        if work.logdir is None:
            found.append(("--logdir", "TensorBoard needs it: the folder in the container that holds the runs"))
    elif work.logdir is not None:
        found.append(("--logdir", "is for --kind tensorboard"))
    if work.kind is Kind.JUPYTER and any(_TOKEN_OPTION.match(word) for word in words):
        found.append(("COMMAND", f"a token there is seen by every user; give a file by --secret {TOKEN_NAME}=FILE"))
    if work.kind in (Kind.TORCHRUN, Kind.SCRIPT) and not words:
        found.append(("COMMAND", f"--kind {work.kind} needs a script after --, such as -- train.py"))
    if work.port is not None and network is not None and network.partition(":")[0] in ("none", "container"):
        found.append(("--network", f"--kind {work.kind} is used through a port, which --network {network} has none of"))
    return found
