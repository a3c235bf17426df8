"""What can be shown in full: a container, an image, a process, a run, a GPU; each followed as it changes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from gpuconsole.gpu.names import short_name
from gpuconsole.host.model import GpuView, Holder
from gpuconsole.images.reference import shorter
from gpuconsole.services.catalog import CatalogView
from gpuconsole.services.containers import ContainerView
from gpuconsole.services.endings import state_words
from gpuconsole.services.images import ImageView
from gpuconsole.services.ringing import gpu_key, process_key
from gpuconsole.services.runs import Run, RunKind
from gpuconsole.tui.present import catalogdetails, containerdetails, details, gpudetails, imagedetails, processdetails
from gpuconsole.tui.present import rundetails as runs
from gpuconsole.tui.present.cell import Cell

if TYPE_CHECKING:
    from gpuconsole.engine.model import ImageStep
    from gpuconsole.tui.app import ConsoleApp

Thing = ContainerView | ImageView | CatalogView | Holder | Run | GpuView
T = TypeVar("T", ContainerView, ImageView, CatalogView, Holder, Run, GpuView)


class Subject(Generic[T]):
    """A thing in full.

    Args:
        app: Where the newest of it is found.
        thing: It, as it was seen first.
    """

    KIND: ClassVar[str] = ""
    GONE: ClassVar[str] = ""
    """What is said when it is there no more."""
    OF_ENGINE: ClassVar[bool] = False
    """It is the engine's, so nothing is known of it while the engine is away."""

    def __init__(self, app: ConsoleApp, thing: T) -> None:
        self.app = app
        self.thing: T = thing

    @staticmethod
    @abstractmethod
    def key(thing: T) -> str:
        """What it keeps as it changes."""

    @abstractmethod
    def everything(self) -> Iterable[T] | None:
        """All of its kind; None when they cannot be known now."""

    @abstractmethod
    def headline(self) -> str:
        """Its name."""

    @abstractmethod
    def fields(self, width: int) -> tuple[details.Field, ...]:
        """What is known of it, for ``width`` cells."""

    def stage(self) -> Hashable:
        """What decides about what can be done with it."""
        return None

    def look(self) -> bool | None:
        """Take the newest of it; False when it is gone, None when that cannot be known now."""
        things = self.everything()
        if things is None:
            return None
        mine = self.key(self.thing)
        found = next((each for each in things if self.key(each) == mine), None)
        self.thing = found or self.thing
        return found is not None

    def lines(self, width: int, *, gone: bool = False) -> list[details.Line]:
        """All of it in rows of ``width`` cells, what is wrong first."""
        return self._laid_out(self.fields(width), width, gone=gone)

    def _laid_out(self, fields: Iterable[details.Field], width: int, *, gone: bool) -> list[details.Line]:
        notes: list[details.Field] = [details.field("", Cell(self.GONE, "risk"))] if gone else []
        link = self.app.link
        if self.OF_ENGINE and link is not None and not link.connected:
            notes = [details.field("engine", Cell(link.message, "risk"))]
        return details.laid_out([*notes, *fields], width)


class ContainerSubject(Subject[ContainerView]):
    """A container."""

    KIND = "container"
    GONE = "It was removed; this is how it was."
    OF_ENGINE = True

    @staticmethod
    def key(thing: ContainerView) -> str:
        """Its id."""
        return thing.container.id

    def everything(self) -> Iterable[ContainerView] | None:
        """The containers; not known while the engine is away."""
        link = self.app.link
        return None if link is not None and not link.connected else self.app.containers

    def stage(self) -> Hashable:
        """Whether it runs."""
        return self.thing.container.state

    def headline(self) -> str:
        """Its name and state."""
        return f"{self.thing.container.name}  {state_words(self.thing.container, now=self.app.now())}"

    def fields(self, width: int) -> tuple[details.Field, ...]:
        """What is known of it."""
        app, image_id = self.app, self.thing.container.image_id
        facts = next((each.facts for each in app.images or () if each.image.id == image_id), None)
        known = containerdetails.Known(
            now=app.now(),
            glyphs=app.glyphs,
            server=app.desk.server(endpoint_of(app)),
            host=app.host_view,
            facts=facts,
            runs=app.runs,
            keys=app.keys,
        )
        return containerdetails.fields(self.thing, known)


class ImageSubject(Subject[ImageView]):
    """An image."""

    KIND = "image"
    GONE = "It was removed; this is how it was."
    OF_ENGINE = True
    steps: tuple[ImageStep, ...] | None = None
    """How it was made, once that was asked."""

    @staticmethod
    def key(thing: ImageView) -> str:
        """Its id."""
        return thing.image.id

    def everything(self) -> Iterable[ImageView] | None:
        """The images."""
        return self.app.images

    def headline(self) -> str:
        """Its name."""
        return shorter(self.thing.image.name)

    def fields(self, width: int) -> tuple[details.Field, ...]:
        """What is known of it."""
        app, image_id = self.app, self.thing.image.id
        known = imagedetails.Known(
            now=app.now(),
            glyphs=app.glyphs,
            runs=app.runs,
            keys=app.keys,
            holds=app.shelf.holds.get(image_id, ()) if app.shelf is not None else (),
            steps=self.steps,
            containers=[each.container for each in app.containers or ()],
        )
        return imagedetails.fields(self.thing, known)


class CatalogSubject(Subject[CatalogView]):
    """An image of the catalog that is not here."""

    KIND = "image of the catalog"
    GONE = "It is in this list no more: it is here by now, or the catalog has changed."

    @staticmethod
    def key(thing: CatalogView) -> str:
        """Its reference."""
        return thing.image.reference

    def everything(self) -> Iterable[CatalogView] | None:
        """What could be pulled."""
        return self.app.shelf.catalog if self.app.shelf is not None else None

    def headline(self) -> str:
        """Its reference."""
        return self.thing.image.reference

    def fields(self, width: int) -> tuple[details.Field, ...]:
        """What is known of it."""
        app = self.app
        holds = app.shelf.holds.get(self.key(self.thing), ()) if app.shelf is not None else ()
        return catalogdetails.fields(self.thing, now=app.now(), glyphs=app.glyphs, holds=holds, keys=app.keys)


class ProcessSubject(Subject[Holder]):
    """A process on a GPU."""

    KIND = "process"
    GONE = "It has let go of the GPU; this is how it was."

    @staticmethod
    def key(thing: Holder) -> str:
        """Its pid, beginning and GPU."""
        return process_key(thing)

    def everything(self) -> Iterable[Holder] | None:
        """Who holds the GPUs."""
        host = self.app.host_view
        if host is None or host.snapshot.problem:
            return None
        return (holder for view in host.gpus for holder in view.holders)

    def headline(self) -> str:
        """Its number."""
        return f"{self.thing.pid}"

    def fields(self, width: int) -> tuple[details.Field, ...]:
        """What is known of it."""
        return processdetails.fields(self.thing, now=self.app.now())


class RunSubject(Subject[Run]):
    """A check, a launch or a pull."""

    KIND = "run"
    GONE = "It is not remembered any more."

    @staticmethod
    def key(thing: Run) -> str:
        """Its id."""
        return thing.id

    def everything(self) -> Iterable[Run] | None:
        """The runs."""
        return self.app.runs

    def stage(self) -> Hashable:
        """Whether it is over."""
        return self.thing.ended

    def headline(self) -> str:
        """What it is, of what."""
        return f"{self.thing.kind.value} of {self.thing.subject}"

    def fields(self, width: int) -> tuple[details.Field, ...]:
        """What is known of it."""
        app = self.app
        pull = app.desk.images.pull_state(self.thing.id) if self.thing.kind is RunKind.PULL else None
        build = app.desk.images.build_state(self.thing.subject) if self.thing.kind is RunKind.BUILD else None
        return runs.fields(
            self.thing, now=app.now(), glyphs=app.glyphs, keys=app.keys, pull=pull, build=build, width=width
        )


class GpuSubject(Subject[GpuView]):
    """A GPU."""

    KIND = "GPU"
    GONE = "It is not there any more; this is how it was."

    @staticmethod
    def key(thing: GpuView) -> str:
        """Its UUID, else its index."""
        return gpu_key(thing)

    def everything(self) -> Iterable[GpuView] | None:
        """The GPUs."""
        host = self.app.host_view
        return None if host is None or host.snapshot.problem else host.gpus

    def headline(self) -> str:
        """Its index and name."""
        return f"{self.thing.gpu.index} {short_name(self.thing.gpu.name)}"

    def now_fields(self, width: int) -> tuple[details.Field, ...]:
        """How it is now."""
        return gpudetails.now_fields(self.thing, width=width, glyphs=self.app.glyphs)

    def lines_now(self, width: int, *, gone: bool = False) -> list[details.Line]:
        """How it is now, in rows of ``width`` cells."""
        return self._laid_out(self.now_fields(width), width, gone=gone)

    def fact_fields(self) -> tuple[details.Field, ...]:
        """Every other fact."""
        host = self.app.host_view
        return () if host is None else gpudetails.fields(self.thing, host.snapshot)

    def fields(self, width: int) -> tuple[details.Field, ...]:
        """What is known of it."""
        return (*self.now_fields(width), *self.fact_fields())


def subject_of(app: ConsoleApp, thing: Thing) -> Subject[Any]:
    """``thing``, to be shown in full."""
    if isinstance(thing, ContainerView):
        return ContainerSubject(app, thing)
    if isinstance(thing, ImageView):
        return ImageSubject(app, thing)
    if isinstance(thing, CatalogView):
        return CatalogSubject(app, thing)
    if isinstance(thing, Holder):
        return ProcessSubject(app, thing)
    return RunSubject(app, thing) if isinstance(thing, Run) else GpuSubject(app, thing)


def endpoint_of(app: ConsoleApp) -> str:
    """Address of the engine, as far as it is known."""
    return app.link.endpoint if app.link is not None else ""
