"""The images as they change, told to the console: plainly at first, and judged once somebody looks at them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from gpuconsole.core.errors import ConsoleError
from gpuconsole.services.imagelister import ImageLister

if TYPE_CHECKING:
    from gpuconsole.engine.model import Container, Image
    from gpuconsole.host.model import HostView
    from gpuconsole.services.images import ImageView
    from gpuconsole.services.runs import Run
    from gpuconsole.services.session import Session
    from gpuconsole.services.shelf import ImageJudge, Shelf


class ImageListener(Protocol):
    """Hears of images; called on a thread of theirs."""

    def images_listed(self, views: tuple[ImageView, ...]) -> None:
        """The images changed."""

    def images_judged(self, shelf: Shelf) -> None:
        """What stands beside the images just listed: told only once somebody asked for verdicts."""


@dataclass(frozen=True, slots=True)
class Around:
    """What images are joined with."""

    containers: tuple[Container, ...]
    host: HostView | None
    """None when the GPUs were not looked at yet, or are on another machine than the engine."""
    local: bool
    """The engine is on this machine."""


class ImageNews:
    """Asks for the images when they may have changed, one question at a time.

    Args:
        session: Whose engine.
        around: What is known beside them now.
        listener: Who is told.
        runs: The runs, for what checks saw in images.
    """

    def __init__(
        self,
        session: Session,
        *,
        around: Callable[[], Around],
        listener: Callable[[], ImageListener],
        runs: Callable[[], Iterable[Run]] = tuple,
    ) -> None:
        self._session = session
        self._around = around
        self._listener = listener
        self._runs = runs
        self._lister = ImageLister(self._list)
        self._closed = threading.Event()
        self._judge: ImageJudge | None = None
        self._judged_for: object = None
        """What the verdicts that were told last depend on; None before the first."""
        self.images: dict[str, Image] = {}
        """By id, as last listed."""

    def ask(self) -> None:
        """Ask for the images anew, soon."""
        self._lister.ask()

    def judge(self) -> None:
        """From now on also tell which images run here; nobody pays for it who does not look at images."""
        if self._judge is None:
            from gpuconsole.services.seenimages import SeenImages
            from gpuconsole.services.shelf import ImageJudge

            seen = SeenImages()
            self._judge = ImageJudge(self._session, seen=lambda: seen.of(self._runs()))
        self._lister.ask()

    def host_looked(self, view: HostView) -> None:
        """The GPUs were looked at: other GPUs, or another driver, make other verdicts."""
        if self._judge is not None and self._judged_for != _depends_on(view):
            self._lister.ask()

    def close(self) -> None:
        """Ask no more."""
        self._closed.set()
        self._lister.close()

    def _list(self) -> None:
        """Ask for the images and tell them; silently nothing while the engine is away."""
        from gpuconsole.services.images import view_images

        try:
            images = self._session.engine.images()
        except ConsoleError:
            return
        self.images = {image.id: image for image in images}
        around = self._around()
        if self._closed.is_set():
            return
        if self._judged_for is None:
            self._listener().images_listed(view_images(images, around.containers))
        if self._judge is not None and (around.host is not None or not around.local):
            self._tell_judged(self._judge, images, around)

    def _tell_judged(self, judge: ImageJudge, images: Sequence[Image], around: Around) -> None:
        try:
            views, shelf = judge.look(images, around.containers, around.host.snapshot if around.host else None)
        except ConsoleError:
            return  # the engine went away meanwhile, which who watches it tells
        self._judged_for = _depends_on(around.host)
        if not self._closed.is_set():
            self._listener().images_listed(views)
            self._listener().images_judged(shelf)


def _depends_on(view: HostView | None) -> object:
    """What verdicts depend on of a look at the GPUs."""
    if view is None:
        return "elsewhere"
    seen = view.snapshot
    gpus = tuple((gpu.index, gpu.name, gpu.status, gpu.mig_enabled, len(gpu.migs)) for gpu in seen.gpus)
    return seen.driver_version, seen.cuda_version, seen.problem, gpus
