"""One of the main screen's lists: its rows, their order, and what stands there when there are none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gpuconsole.host.model import Holder
from gpuconsole.images.reference import shorter
from gpuconsole.services.kinds import is_container, is_image
from gpuconsole.services.ringing import key_of
from gpuconsole.services.runs import RunKind
from gpuconsole.tui.present import container, image, notice, process, run
from gpuconsole.tui.present.cell import Cell, Column, Row
from gpuconsole.tui.present.gpu import ring_word
from gpuconsole.tui.present.verdict import fits
from gpuconsole.tui.widgets.grid import Grid

if TYPE_CHECKING:
    from gpuconsole.services.catalog import CatalogView
    from gpuconsole.services.containers import ContainerView
    from gpuconsole.services.images import ImageView
    from gpuconsole.services.runs import Run
    from gpuconsole.tui.screens.main import MainScreen

LISTS: dict[str, tuple[Column, ...]] = {
    "containers": container.COLUMNS,
    "images": image.COLUMNS,
    "processes": process.COLUMNS,
    "runs": run.COLUMNS,
}
MARK = Column("mark", "", 7)
"""What rings when it ends, and what is being done with a thing; there as long as there is something to tell."""
_MARK_AT = {"containers": 1, "images": 1, "processes": 1, "runs": 2}
"""Where this column stands: beside what the thing is called."""
_SORT_KEYS: dict[str, dict[str, Callable[[Any], Any]]] = {
    "containers": container.SORT_KEYS,
    "images": image.SORT_KEYS,
    "processes": process.SORT_KEYS,
    "runs": {},
}
_MATCHES: dict[str, Callable[[Any, list[str]], bool]] = {
    "containers": container.matches,
    "images": image.matches,
    "processes": process.matches,
    "runs": run.matches,
}


class Listing:
    """A list, drawn into its grid.

    Args:
        screen: Where it stands; its words and its owner filter choose the rows.
        name: One of :data:`LISTS`.
    """

    def __init__(self, screen: MainScreen, name: str) -> None:
        self._screen = screen
        self.name = name
        self.grid = Grid(LISTS[name], id=name)
        self._keys = _SORT_KEYS[name]
        self._sorted_by = next(iter(self._keys), None)
        self._reversed = False
        self._marks = False
        """Something in it has a mark."""
        self._things: dict[str, Any] = {}
        self.wanted: str | None = None
        """Key that the cursor goes to as soon as it is there."""

    def _all(self) -> list[Any] | None:
        """Everything there is; None when it is not known."""
        app = self._screen.app
        if self.name == "containers":
            return None if app.containers is None else list(app.containers)
        if self.name == "images":
            return None if app.images is None else self._images(app.images)
        if self.name == "processes":
            return None if app.host_view is None else [each for view in app.host_view.gpus for each in view.holders]
        return list(app.runs)

    def _images(self, views: Iterable[ImageView]) -> list[ImageView]:
        """The images with who uses them now: containers come and go more often than images are asked for."""
        containers = self._screen.app.containers
        if containers is None:
            return list(views)
        names: dict[str, list[str]] = {}
        for each in containers:
            names.setdefault(each.container.image_id, []).append(each.container.name)
        return [replace(view, used_by=tuple(sorted(names.get(view.image.id, ())))) for view in views]

    def count(self) -> int | None:
        """How many there are, before any filter; None when it is not known."""
        things = self._all()
        return None if things is None else len(things)

    def draw(self, now: float) -> None:
        """Draw the rows that are wanted, in the order that is wanted."""
        wanted = self._ordered(self._wanted(self._all() or []))
        if self.name == "images":
            wanted += self._shelf()
        app, going = self._screen.app, run.under_way(self._screen.app.runs)
        marks = [self._mark(each, going) for each in wanted] if going or app.marks else [Cell("")] * len(wanted)
        self._show_marks(any(mark.text for mark in marks))
        rows = [self._row(each, now) for each in wanted]
        if self._marks:
            place = _MARK_AT[self.name]
            rows = [
                Row(row.key, (*row.cells[:place], mark, *row.cells[place:]))
                for row, mark in zip(rows, marks, strict=True)
            ]
        self._things = {row.key: thing for row, thing in zip(rows, wanted, strict=True)}
        self.grid.sorted_by = self._sorted_by
        self.grid.show(tuple(rows))
        if self.wanted in self._things:
            self.grid.cursor, self.wanted = self.wanted, None
            self.grid.focus()  # keys are for it now, wherever one was before
        # Without rows it takes no room, but keeps the focus, so that keys work as soon as there are some.
        self.grid.set_class(not rows, "-empty")

    def _wanted(self, things: list[Any]) -> list[Any]:
        """Those that the filters leave."""
        screen, words = self._screen, self._screen.words.lower().split()
        wanted = [each for each in things if _MATCHES[self.name](each, words)]
        if screen.mine:
            wanted = [each for each in wanted if self._is_mine(each)]
        if screen.fits and self.name == "images":
            wanted = [each for each in wanted if fits(each.verdict)]
        return wanted

    def _ordered(self, things: list[Any]) -> list[Any]:
        if self._sorted_by is not None:
            return sorted(things, key=self._keys[self._sorted_by], reverse=self._reversed)
        return list(reversed(things)) if self._reversed else things

    def _shelf(self) -> list[Any]:
        """What could be pulled, below what is here: as recommended, unless another order than by name is wanted."""
        listed = self._wanted(list(self._screen.beside_images()))
        return listed if self._sorted_by == "name" else self._ordered(listed)

    def _show_marks(self, wanted: bool) -> None:
        """Have the column of marks, or not."""
        if wanted != self._marks:
            self._marks = wanted
            columns, place = LISTS[self.name], _MARK_AT[self.name]
            self.grid.use_columns((*columns[:place], MARK, *columns[place:]) if wanted else columns)

    def _mark(self, thing: Any, going: Mapping[str, Run]) -> Cell:
        """Whether it rings, and what is being done with it; of a run its state tells that."""
        app = self._screen.app
        rings = key_of(thing) in app.marks
        names = [] if self.name in ("runs", "processes") else _names(thing)
        for name in names:
            if name in going:
                return run.mark(going[name], app.glyphs, rings=rings)
        return Cell(ring_word(app.glyphs) if rings else "", "accent")

    def _row(self, thing: Any, now: float) -> Row:
        app = self._screen.app
        if self.name == "containers":
            check = app.desk.runs.last(thing.container.id, RunKind.CHECK)
            return container.row(thing, now=now, glyphs=app.glyphs, check=check)
        if self.name == "images":
            return self._image_row(thing, now)
        if self.name == "processes":
            return process.row(thing, now=now, glyphs=app.glyphs)
        live = None if thing.ended else app.desk.live(thing.id)
        return run.row(thing, now=now, glyphs=app.glyphs, live=live)

    def _image_row(self, thing: ImageView | CatalogView, now: float) -> Row:
        app, brief = self._screen.app, self._screen.list_width < image.BRIEF_BELOW
        holds = app.shelf.holds if app.shelf is not None else {}
        if is_image(thing):
            check, held = app.desk.runs.last(thing.image.id, RunKind.CHECK), holds.get(thing.image.id, ())
            return image.row(thing, now=now, glyphs=app.glyphs, check=check, holds=held, brief=brief)
        processor = app.engine_info.architecture if app.engine_info is not None else ""
        held = holds.get(thing.image.reference, ())
        return image.catalog_row(thing, glyphs=app.glyphs, holds=held, architecture=processor, brief=brief)

    def _is_mine(self, thing: Any) -> bool:
        return self.name not in ("containers", "processes") or bool(thing.user == self._screen.app.desk.me)

    @property
    def chosen(self) -> ContainerView | ImageView | CatalogView | Holder | Run | None:
        """What the cursor is on."""
        return self._things.get(self.grid.cursor) if self.grid.cursor else None

    def visible_ids(self) -> frozenset[str]:
        """Keys of the rows that can be seen now, and some around them."""
        grid = self.grid
        top, height = int(grid.scroll_offset.y), max(1, grid.size.height)
        return frozenset(row.key for row in grid.rows[max(0, top - 2) : top + height + 2])

    def sort_by_next(self) -> None:
        """Sort by the next column that can be sorted by."""
        names = list(self._keys)
        if names:
            place = names.index(self._sorted_by) if self._sorted_by in names else -1
            self._sorted_by = names[(place + 1) % len(names)]
            self._reversed = False

    def reverse(self) -> None:
        """Turn the order round."""
        self._reversed = not self._reversed

    def notice(self, now: float) -> notice.Notice:
        """What stands in place of rows; nothing when there are some."""
        screen = self._screen
        app, width = screen.app, screen.list_width
        if self.name in ("containers", "images"):
            trouble = notice.of_engine(app.link, now=now, width=width)
            if trouble:
                return trouble
        if self.grid.rows:
            return notice.of_processes(app.host_view, width=width) if self.name == "processes" else notice.NOTHING
        if self._all() is None:
            return notice.empty("Looking …", "", width=width)
        if screen.fits and self.name == "images":
            words = "{images.fits} shows the others too, {images.catalog} more of the catalog."
            return notice.empty("No image here is known to run on this machine.", app.keys.fill(words), width=width)
        if screen.words or screen.mine:
            return notice.empty(
                "Nothing here fits the filter.",
                app.keys.fill("esc shows every row again, {list.mine} everybody's."),
                width=width,
            )
        what, hint = _EMPTY[self.name]
        return notice.empty(what, app.keys.fill(hint), width=width)


def _names(thing: ContainerView | ImageView | CatalogView) -> list[str]:
    """What runs about it may call it: by its id, and pulls and builds by its name."""
    if is_container(thing):
        return [thing.container.id]
    names = (thing.image.id, *thing.image.tags, *thing.image.digests) if is_image(thing) else (thing.image.reference,)
    return [shorter(name) for name in names]


_EMPTY = {
    "containers": ("No containers yet.", "{launch.new} launches one."),
    "images": ("No images yet.", "{images.catalog} shows what could be pulled, {images.pull} pulls one by its name."),
    "processes": ("No process uses a GPU.", ""),
    "runs": (
        "Nothing has been checked, launched or pulled yet.",
        "{container.check} checks the container under the cursor, {launch.new} launches one.",
    ),
}
