"""All that is ever asked of a container engine.

Every method raises only :class:`gpuconsole.core.errors.ConsoleError`: ``EngineUnavailable`` when nothing answers,
``NotFound``, ``Conflict``, ``Refused``, ``TimedOut`` or ``EngineRefused`` when the answer is no. All text in what comes
back went through :mod:`gpuconsole.core.text`, log and exec output excepted, which is given as bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

from gpuconsole.engine.model import (
    BuildProgress,
    Container,
    EngineEvent,
    EngineInfo,
    Image,
    ImageStep,
    PullProgress,
    Usage,
)
from gpuconsole.engine.request import CreateRequest

Item = TypeVar("Item", covariant=True)


class Stream(Protocol[Item]):
    """Items as they come; ``close`` from any thread ends the iteration cleanly."""

    def __iter__(self) -> Iterator[Item]: ...

    def close(self) -> None:
        """End it; an iteration under way stops without an error."""
        ...


class ExecProcess(Protocol):
    """A process started in a running container, its output streamed, its input open."""

    @property
    def output(self) -> Stream[tuple[str, bytes]]:
        """``("stdout" | "stderr", bytes)`` as written; with a tty everything is stdout."""
        ...

    def write(self, data: bytes) -> None:
        """Send ``data`` to its standard input."""
        ...

    def close_input(self) -> None:
        """End its standard input; output goes on."""
        ...

    def exit_code(self) -> int | None:
        """Its exit code, None while it runs."""
        ...

    def close(self) -> None:
        """Let go of the connection. The process itself goes on: the engine cannot kill an exec."""
        ...


class InteractiveProcess(ExecProcess, Protocol):
    """A process a person talks to: one started for them, or a container's own."""

    @property
    def backlog(self) -> int:
        """How many pieces of what was written the engine has not taken yet."""
        ...

    def resize(self, *, rows: int, columns: int) -> None:
        """Tell its terminal the new size; nothing happens when it has no terminal or has just ended."""
        ...


class Engine(Protocol):
    """A container engine: Docker, or Podman's socket in its place."""

    def ping(self) -> None:
        """Return when it answers: the cheapest question there is."""
        ...

    def info(self) -> EngineInfo:
        """What the engine says of itself."""
        ...

    def containers(self, *, everything: bool = True) -> tuple[Container, ...]:
        """All containers, newest first; only those that run unless ``everything``. One that vanishes is left out."""
        ...

    def container(self, reference: str) -> Container:
        """The container with this name, id or unambiguous start of an id."""
        ...

    def images(self, *, nameless: bool = False) -> tuple[Image, ...]:
        """All local images that have a tag or digest or are in use, newest first; with ``nameless`` the others too."""
        ...

    def image(self, reference: str) -> Image:
        """The local image with this tag, digest or id; its containers are not counted."""
        ...

    def image_history(self, reference: str) -> tuple[str, ...]:
        """The commands an image was built with, the newest first, as the engine kept them."""
        ...

    def image_steps(self, reference: str) -> tuple[ImageStep, ...]:
        """The steps an image was built in with their sizes, the newest first."""
        ...

    def image_files(self, reference: str, paths: Sequence[str]) -> Mapping[str, bytes]:
        """The contents of small plain files in an image, nothing of it being run; what is none is left out."""
        ...

    def remove_image(self, reference: str) -> None:
        """Take a name from an image, and with its last name the image; by its id the image unless it has several names.

        ``Conflict`` while a container uses it or another image is made from it.
        """
        ...

    def usage(self, container_id: str) -> Usage:
        """CPU and memory now; takes about a second, since CPU use is a difference."""
        ...

    def usages(self, container_ids: Sequence[str]) -> Mapping[str, Usage]:
        """CPU and memory of several containers, in little more time than of one; those that are gone are left out."""
        ...

    def create(self, request: CreateRequest) -> str:
        """Make a container and return its id. Nothing is left behind when it fails."""
        ...

    def start(self, container_id: str) -> None:
        """Start it."""
        ...

    def stop(self, container_id: str, *, grace_s: int = 10) -> None:
        """SIGTERM, and SIGKILL after ``grace_s`` seconds."""
        ...

    def restart(self, container_id: str, *, grace_s: int = 10) -> None:
        """Stop and start."""
        ...

    def pause(self, container_id: str) -> None:
        """Freeze its processes; GPU memory stays held."""
        ...

    def unpause(self, container_id: str) -> None:
        """Let its processes go on."""
        ...

    def remove(self, container_id: str, *, force: bool = False, volumes: bool = False) -> None:
        """Remove it; ``force`` kills it first, ``volumes`` removes its anonymous volumes."""
        ...

    def wait(self, container_id: str, *, timeout_s: float | None = None) -> int:
        """Wait for its end and return the exit code."""
        ...

    def logs(
        self,
        container_id: str,
        *,
        follow: bool = False,
        tail: int | None = None,
        since: float | None = None,
        timestamps: bool = False,
    ) -> Stream[tuple[str, bytes]]:
        """Its output as ``("stdout" | "stderr", bytes)``; with a tty everything is stdout."""
        ...

    def execute(
        self,
        container_id: str,
        command: Sequence[str],
        *,
        user: str | None = None,
        working_dir: str | None = None,
        environment: Mapping[str, str] | None = None,
        tty: bool = False,
        stdin: bool = True,
    ) -> ExecProcess:
        """Start ``command`` in a running container."""
        ...

    def execute_interactive(
        self,
        container_id: str,
        command: Sequence[str],
        *,
        size: tuple[int, int] | None,
        detach_keys: str,
        user: str | None = None,
        working_dir: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> InteractiveProcess:
        """Start ``command`` for a person.

        Args:
            container_id: A running container.
            command: The program and its arguments.
            size: Rows and columns of its terminal; None gives it pipes instead of a terminal.
            detach_keys: Keys that end the connection and leave the process, as docker writes them.
            user: Name or id; None takes the container's own.
            working_dir: None takes the container's own.
            environment: Variables added to the container's.
        """
        ...

    def attach(self, container_id: str, *, size: tuple[int, int] | None, detach_keys: str) -> InteractiveProcess:
        """Join a running container's own terminal, or its input and output when it has none.

        ``exit_code`` of what is returned is the container's; ``size`` matters only where it has a terminal.
        """
        ...

    def events(self, *, since: float | None = None) -> Stream[EngineEvent]:
        """What happens to containers and images from now on, or from ``since``."""
        ...

    def pull(self, reference: str, *, platform: str | None = None) -> Stream[PullProgress]:
        """Pull an image; a failure inside the stream is raised from the iteration."""
        ...

    def build(
        self, dockerfile: str, *, tag: str, network: str | None = None, fresh: bool = False
    ) -> Stream[BuildProgress]:
        """Build an image from a Dockerfile that needs no files beside it; it begins with the iteration.

        Closing the stream ends the build in the engine too. What its finished steps left stays, named in what it told.

        Args:
            dockerfile: Its text.
            tag: The name the image gets once all steps went well.
            network: What its steps have: ``host``, ``none`` or a network's name; None takes the engine's own.
            fresh: Carry every step out, also those that an earlier build has done already.

        Raises:
            ConsoleError: From the iteration: the engine refused it, or a step failed.
        """
        ...

    def volumes(self, *, label: str | None = None) -> frozenset[str]:
        """The names of all volumes, anonymous ones included; only of those with ``label``, a ``KEY=VALUE``."""
        ...

    def volume_folder(self, name: str) -> str | None:
        """The path of the engine's machine that a volume was made over; None of an ordinary one, or when it is none."""
        ...

    def remove_volume(self, name: str) -> None:
        """Remove a volume; ``Conflict`` while a container uses it."""
        ...

    def close(self) -> None:
        """Close every connection and stream."""
        ...
