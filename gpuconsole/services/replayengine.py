"""The engine and the GPUs of a recording: they answer what they answered then, and refuse every change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn, Protocol

from gpuconsole.core.errors import NotFound, Refused, TimedOut
from gpuconsole.engine.model import Container, EngineEvent, EngineInfo, Image, ImageStep, Usage
from gpuconsole.engine.protocol import Stream
from gpuconsole.gpu.model import GpuSnapshot
from gpuconsole.services.logfollow import stamp_seconds
from gpuconsole.services.replay import Player, State

_LOOK_AGAIN_S = 0.2


class Played(Protocol):
    """What says how everything was."""

    @property
    def state(self) -> State:
        """How it was where one is."""


def refusal() -> Refused:
    """What is said to whoever wants to act in a recording."""
    return Refused(
        "This is a recording: it can be looked at, and nothing can be done in it.",
        hint="Open the console without --replay to act.",
    )


class RecordedGpus:
    """The GPUs as they were.

    Args:
        player: Says where one is.
    """

    def __init__(self, player: Player) -> None:
        self._player = player

    def snapshot(self, *, details: bool = False) -> GpuSnapshot:
        """How they were."""
        host = self._player.state.host
        if host is None:
            return GpuSnapshot(taken_at=self._player.clock.now(), problem="The recording has not begun.")
        return host.snapshot

    def close(self) -> None:
        """Nothing is open."""


class _RecordedOutput:
    """Lines of a container that were written by now; followed, those that come."""

    def __init__(self, player: Played, container_id: str, *, follow: bool, first: int, since: float, stamps: bool):
        self._player = player
        self._id = container_id
        self._follow = follow
        self._next = first
        self._since = since
        self._stamps = stamps
        self._closed = False
        self._moves = player.moves if isinstance(player, Player) else 0

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        while not self._closed:
            lines = self._player.state.output.get(self._id, [])
            while self._next < len(lines) and not self._closed:
                line = lines[self._next]
                self._next += 1
                if (stamp_seconds(line.stamp) or 0.0) >= self._since:
                    stamp = f"{line.stamp} " if self._stamps and line.stamp else ""
                    yield line.channel, f"{stamp}{line.text}\n".encode()
            player = self._player
            if not self._follow or not isinstance(player, Player) or player.closed or player.moves != self._moves:
                return  # one that followed what was before somebody went elsewhere ends
            with player.changed:
                player.changed.wait(_LOOK_AGAIN_S)

    def close(self) -> None:
        """End it."""
        self._closed = True


class _NoEvents:
    """A stream that ends at once."""

    def __iter__(self) -> Iterator[EngineEvent]:
        return iter(())

    def close(self) -> None:
        """It has ended."""


class RecordedEngine:
    """The engine as it was.

    Args:
        player: Says where one is.
    """

    def __init__(self, player: Played) -> None:
        self._player = player

    # --- what it answered ---

    def ping(self) -> None:
        """It answers."""

    def info(self) -> EngineInfo:
        """What it said of itself."""
        engine = self._player.state.engine
        if engine is None:
            raise NotFound("The recording holds nothing of an engine yet.", hint="Wait, or play another.")
        return engine

    def containers(self, *, everything: bool = True) -> tuple[Container, ...]:
        """The containers there were."""
        every = (view.container for view in self._player.state.containers)
        return tuple(container for container in every if everything or container.running)

    def container(self, reference: str) -> Container:
        """The one of this name, or whose id begins so."""
        for container in self.containers():
            if container.name == reference or (reference and container.id.startswith(reference)):
                return container
        raise NotFound(f"There was no container {reference} then.", hint="The list shows those there were.")

    def images(self, *, nameless: bool = False) -> tuple[Image, ...]:
        """The images there were."""
        return tuple(view.image for view in self._player.state.images)

    def image(self, reference: str) -> Image:
        """The one of this tag, digest or id."""
        for image in self.images():
            if reference in (*image.tags, *image.digests, image.id, image.short_id):
                return image
        raise NotFound(f"There was no image {reference} then.", hint="The list shows those there were.")

    def image_history(self, reference: str) -> tuple[str, ...]:
        """How it was built is not recorded."""
        self.image(reference)
        return ()

    def image_steps(self, reference: str) -> tuple[ImageStep, ...]:
        """How it was built is not recorded."""
        self.image(reference)
        return ()

    def usage(self, container_id: str) -> Usage:
        """CPU and memory as they were."""
        for view in self._player.state.containers:
            if view.container.id == container_id and view.usage is not None:
                return view.usage
        raise NotFound("The recording holds no figures of it.", hint="Those that ran have some.")

    def usages(self, container_ids: Sequence[str]) -> Mapping[str, Usage]:
        """CPU and memory as they were; those without figures are left out."""
        views = self._player.state.containers
        return {view.container.id: view.usage for view in views if view.usage and view.container.id in container_ids}

    def logs(
        self,
        container_id: str,
        *,
        follow: bool = False,
        tail: int | None = None,
        since: float | None = None,
        timestamps: bool = False,
    ) -> Stream[tuple[str, bytes]]:
        """What it had written by then."""
        container = self.container(container_id)
        count = len(self._player.state.output.get(container.id, []))
        return _RecordedOutput(
            self._player,
            container.id,
            follow=follow and container.running,
            first=0 if tail is None else max(0, count - tail),
            since=since or 0.0,
            stamps=timestamps,
        )

    def events(self, *, since: float | None = None) -> Stream[EngineEvent]:
        """None: the lists tell what happened."""
        return _NoEvents()

    def wait(self, container_id: str, *, timeout_s: float | None = None) -> int:
        """The exit code of one that had ended."""
        container = self.container(container_id)
        if container.exit_code is None or container.running:
            raise TimedOut(f"{container.name} runs in the recording.", hint="Play on until it ends.")
        return container.exit_code

    def volumes(self, *, label: str | None = None) -> frozenset[str]:
        """Those that containers had; what labels they had is not in a recording."""
        if label is not None:
            return frozenset()
        mounts = (mount for container in self.containers() for mount in container.mounts)
        return frozenset(mount.source for mount in mounts if mount.kind == "volume")

    def volume_folder(self, name: str) -> str | None:
        """That is not in a recording."""
        return None

    def close(self) -> None:
        """Nothing is open."""

    # --- what would change something, or needs the real one ---

    def _refuse(self, *arguments: Any, **options: Any) -> NoReturn:
        raise refusal()

    create = start = stop = restart = pause = unpause = remove = remove_volume = remove_image = _refuse
    execute = execute_interactive = attach = pull = build = image_files = _refuse
