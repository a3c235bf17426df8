"""Images in full: one that is here, and one of the catalog that could be pulled."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gpuconsole.images.reference import shorter
from gpuconsole.services.catalog import CatalogView
from gpuconsole.services.images import ImageView
from gpuconsole.tui.present import catalogdetails, details, imagedetails
from gpuconsole.tui.screens.subject import Subject

if TYPE_CHECKING:
    from gpuconsole.engine.model import ImageStep


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
