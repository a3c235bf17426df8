"""The engine as :class:`gpuconsole.engine.protocol.Engine` has it, spoken to through Docker's interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpuconsole.engine.docker import (
    actions,
    build,
    containers,
    create,
    execute,
    imagefiles,
    images,
    info,
    interactive,
    logs,
    pull,
    usage,
    volumes,
)
from gpuconsole.engine.docker import events as event_stream
from gpuconsole.engine.docker.connection import Connection, negotiated
from gpuconsole.engine.docker.dial import CONNECT_TIMEOUT_S
from gpuconsole.engine.docker.execute import DockerExec
from gpuconsole.engine.docker.interactive import AttachedContainer, InteractiveExec
from gpuconsole.engine.docker.streams import EngineStream
from gpuconsole.engine.endpoint import Endpoint
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


class DockerEngine:
    """A Docker engine, or Podman's in its place; for all threads."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @classmethod
    def connect(cls, endpoint: Endpoint, *, timeout_s: float = CONNECT_TIMEOUT_S) -> DockerEngine:
        """The engine at ``endpoint``.

        Args:
            endpoint: Where it is.
            timeout_s: How long an ordinary call may take.

        Raises:
            EngineUnavailable: Nothing answers there.
            Refused: Its socket does not let this user in.
            TimedOut: It is there and silent.
            EngineRefused: It is too old.
        """
        return cls(Connection(endpoint, negotiated(endpoint, timeout_s=timeout_s), timeout_s=timeout_s))

    @property
    def connection(self) -> Connection:
        """The way to it, for the other modules of this package."""
        return self._connection

    def ping(self) -> None:
        """Return when it answers."""
        self._connection.tell(lambda client: client.ping())

    def info(self) -> EngineInfo:
        """What the engine says of itself."""
        return info.engine_info(self._connection)

    def containers(self, *, everything: bool = True) -> tuple[Container, ...]:
        """All containers, newest first; only those that run unless ``everything``. One that vanishes is left out."""
        return containers.list_containers(self._connection, everything=everything)

    def container(self, reference: str) -> Container:
        """The container with this name, id or unambiguous start of an id."""
        return containers.find_container(self._connection, reference)

    def images(self, *, nameless: bool = False) -> tuple[Image, ...]:
        """All local images that have a tag or digest or are in use, newest first; with ``nameless`` the others too."""
        return images.list_images(self._connection, nameless=nameless)

    def image(self, reference: str) -> Image:
        """The local image with this tag, digest or id; its containers are not counted."""
        return images.find_image(self._connection, reference)

    def image_history(self, reference: str) -> tuple[str, ...]:
        """The commands an image was built with, the newest first, as the engine kept them."""
        return images.image_history(self._connection, reference)

    def image_steps(self, reference: str) -> tuple[ImageStep, ...]:
        """The steps an image was built in with their sizes, the newest first."""
        return images.image_steps(self._connection, reference)

    def image_files(self, reference: str, paths: Sequence[str]) -> Mapping[str, bytes]:
        """The contents of small plain files in an image, nothing of it being run; what is none is left out."""
        return imagefiles.image_files(self._connection, reference, paths)

    def remove_image(self, reference: str) -> None:
        """Take a name from an image, and with its last name the image; by its id the image."""
        images.remove_image(self._connection, reference)

    def usage(self, container_id: str) -> Usage:
        """CPU and memory now; takes one to two seconds, since CPU use is a difference."""
        return usage.usage_now(self._connection, container_id)

    def usages(self, container_ids: Sequence[str]) -> Mapping[str, Usage]:
        """CPU and memory of several containers, in little more time than of one; those that are gone are left out."""
        return usage.usages_now(self._connection, container_ids)

    def create(self, request: CreateRequest) -> str:
        """Make a container and return its id. Nothing is left behind when it fails."""
        return create.create(self._connection, request)

    def start(self, container_id: str) -> None:
        """Start it."""
        actions.start(self._connection, container_id)

    def stop(self, container_id: str, *, grace_s: int = 10) -> None:
        """SIGTERM, and SIGKILL after ``grace_s`` seconds."""
        actions.stop(self._connection, container_id, grace_s=grace_s)

    def restart(self, container_id: str, *, grace_s: int = 10) -> None:
        """Stop and start."""
        actions.restart(self._connection, container_id, grace_s=grace_s)

    def pause(self, container_id: str) -> None:
        """Freeze its processes; GPU memory stays held."""
        actions.pause(self._connection, container_id)

    def unpause(self, container_id: str) -> None:
        """Let its processes go on."""
        actions.unpause(self._connection, container_id)

    def remove(self, container_id: str, *, force: bool = False, volumes: bool = False) -> None:
        """Remove it; ``force`` kills it first, ``volumes`` removes its anonymous volumes."""
        actions.remove(self._connection, container_id, force=force, volumes=volumes)

    def wait(self, container_id: str, *, timeout_s: float | None = None) -> int:
        """Wait for its end and return the exit code."""
        return actions.wait(self._connection, container_id, timeout_s=timeout_s)

    def logs(
        self,
        container_id: str,
        *,
        follow: bool = False,
        tail: int | None = None,
        since: float | None = None,
        timestamps: bool = False,
    ) -> EngineStream[tuple[str, bytes]]:
        """Its output as ``("stdout" | "stderr", bytes)``; with a tty everything is stdout."""
        return logs.logs(self._connection, container_id, follow=follow, tail=tail, since=since, timestamps=timestamps)

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
    ) -> DockerExec:
        """Start ``command`` in a running container."""
        return execute.execute(
            self._connection,
            container_id,
            command,
            user=user,
            working_dir=working_dir,
            environment=environment,
            tty=tty,
            stdin=stdin,
        )

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
    ) -> InteractiveExec:
        """Start ``command`` for a person, with a terminal of ``size`` rows and columns, or without one."""
        return interactive.execute_interactive(
            self._connection,
            container_id,
            command,
            size=size,
            detach_keys=detach_keys,
            user=user,
            working_dir=working_dir,
            environment=environment,
        )

    def attach(self, container_id: str, *, size: tuple[int, int] | None, detach_keys: str) -> AttachedContainer:
        """Join a running container's own terminal, or its input and output when it has none."""
        return interactive.attach(self._connection, container_id, size=size, detach_keys=detach_keys)

    def events(self, *, since: float | None = None) -> EngineStream[EngineEvent]:
        """What happens to containers and images from now on, or from ``since``."""
        return event_stream.events(self._connection, since=since)

    def pull(self, reference: str, *, platform: str | None = None) -> EngineStream[PullProgress]:
        """Pull an image; a failure is raised from the iteration, with which the pull begins."""
        return pull.pull(self._connection, reference, platform=platform)

    def build(
        self, dockerfile: str, *, tag: str, network: str | None = None, fresh: bool = False
    ) -> EngineStream[BuildProgress]:
        """Build an image from a Dockerfile alone; a failure is raised from the iteration, with which it begins."""
        return build.build(self._connection, dockerfile, tag=tag, network=network, fresh=fresh)

    def volumes(self, *, label: str | None = None) -> frozenset[str]:
        """The names of all volumes, anonymous ones included; only of those with ``label``, a ``KEY=VALUE``."""
        return volumes.volume_names(self._connection, label=label)

    def volume_folder(self, name: str) -> str | None:
        """The path of the engine's machine that a volume was made over; None of an ordinary one, or when it is none."""
        return volumes.volume_folder(self._connection, name)

    def remove_volume(self, name: str) -> None:
        """Remove a volume that no container uses."""
        volumes.remove_volume(self._connection, name)

    def close(self) -> None:
        """Close every connection and stream."""
        self._connection.close()
