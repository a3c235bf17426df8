"""The console's desk on a recording: everything is shown as it was, and nothing can be done."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NoReturn

from gpuconsole.engine.endpoint import DEFAULT_SOCKET, Endpoint
from gpuconsole.images.catalog import shipped_catalog
from gpuconsole.launch.fields import Surroundings
from gpuconsole.launch.labels import USER
from gpuconsole.services.benchdesk import BenchDesk
from gpuconsole.services.desk import Desk
from gpuconsole.services.drafts import Drafts, Typed
from gpuconsole.services.imagedesk import ImageDesk
from gpuconsole.services.lockfile import AllPins
from gpuconsole.services.replay import Clock, Player, ReplayListener, Sight
from gpuconsole.services.replayengine import RecordedEngine, RecordedGpus, refusal
from gpuconsole.services.replayevents import Moment, moments_of
from gpuconsole.services.runs import Run, RunKind, Runs, RunState
from gpuconsole.services.seenimages import SeenImages
from gpuconsole.services.session import Session
from gpuconsole.services.shelf import ImageJudge
from gpuconsole.services.tunnels import Server

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpuconsole.engine.model import Container
    from gpuconsole.engine.protocol import Engine
    from gpuconsole.gpu.source import GpuSource
    from gpuconsole.host.facts import LaunchFacts
    from gpuconsole.host.model import Holder
    from gpuconsole.services.desk import DeskListener
    from gpuconsole.services.imagebuilds import ImageBuilds
    from gpuconsole.services.images import ImageView
    from gpuconsole.services.replayfile import Recording

_HOME = "/home/me"


class ReplayDesk(Desk):
    """A desk whose machine is a recording.

    Args:
        recording: What is played.
        clock: Where one is in it; one that goes on by itself when None.
        marked: Say beside the machine's name that it is a recording.
    """

    def __init__(self, recording: Recording, *, clock: Clock | None = None, marked: bool = True) -> None:
        self._marked = marked
        self.clock = clock or Clock(recording)
        self.player = Player(recording, self.clock)
        super().__init__(ReplaySession(self.player), runs=Runs(kept=False), drafts=_NoDrafts())
        self._recording = recording
        self._listener: _Forwarding | None = None
        self._moments: tuple[Moment, ...] | None = None

    def start(self, listener: DeskListener, interval_s: float) -> None:
        """Begin to play to ``listener``; how often it wants to look, the recording decides."""
        self.runs.on_change = listener.runs_changed
        self._listener = _Forwarding(listener, self.runs, self.player)
        self.player.start(self._listener)

    def judge_images(self) -> None:
        """Judge the images for the machine it was recorded on, now and whenever others are listed."""
        listener = self._listener
        if listener is not None and not listener.judging:
            listener.judging = True
            threading.Thread(
                target=listener.images_listed, args=(self.player.state.images,), name="image-judge", daemon=True
            ).start()

    @property
    def images(self) -> ImageDesk:
        """Nothing can be done with the images of a recording."""
        return _NoImages(self.session, self.runs, holder=self, refresh=lambda: None, check=self.check_image)

    @property
    def benches(self) -> BenchDesk:
        """Nothing is measured on a recording."""
        return _NoBenches(self.session, self._checks)

    @property
    def started(self) -> bool:
        """Somebody listens."""
        return self._listener is not None

    def go_to(self, position_s: float) -> None:
        """Go forward to that second, and tell at once all that happened till then."""
        self.clock.go_to(position_s)
        if self._listener is not None:
            self.player.advance(self._listener)

    def seek(self, position_s: float) -> None:
        """Go to that second, forward or back; the listener is told all that is known there, at once."""
        self.player.seek(position_s)

    @property
    def length_s(self) -> float:
        """Seconds the recording lasts."""
        return self._recording.length_s

    @property
    def moments(self) -> tuple[Moment, ...]:
        """What happened in it, oldest first."""
        if self._moments is None:
            self._moments = moments_of(self._recording)
        return self._moments

    def close(self) -> None:
        """End it."""
        self.player.close()
        super().close()

    # --- who and where: as it was there ---

    @property
    def me(self) -> str:
        """Who recorded it."""
        return self._recording.user

    @property
    def host_name(self) -> str:
        """The machine it was recorded on."""
        return f"{self._recording.host} · recording" if self._marked else self._recording.host

    def server(self, endpoint_url: str) -> Server:
        """The machine it was recorded on."""
        return Server(address=self._recording.host, user=self._recording.user or None)

    def now(self) -> float:
        """The time there and then."""
        return self.clock.now()

    def owner(self, container: Container) -> str | None:
        """The user it belonged to, when that was not who recorded it."""
        label = container.labels.get(USER)
        return label if label and label != self.me else None

    # --- what cannot be done ---

    def address(self) -> str:
        """Nobody can enter a container of a recording."""
        raise refusal()

    def end_process(self, holder: Holder, *, others: bool = False) -> str:
        """No process of a recording can be ended."""
        raise refusal()

    def check_container(self, container: Container) -> str:
        """A run that says that it cannot be."""
        return self._no_check(container.name, container.id)

    def check_image(self, name: str, image_id: str) -> str:
        """A run that says that it cannot be."""
        return self._no_check(name, image_id)

    def _no_check(self, subject: str, subject_id: str) -> str:
        now, why = self.now(), refusal()
        headline = f"{why.message} → {why.hint}"
        run = Run(f"here-{now}", RunKind.CHECK, subject, subject_id, now, RunState.CANCELLED, now, headline)
        self.runs.show([run])
        return run.id


class ReplaySession(Session):
    """The GPUs and the engine of a recording.

    Args:
        player: Plays it.
    """

    recorded = True

    def __init__(self, player: Player) -> None:
        super().__init__()
        self._player = player

    @property
    def gpus(self) -> GpuSource:
        """Its GPUs."""
        return RecordedGpus(self._player)

    @property
    def endpoint(self) -> Endpoint:
        """Where its engine was."""
        info = self._player.state.engine
        return Endpoint(url=info.endpoint if info else f"unix://{DEFAULT_SOCKET}", source="recording")

    @property
    def engine(self) -> Engine:
        """Its engine."""
        return RecordedEngine(self._player)

    def surroundings(self) -> Surroundings:
        """A home of the kind it was recorded in; its paths are not looked for on this machine."""
        return Surroundings(
            cwd=f"{_HOME}/project", home=_HOME, environment={}, uid=1000, gid=1000, engine_is_local=False
        )

    def launch_facts(self, cdi_dirs: Iterable[str]) -> LaunchFacts:
        """What its machine had for giving GPUs to containers."""
        return self._player.state.facts


class _NoDrafts(Drafts):
    """Nothing was launched from a recording, and nothing of it is remembered."""

    def last(self, folder: str) -> dict[str, str]:
        """Nothing."""
        return {}

    def remember(self, folder: str, typed: Typed) -> None:
        """Let it go."""


class _NoImages(ImageDesk):
    """Images of a recording: there they are, and that is all."""

    def _refuse(self, *arguments: Any, **options: Any) -> NoReturn:
        raise refusal()

    pull = pin = unpin = removal = prunable = remove = _refuse

    @property
    def builds(self) -> ImageBuilds:
        """Nothing is built."""
        raise refusal()


class _NoBenches(BenchDesk):
    """Benchmarks of a recording: what its runs tell of them, and no records of this machine."""

    def _refuse(self, *arguments: Any, **options: Any) -> NoReturn:
        raise refusal()

    container = image = _refuse

    def _records(self) -> None:
        return None


class _Forwarding:
    """Passes on what is played; its runs go beside those that were tried here."""

    def __init__(self, listener: DeskListener, runs: Runs, player: Player) -> None:
        self._listener = listener
        self._runs = runs
        self._player = player
        # Neither catalog files nor lock files of this machine belong to it.
        seen = SeenImages()
        self._judge = ImageJudge(
            ReplaySession(player), catalog=shipped_catalog, pins=AllPins, seen=lambda: seen.of(player.state.runs)
        )
        self.judging = False
        self.host_looked = listener.host_looked
        self.containers_listed = listener.containers_listed
        self.engine_linked = listener.engine_linked
        self.engine_known = listener.engine_known
        self.images_judged = listener.images_judged

    def played(self, at: float) -> None:
        """The news that follow are of that moment."""
        if isinstance(self._listener, ReplayListener):
            self._listener.played(at)

    def broke(self, error: Exception) -> None:
        """It could not go on."""
        if isinstance(self._listener, ReplayListener):
            self._listener.broke(error)

    def sought(self, sight: Sight) -> None:
        """Somebody went elsewhere: what was tried here goes too, it would be of another time."""
        state = sight.state
        if isinstance(self._listener, ReplayListener):
            self._listener.sought(sight)
        self._runs.forget()
        self._runs.show(state.runs)
        if self.judging and "images" in state.told:
            self.images_listed(state.images)

    def images_listed(self, views: tuple[ImageView, ...]) -> None:
        """Show them, judged where that is wanted and its GPUs are known by now."""
        state, moves = self._player.state, self._player.moves
        if not self.judging or state.host is None or state.engine is None:
            self._listener.images_listed(views)
            return
        containers = [each.container for each in state.containers]
        judged, shelf = self._judge.look([each.image for each in views], containers, state.host.snapshot)
        if self._player.moves == moves:  # nobody went elsewhere meanwhile
            self._listener.images_listed(judged)
            self._listener.images_judged(shelf)

    def runs_changed(self, runs: tuple[Run, ...]) -> None:
        """Show them."""
        self._runs.show(runs)
