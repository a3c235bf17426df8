"""What screens and panes show in full: a thing, followed as it changes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from gpuconsole.host.model import GpuView, Holder
from gpuconsole.services.catalog import CatalogView
from gpuconsole.services.containers import ContainerView
from gpuconsole.services.images import ImageView
from gpuconsole.services.runs import Run
from gpuconsole.tui.present import details
from gpuconsole.tui.present.cell import Cell

if TYPE_CHECKING:
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
