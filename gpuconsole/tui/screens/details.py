"""All about one thing, kept up to date: a container, an image, a process, a run."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from gpuconsole.core.errors import ConsoleError
from gpuconsole.host.model import GpuView, Holder
from gpuconsole.services.catalog import CatalogView
from gpuconsole.services.containers import ContainerView
from gpuconsole.services.images import ImageView
from gpuconsole.services.runs import Run, RunKind
from gpuconsole.tui import actions
from gpuconsole.tui.screens.detailing import DetailsScreen
from gpuconsole.tui.screens.imagesubjects import CatalogSubject, ImageSubject
from gpuconsole.tui.screens.subject import Thing
from gpuconsole.tui.screens.subjects import (
    ContainerSubject,
    GpuSubject,
    ProcessSubject,
    RunSubject,
    subject_of,
)

if TYPE_CHECKING:
    from gpuconsole.engine.model import ImageStep
    from gpuconsole.tui.app import ConsoleApp

_OF_ANYTHING = tuple(action for action in actions.CONTAINER if action.id.startswith("thing."))


_NEW_AND_COPY = tuple(action for action in (*actions.MAIN, *_OF_ANYTHING) if action.method in ("new", "copy"))


_PULL = tuple(action for action in actions.IMAGE if action.method == "pull")


def open_details(app: ConsoleApp, thing: Thing) -> None:
    """Show all about ``thing`` until it is closed."""
    if isinstance(thing, GpuView):
        from gpuconsole.tui.screens.gpu import GpuScreen

        app.push_screen(GpuScreen(GpuSubject(app, thing)))
        return
    if isinstance(thing, Run) and thing.kind is RunKind.BENCH:
        from gpuconsole.tui.screens.bench import BenchScreen

        app.push_screen(BenchScreen(RunSubject(app, thing)))
        return
    screens: dict[type[object], type[DetailsScreen]] = {
        ContainerView: ContainerDetails,
        ImageView: ImageDetails,
        CatalogView: CatalogDetails,
        Holder: ProcessDetails,
        Run: RunDetails,
    }
    app.push_screen(screens[type(thing)](subject_of(app, thing)))


class ContainerDetails(DetailsScreen):
    """A container, with all that can be done with it."""

    subject: ContainerSubject
    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings(actions.CONTAINER)]

    def look(self) -> None:
        """Have its figures taken, and no others."""
        self.app.desk.look_at(frozenset({self.subject.thing.container.id}))
        super().look()


class ImageDetails(DetailsScreen):
    """An image that is here, with the steps it was made in."""

    subject: ImageSubject
    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings((*actions.IMAGE, *_NEW_AND_COPY))]

    def on_mount(self) -> None:
        """Have it judged, and ask how it was made."""
        self.app.desk.judge_images()
        self.prepare(partial(self._steps, self.subject.thing.image.id), self._show_steps)

    def _steps(self, image_id: str) -> tuple[ImageStep, ...] | None:
        try:
            return self.app.desk.images.steps(image_id)
        except ConsoleError:
            return None  # the rest of it is told all the same

    def _show_steps(self, steps: tuple[ImageStep, ...] | None) -> None:
        self.subject.steps = steps
        self._draw()


class CatalogDetails(DetailsScreen):
    """An image of the catalog that is not here."""

    subject: CatalogSubject
    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings((*actions.IMAGE, *_NEW_AND_COPY))]


class ProcessDetails(DetailsScreen):
    """A process on a GPU."""

    subject: ProcessSubject
    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings((*actions.PROCESS, *_OF_ANYTHING))]


class RunDetails(DetailsScreen):
    """A check, launch or pull."""

    subject: RunSubject
    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings((*actions.RUN, *_PULL, *_OF_ANYTHING))]

    @property
    def thing(self) -> Thing | None:
        """The run; also one that nobody else remembers can be copied."""
        return self.subject.thing
