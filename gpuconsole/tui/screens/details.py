"""All about one thing, kept up to date: a container, an image, a process, a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from gpuconsole.host.model import Holder
from gpuconsole.services.containers import ContainerView
from gpuconsole.services.endings import state_words
from gpuconsole.services.images import ImageView
from gpuconsole.services.runs import Run
from gpuconsole.tui import actions
from gpuconsole.tui.present import (
    containerdetails,
    details,
    imagedetails,
    process,
    processdetails,
    rundetails,
)
from gpuconsole.tui.screens.detailing import DetailsScreen, endpoint_of

if TYPE_CHECKING:
    from gpuconsole.tui.app import ConsoleApp

Thing = ContainerView | ImageView | Holder | Run


def open_details(app: ConsoleApp, thing: Thing) -> None:
    """Show all about ``thing`` until it is closed."""
    if isinstance(thing, ContainerView):
        app.push_screen(ContainerDetails(thing))
    elif isinstance(thing, ImageView):
        app.push_screen(ImageDetails(thing))
    elif isinstance(thing, Holder):
        app.push_screen(ProcessDetails(thing))
    else:
        app.push_screen(RunDetails(thing))


class ContainerDetails(DetailsScreen):
    """A container, with all that can be done with it."""

    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings(actions.CONTAINER)]
    KIND = "container"
    GONE = "It was removed; this is how it was."

    def __init__(self, view: ContainerView) -> None:
        super().__init__()
        self._view = view

    @property
    def thing(self) -> Thing | None:
        """The container, until it is gone."""
        return None if self._gone else self._view

    def look(self) -> bool | None:
        """Take the newest of it."""
        self.app.desk.look_at(frozenset({self._view.container.id}))
        views = self.app.containers
        link = self.app.link
        if views is None or (link is not None and not link.connected):
            return None
        found = next((view for view in views if view.container.id == self._view.container.id), None)
        if found is not None and found.container.state is not self._view.container.state:
            self.call_after_refresh(self.refresh_bindings)
        self._view = found or self._view
        return found is not None

    def headline(self) -> str:
        """Its name and state."""
        return f"{self._view.container.name}  {state_words(self._view.container, now=self.app.now())}"

    def fields(self) -> tuple[details.Field, ...]:
        """What is known of it."""
        app, image_id = self.app, self._view.container.image_id
        facts = next((each.facts for each in app.images or () if each.image.id == image_id), None)
        known = containerdetails.Known(
            now=app.now(),
            glyphs=app.glyphs,
            server=app.desk.server(endpoint_of(app)),
            host=app.host_view,
            facts=facts,
            runs=app.runs,
        )
        return containerdetails.fields(self._view, known)


class ImageDetails(DetailsScreen):
    """An image."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *actions.bindings(actions.IMAGE),
        *actions.bindings(action for action in (*actions.MAIN, *actions.CONTAINER) if action.method in ("new", "copy")),
    ]
    KIND = "image"
    GONE = "It was removed; this is how it was."

    def __init__(self, view: ImageView) -> None:
        super().__init__()
        self._view = view

    @property
    def thing(self) -> Thing | None:
        """The image, until it is gone."""
        return None if self._gone else self._view

    def look(self) -> bool | None:
        """Take the newest of it."""
        if self.app.images is None:
            return None
        found = next((view for view in self.app.images if view.image.id == self._view.image.id), None)
        self._view = found or self._view
        return found is not None

    def headline(self) -> str:
        """Its name."""
        return self._view.image.name

    def fields(self) -> tuple[details.Field, ...]:
        """What is known of it."""
        app = self.app
        return imagedetails.fields(self._view, now=app.now(), glyphs=app.glyphs, runs=app.runs)


class ProcessDetails(DetailsScreen):
    """A process on a GPU."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *actions.bindings(actions.PROCESS),
        *actions.bindings(action for action in actions.CONTAINER if action.method == "copy"),
    ]
    KIND = "process"
    GONE = "It has let go of the GPU; this is how it was."

    def __init__(self, holder: Holder) -> None:
        super().__init__()
        self._holder = holder

    @property
    def thing(self) -> Thing | None:
        """The process, until it is gone."""
        return None if self._gone else self._holder

    def look(self) -> bool | None:
        """Take the newest of it."""
        host = self.app.host_view
        if host is None or host.snapshot.problem:
            return None
        key = process.key(self._holder)
        holders = (holder for view in host.gpus for holder in view.holders)
        found = next((holder for holder in holders if process.key(holder) == key), None)
        self._holder = found or self._holder
        return found is not None

    def headline(self) -> str:
        """Its number."""
        return f"{self._holder.pid}"

    def fields(self) -> tuple[details.Field, ...]:
        """What is known of it."""
        return processdetails.fields(self._holder, now=self.app.now())


class RunDetails(DetailsScreen):
    """A check, launch or pull."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *actions.bindings(actions.RUN),
        *actions.bindings(action for action in actions.CONTAINER if action.method == "copy"),
    ]
    KIND = "run"
    GONE = "It is not remembered any more."

    def __init__(self, run: Run) -> None:
        super().__init__()
        self._run = run

    @property
    def thing(self) -> Thing | None:
        """The run."""
        return self._run

    def look(self) -> bool | None:
        """Take the newest of it."""
        found = next((run for run in self.app.runs if run.id == self._run.id), None)
        if found is not None and found.ended is not self._run.ended:
            self.call_after_refresh(self.refresh_bindings)
        self._run = found or self._run
        return found is not None

    def headline(self) -> str:
        """What it is, of what."""
        return f"{self._run.kind.value} of {self._run.subject}"

    def fields(self) -> tuple[details.Field, ...]:
        """What is known of it."""
        return rundetails.fields(self._run, now=self.app.now(), glyphs=self.app.glyphs)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what goes on can be ended."""
        if action == "cancel_run":
            return not self._run.ended
        return super().check_action(action, parameters)

    def action_cancel_run(self) -> None:
        """End it."""
        asked = self.app.desk.cancel(self._run.id)
        words = "It is asked to end." if asked else "It is over, or belongs to another console."
        self.app.notify(words, markup=False, timeout=3)
