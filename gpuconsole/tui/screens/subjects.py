"""What can be shown in full: a container, an image, a process, a run, a GPU; each followed as it changes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

from gpuconsole.gpu.names import short_name
from gpuconsole.host.model import GpuView, Holder
from gpuconsole.services.catalog import CatalogView
from gpuconsole.services.containers import ContainerView
from gpuconsole.services.endings import state_words
from gpuconsole.services.images import ImageView
from gpuconsole.services.ringing import gpu_key, process_key
from gpuconsole.services.runs import Run, RunKind
from gpuconsole.tui.present import alarms, containerdetails, details, gpudetails, gpunow, gpupast, processdetails
from gpuconsole.tui.present import rundetails as runs
from gpuconsole.tui.screens.imagesubjects import CatalogSubject, ImageSubject
from gpuconsole.tui.screens.subject import Subject, Thing

if TYPE_CHECKING:
    from gpuconsole.tui.app import ConsoleApp


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
        past = gpupast.container_field(self.thing, app.history, _look(app, width))
        known_fields = details.with_field(containerdetails.fields(self.thing, known), past, after=("memory", "CPU"))
        return alarms.with_ending(known_fields, app.alarming.ending_of(self.thing.container))


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
        past = gpupast.process_field(self.thing, self.app.history, _look(self.app, width))
        known = details.with_field(
            processdetails.fields(self.thing, now=self.app.now(), glyphs=self.app.glyphs), past, after=("GPU memory",)
        )
        return (*alarms.note_fields(self.app.alarming.idle_note(process_key(self.thing))), *known)


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
            self.thing,
            now=app.now(),
            glyphs=app.glyphs,
            keys=app.keys,
            pull=pull,
            build=build,
            live=app.desk.live(self.thing.id),
            width=width,
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

    def lines_now(self, width: int, *, gone: bool = False) -> list[details.Line]:
        """How it is now, in always as many rows of ``width`` cells."""
        note = self.GONE if gone else ""
        return gpunow.now_rows(self.thing, width=width, glyphs=self.app.glyphs, note=note)

    def fact_fields(self, width: int = 80) -> tuple[details.Field, ...]:
        """Every other fact, for rows of ``width`` cells."""
        host = self.app.host_view
        if host is None:
            return ()
        return gpudetails.fields(self.thing, host.snapshot, width=width, glyphs=self.app.glyphs)

    def fields(self, width: int) -> tuple[details.Field, ...]:
        """What is known of it."""
        return self.fact_fields(width)


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


def _look(app: ConsoleApp, width: int) -> gpupast.Look:
    """How the past of a thing is shown among its fields."""
    return gpupast.Look(app.now(), 0.0, width, 0, app.glyphs)


def endpoint_of(app: ConsoleApp) -> str:
    """Address of the engine, as far as it is known."""
    return app.link.endpoint if app.link is not None else ""
