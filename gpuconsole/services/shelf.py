"""What stands beside the local images: those that could be pulled, who holds an image pinned, what runs here."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpuconsole.core.errors import ConsoleError
from gpuconsole.images.reference import parse
from gpuconsole.services.catalog import catalog_marks, load_catalog, view_catalog
from gpuconsole.services.imageremoval import is_pinned
from gpuconsole.services.images import ImageView, read_histories, view_images
from gpuconsole.services.lockfile import AllPins, all_pins

if TYPE_CHECKING:
    from gpuconsole.engine.model import Container, Image
    from gpuconsole.gpu.model import GpuSnapshot
    from gpuconsole.images.catalog import Catalog
    from gpuconsole.images.seen import Seen
    from gpuconsole.images.verdict import HostTraits
    from gpuconsole.services.catalog import CatalogView
    from gpuconsole.services.session import Session


@dataclass(frozen=True, slots=True)
class Hold:
    """A lock file that holds an image."""

    reference: str
    """What it pins it as."""
    lock: str
    """The file, as it is shown."""
    own: bool
    """It is the one that counts in the folder this program works in."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """What is known of images beside what the engine lists."""

    catalog: tuple[CatalogView, ...] = ()
    """Images of the catalog that are not here, the recommended ones first."""
    holds: Mapping[str, tuple[Hold, ...]] = field(default_factory=dict)
    """Image id, or reference of an image that is not here → the lock files that hold it."""
    problem: str = ""
    """Why catalog files or lock files of the user are not heeded, with what to do; empty when all are."""


@dataclass(slots=True)
class _Catalog:
    """The catalog as it was judged last, and for what."""

    marks: object = None
    host: HostTraits | None = None
    views: tuple[CatalogView, ...] = ()
    problem: str = ""


class ImageJudge:
    """Judges local images and the catalog for the machine the engine runs on. For one thread at a time.

    Args:
        session: Whose engine.
        catalog: Reads the catalog.
        pins: Reads the pins.
        seen: Image id → what a check saw in it.
    """

    def __init__(
        self,
        session: Session,
        *,
        catalog: Callable[[], Catalog] = load_catalog,
        pins: Callable[[], AllPins] = all_pins,
        seen: Callable[[], Mapping[str, Seen]] = dict,
    ) -> None:
        self._session = session
        self._read_catalog = catalog
        self._read_pins = pins
        self._seen = seen
        self._histories: dict[str, tuple[str, ...]] = {}
        self._known = _Catalog()
        self._lock = threading.Lock()

    def look(
        self, images: Sequence[Image], containers: Sequence[Container], snapshot: GpuSnapshot | None
    ) -> tuple[tuple[ImageView, ...], Shelf]:
        """The images with their verdicts, and what stands beside them.

        Args:
            images: The local ones.
            containers: All containers.
            snapshot: This machine's GPUs as they were seen; None asks for them.

        Raises:
            ConsoleError: The engine does not answer any more.
        """
        from gpuconsole.services.fitting import engine_machine

        with self._lock:
            host = engine_machine(self._session, snapshot=snapshot).traits
            self._read_new_histories(images)
            views = view_images(images, containers, host, histories=self._histories, seen=self._seen())
            listed, problem = self._judged_catalog(host)
            holds, unread = self._holds(images)
            here = {name for image in images for name in _names(image)}
            # Pulled as it is pinned, an image has its digest alone for a name, and is here all the same.
            here |= {hold.reference for image in images for hold in holds.get(image.id, ())}
            missing = tuple(view for view in listed if view.image.reference not in here)
            return views, Shelf(missing, holds, problem or unread)

    def _read_new_histories(self, images: Sequence[Image]) -> None:
        """An image's history never changes, and is asked for once."""
        ids = {image.id for image in images}
        self._histories = {key: steps for key, steps in self._histories.items() if key in ids}
        fresh = [image for image in images if image.id not in self._histories]
        self._histories |= read_histories(self._session.engine, fresh) if fresh else {}

    def _judged_catalog(self, host: HostTraits) -> tuple[tuple[CatalogView, ...], str]:
        known, marks = self._known, catalog_marks()
        if known.marks != marks or known.host != host:
            from gpuconsole.images.catalog import shipped_catalog

            problem = ""
            try:
                catalog = self._read_catalog()
            except ConsoleError as error:
                catalog, problem = shipped_catalog(), _sentences(error)
            self._known = known = _Catalog(marks, host, view_catalog(catalog, host), problem)
        return known.views, known.problem

    def _holds(self, images: Sequence[Image]) -> tuple[dict[str, tuple[Hold, ...]], str]:
        from gpuconsole.services.lockfile import lock_file

        try:
            pins, own = self._read_pins(), lock_file().path
        except ConsoleError as error:
            return {}, _sentences(error)
        found: dict[str, list[Hold]] = {}
        for lock, pin in pins.pins:
            held = [image.id for image in images if is_pinned(image, pin)] or [pin.reference]
            for key in held:
                found.setdefault(key, []).append(Hold(pin.reference, lock.shown, lock.path == own))
        unread = _sentences(pins.unread[0]) if pins.unread else ""
        return {key: tuple(holds) for key, holds in found.items()}, unread


def _names(image: Image) -> list[str]:
    """Its tags as the catalog writes them: Podman and others write a registry that docker leaves out."""
    found = []
    for tag in image.tags:
        try:
            found.append(str(parse(tag)))
        except ValueError:
            continue
    return found


def _sentences(error: ConsoleError) -> str:
    return f"{error.message} {error.hint}".strip()
