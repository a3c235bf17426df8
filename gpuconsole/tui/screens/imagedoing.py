"""What can be done with the image under the cursor: pull it, pin it, remove it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gpuconsole.services.kinds import is_catalog_image, is_image
from gpuconsole.services.runs import Run, RunKind
from gpuconsole.tui.screens.asker import Asker

if TYPE_CHECKING:
    from gpuconsole.services.catalog import CatalogView
    from gpuconsole.services.imageremoval import Removal
    from gpuconsole.services.images import ImageView
    from gpuconsole.services.shelf import Hold
    from gpuconsole.tui.screens.subject import Thing

IMAGE_ACTIONS = frozenset({"pull", "pin", "remove_image"})


def named(thing: ImageView | CatalogView) -> str:
    """The reference of an image; its short id where it has none."""
    return thing.image.name if is_image(thing) else thing.image.reference


def _again(run: Run) -> str | None:
    if run.kind is not RunKind.PULL:
        return None
    from gpuconsole.services.pullqueue import to_pull_again

    return to_pull_again(run)


class ImageDoing(Asker):
    """Actions on images."""

    @property
    def thing(self) -> Thing | None:
        """What the cursor is on."""
        raise NotImplementedError

    @property
    def _image(self) -> ImageView | CatalogView | None:
        thing = self.thing
        return thing if is_image(thing) or is_catalog_image(thing) else None

    @staticmethod
    def can_do_image(action: str, thing: Thing | None) -> bool:
        """Whether an action of :data:`IMAGE_ACTIONS` applies."""
        if isinstance(thing, Run):
            return action == "pull" and _again(thing) is not None
        if is_catalog_image(thing):
            return action != "remove_image"
        if not is_image(thing):
            return False
        return action == "remove_image" or bool(thing.image.tags or thing.image.digests)

    def action_pull(self) -> None:
        """Pull it; a question first when it will not run here. Of a pull that brought nothing, try again."""
        if isinstance(self.thing, Run):
            if again := _again(self.thing):
                self.do(self._begin_pull, again)
        elif (thing := self._image) is not None:
            instead = None if is_image(thing) or thing.instead is None else thing.instead.reference
            self.pull_after_all(named(thing), thing, instead)

    def pull_after_all(self, name: str, known: ImageView | CatalogView | None, instead: str | None = None) -> None:
        """Pull ``name``; a question first when ``known`` says that it will not run here."""
        from gpuconsole.tui.present import verdict
        from gpuconsole.tui.screens.asking import about_unfit

        begin = partial(self.do, self._begin_pull, name)
        if known is not None and known.verdict is not None and known.verdict.word.value == "will_not_run":
            self.ask(about_unfit(name, verdict.why(known.verdict), instead), begin)
        else:
            begin()

    def _begin_pull(self, name: str) -> str:
        begun = self.app.desk.images.pull(name)
        from gpuconsole.images.reference import shorter

        reference = shorter(begun.reference)
        where = f"{self.app.keys.name('tabs.runs')} on the main screen shows it"
        if not begun.fresh:
            return f"{reference} is being pulled already; {where}."
        return " ".join((f"Pulling {reference}; {where}.", *begun.notes))

    def _hold(self, thing: ImageView | CatalogView) -> Hold | None:
        """The pin of it in the lock file of the folder the console was opened in."""
        key = thing.image.id if is_image(thing) else thing.image.reference
        shelf = self.app.shelf
        return next((hold for hold in shelf.holds.get(key, ()) if hold.own), None) if shelf is not None else None

    def action_pin(self) -> None:
        """Pin it; a pinned one, after a question, no more."""
        from gpuconsole.tui.screens.asking import about_unpin

        if (thing := self._image) is None:
            return
        desk, hold = self.app.desk.images, self._hold(thing)
        if hold is None:
            self.do(desk.pin, named(thing))
        else:
            self.ask(about_unpin(hold.reference, hold.lock), partial(self.do, desk.unpin, hold.reference))

    def action_remove_image(self) -> None:
        """Remove it, after a question; what is pinned or used stays, and it is said why."""
        thing = self.thing
        if is_image(thing):
            self.prepare(partial(self.app.desk.images.removal, thing.image.id), self._ask_removal)

    def _ask_removal(self, removal: Removal) -> None:
        from gpuconsole.tui.screens.asking import about_removal

        self.ask(about_removal(removal), partial(self.do, self.app.desk.images.remove, (removal,)))
