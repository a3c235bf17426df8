"""What the console shows and does: the feed, the runs, and every action, each callable from any thread."""

from __future__ import annotations

import socket
import threading
import time
from typing import TYPE_CHECKING, Protocol

from gpuconsole.core.text import plain_line
from gpuconsole.core.users import caller_name
from gpuconsole.services.checkqueue import CheckQueue
from gpuconsole.services.containerdesk import ContainerDesk
from gpuconsole.services.feed import Feed, Listener
from gpuconsole.services.runs import Run, RunKind, Runs

if TYPE_CHECKING:
    from pathlib import Path

    from gpuconsole.engine.model import Container
    from gpuconsole.host.model import HostView
    from gpuconsole.services.benchdesk import BenchDesk
    from gpuconsole.services.cancelling import Cancellation
    from gpuconsole.services.drafts import Drafts
    from gpuconsole.services.imagedesk import ImageDesk
    from gpuconsole.services.launchfollow import LaunchFollower
    from gpuconsole.services.probelive import Live
    from gpuconsole.services.session import Session
    from gpuconsole.services.tunnels import Server

_TAKING_BACK_S = 0.5
"""A launch that is cancelled by leaving has so long to take back what it made; nobody waits longer to leave."""


class DeskListener(Listener, Protocol):
    """Hears the feed and the runs."""

    def runs_changed(self, runs: tuple[Run, ...]) -> None:
        """A run changed."""


class Desk(ContainerDesk):
    """The console's services.

    Args:
        session: This machine's GPUs, and the engine.
        runs_path: File of the remembered runs; None takes the usual one.
        runs: The runs, where they are not those of a file.
        drafts: What was launched before, where that is not in a file.
    """

    def __init__(
        self,
        session: Session,
        *,
        runs_path: Path | None = None,
        runs: Runs | None = None,
        drafts: Drafts | None = None,
    ) -> None:
        self.session = session
        self.runs = runs or Runs(path=runs_path)
        self._runs_path = runs_path
        self._drafts = drafts
        self._feed: Feed | None = None
        self._cancellations: dict[str, Cancellation] = {}
        self._checks = CheckQueue(self.runs, self._cancellations)
        self._held: dict[str, threading.Thread] = {}
        self._images: ImageDesk | None = None
        self._benches: BenchDesk | None = None
        self._launches: LaunchFollower | None = None

    @property
    def drafts(self) -> Drafts:
        """What was launched before, in which folder."""
        if self._drafts is None:
            from gpuconsole.services.drafts import Drafts

            self._drafts = Drafts(path=self._runs_path)
        return self._drafts

    @property
    def images(self) -> ImageDesk:
        """What is done with images."""
        if self._images is None:
            from gpuconsole.services.imagedesk import ImageDesk

            self._images = ImageDesk(
                self.session, self.runs, holder=self, refresh=self.refresh_images, check=self.check_image
            )
        return self._images

    @property
    def benches(self) -> BenchDesk:
        """What is measured, and was."""
        if self._benches is None:
            from gpuconsole.services.benchdesk import BenchDesk

            self._benches = BenchDesk(self.session, self._checks, path=self._runs_path)
        return self._benches

    @property
    def going(self) -> tuple[str, ...]:
        """What this console launches, pulls, builds and measures, a phrase each; leaving ends it."""
        held, launch = self._held, RunKind.LAUNCH
        launches = [
            f"{each.kind} of {each.subject}" for each in self.runs.all() if each.kind is launch and each.id in held
        ]
        return (*launches, *(self._images.going if self._images is not None else ()), *self._checks.benches)

    def start(self, listener: DeskListener, interval_s: float) -> None:
        """Begin to look, and tell ``listener``."""
        self.runs.on_change = listener.runs_changed
        listener.runs_changed(self.runs.all())
        self.look_ahead(interval_s).tell(listener)

    def look_ahead(self, interval_s: float) -> Feed:
        """Begin to look at the GPUs before anybody can be told; once begun, it goes on."""
        if self._feed is None:
            self._feed = Feed(
                self.session, interval_s=interval_s, runs=self.runs.all, on_containers=self._follow_launches
            )
            self._feed.start()
        return self._feed

    def _follow_launches(self, containers: tuple[Container, ...]) -> None:
        """Keep the runs of launches true; on the thread that lists containers, after the first screen."""
        if self._launches is None:
            from gpuconsole.services.launchfollow import LaunchFollower

            self._launches = LaunchFollower(self.session, self.runs, path=self._runs_path)
        self._launches.containers_listed(containers)

    def first_look(self, patience_s: float) -> HostView | None:
        """The GPUs as seen first, waited for no longer than that; None when nothing was seen, or nobody looks yet."""
        return self._feed.first_look(patience_s) if self._feed is not None else None

    def drawn(self) -> None:
        """The first look at the GPUs is on the screen."""
        if self._feed is not None:
            self._feed.drawn()

    def close(self) -> None:
        """Let go of everything; what is under way is cancelled, what was measured is kept, containers go on."""
        for cancellation in list(self._cancellations.values()):
            cancellation.request()
        end = time.monotonic() + _TAKING_BACK_S
        for thread in list(self._held.values()):
            thread.join(max(0.0, end - time.monotonic()))
        if self._feed is not None:
            self._feed.close()
        if self._launches is not None:
            self._launches.close()
        self._checks.close()
        self.runs.leave()
        if self._benches is not None:
            self._benches.close()

    # --- who and where ---

    @property
    def me(self) -> str:
        """The user whose things are "mine"."""
        return caller_name()

    @property
    def engine_is_local(self) -> bool:
        """The engine is known to be on this machine."""
        return self._feed is not None and self._feed.engine_is_local

    @property
    def host_name(self) -> str:
        """What the machine is called, in one short word."""
        return plain_line(socket.gethostname().partition(".")[0], limit=24)

    def server(self, endpoint_url: str) -> Server:
        """How the machine of the engine is reached from elsewhere."""
        from gpuconsole.services.tunnels import server_of

        return server_of(endpoint_url)

    def address(self) -> str:
        """The engine's address for another gpuconsole, which is to enter a container.

        Raises:
            ConsoleError: Nobody can enter one now.
        """
        return self.session.endpoint.url

    def now(self) -> float:
        """Seconds since the epoch, of what is shown."""
        return time.time()

    # --- looking ---

    def set_interval(self, interval_s: float) -> None:
        """Look more or less often."""
        if self._feed is not None:
            self._feed.set_interval(interval_s)

    def look_at(self, container_ids: frozenset[str]) -> None:
        """The containers whose CPU and memory somebody sees."""
        if self._feed is not None:
            self._feed.look_at(container_ids)

    def refresh_images(self) -> None:
        """Ask for the images anew, in the background."""
        if self._feed is not None:
            self._feed.refresh_images()

    def judge_images(self) -> None:
        """Tell from now on which images run here, and what could be pulled; in the background."""
        if self._feed is not None:
            self._feed.judge_images()

    def refresh(self) -> None:
        """Ask the engine anew, or try to connect now."""
        if self._feed is not None:
            self._feed.refresh()

    def pause(self) -> None:
        """Look no more, as while another program has the terminal."""
        if self._feed is not None:
            self._feed.pause()

    def resume(self) -> None:
        """Look again."""
        if self._feed is not None:
            self._feed.resume()

    # --- checks: one after another, on a thread of their own ---

    def live(self, run_id: str) -> Live | None:
        """How far a check or benchmark of this console is."""
        return self._checks.live(run_id)

    def check_container(self, container: Container) -> str:
        """Check it, after the checks that wait already; returns the run's id."""
        from gpuconsole.services.checking import check_container

        return self._checks.add(
            container.name,
            container.id,
            lambda on_record, cancel: check_container(self.session, container.id, on_record, cancel=cancel),
        )

    def check_image(self, name: str, image_id: str) -> str:
        """Check an image in a fresh container; returns the run's id."""
        from gpuconsole.launch.spec import LaunchSpec, PullPolicy
        from gpuconsole.services.checking import check_image

        # By its id: the name may be pinned to another image here, and mean another one by the time of the check.
        spec = LaunchSpec(image=image_id, pull=PullPolicy.NEVER)
        return self._checks.add(
            name,
            image_id,
            lambda on_record, cancel: check_image(
                self.session, spec, on_record, on_step=lambda step: None, cancel=cancel, called=name
            ),
        )

    def cancel(self, run_id: str) -> bool:
        """Ask a run to stop; False when it is over."""
        if self._checks.drop(run_id):
            return True
        cancellation = self._cancellations.get(run_id)
        if cancellation is None:
            return False
        cancellation.request()
        return True

    def hold(self, run_id: str, cancellation: Cancellation, thread: threading.Thread) -> None:
        """A run works on ``thread`` and can be cancelled until it is let go."""
        self._cancellations[run_id] = cancellation
        self._held[run_id] = thread

    def let_go(self, run_id: str) -> None:
        """That run is over."""
        self._cancellations.pop(run_id, None)
        self._held.pop(run_id, None)
