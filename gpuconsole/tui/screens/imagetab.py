"""What the main screen's list of images has beside its rows: the catalog, only what fits, pull by name, prune."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual.reactive import reactive

from gpuconsole.tui import actions
from gpuconsole.tui.screens.imagedoing import ImageDoing

if TYPE_CHECKING:
    from gpuconsole.services.buildorders import BuildOrder, Chosen
    from gpuconsole.services.catalog import CatalogView
    from gpuconsole.services.imageremoval import Kept, Removal

SHELVES = ("recommended", "catalog", "here")
"""How much of the catalog stands below the images that are here; the last is nothing."""
IMAGE_TAB_ACTIONS = frozenset(action.method for action in actions.IMAGES)


class ImageTab(ImageDoing):
    """The part of the main screen that is about its list of images."""

    tab: reactive[str]
    mine: reactive[bool]
    fits: reactive[bool] = reactive(False, init=False, repaint=False)
    """Only images that are known to run on this machine."""
    shelf_shown: reactive[str] = reactive(SHELVES[0], init=False, repaint=False)
    """One of :data:`SHELVES`."""

    def beside_images(self) -> tuple[CatalogView, ...]:
        """The images of the catalog that stand below those that are here."""
        shelf = self.app.shelf
        if shelf is None or self.shelf_shown == "here":
            return ()
        return tuple(view for view in shelf.catalog if view.recommended or self.shelf_shown == "catalog")

    def marks_shown(self) -> list[str]:
        """What the list that is shown leaves out, or has beside its own."""
        marks = ["mine"] if self.mine else []
        if self.tab == "images":
            marks += ["fits here"] if self.fits else []
            marks += {"catalog": ["+ catalog"], "here": ["here only"]}.get(self.shelf_shown, [])
        return marks

    def _draw(self) -> None:
        """Draw the list anew."""
        raise NotImplementedError

    def watch_fits(self) -> None:
        """Other rows."""
        self._draw()

    def watch_shelf_shown(self) -> None:
        """Other rows."""
        self._draw()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What is about the list of images is there with it alone."""
        if action in IMAGE_TAB_ACTIONS and self.tab != "images":
            return False
        return super().check_action(action, parameters)

    def action_fits(self) -> None:
        """Only what runs on this machine, or all."""
        self.fits = not self.fits

    def action_catalog(self) -> None:
        """More of the catalog, or less."""
        self.shelf_shown = SHELVES[(SHELVES.index(self.shelf_shown) + 1) % len(SHELVES)]
        told = {
            "recommended": "What is recommended for this machine stands below the images that are here.",
            "catalog": "The whole catalog stands below the images that are here.",
            "here": "Only images that are here.",
        }
        self.app.notify(told[self.shelf_shown], markup=False, timeout=3)

    def action_pull_named(self) -> None:
        """Pull what is typed."""
        from gpuconsole.tui.screens.pulling import PullScreen

        self.app.push_screen(PullScreen(), self._pull_typed)

    def _pull_typed(self, name: str | None) -> None:
        if name:
            listed = self.app.shelf.catalog if self.app.shelf is not None else ()
            known = next((view for view in listed if view.image.reference == name), None)
            self.pull_after_all(name, known, known.instead.reference if known and known.instead else None)

    def action_build(self) -> None:
        """Build an image, of what is asked for."""
        from gpuconsole.tui.screens.building import BuildScreen

        self.app.push_screen(BuildScreen(), self._build)

    def _build(self, asked: tuple[BuildOrder, Chosen] | None) -> None:
        if asked is not None:
            self.do(self._begin_build, *asked)

    def _begin_build(self, order: BuildOrder, chosen: Chosen) -> str:
        where = f"{self.app.keys.name('tabs.runs')} on the main screen shows it"
        if not self.app.desk.images.builds.begin(order, chosen):
            return f"{chosen.name} is being built already; {where}."
        return f"Building {chosen.name}; {where}. It is checked when it is there."

    def action_prune(self) -> None:
        """Remove images that nothing needs, after a look at them."""
        self.prepare(partial(self.app.desk.images.prunable, everything=True), self._ask_prune)

    def _ask_prune(self, found: tuple[tuple[Removal, ...], tuple[Kept, ...]]) -> None:
        from gpuconsole.tui.screens.pruning import PruneScreen

        taken, kept = found
        if taken:
            self.app.push_screen(PruneScreen(taken, kept), self._prune)
        else:
            self.app.notify("Nothing to remove: every image is used or pinned.", markup=False, timeout=4)

    def _prune(self, taken: tuple[Removal, ...] | None) -> None:
        if taken:
            self.do(self.app.desk.images.remove, taken)
