"""What the console does with images: pull, build, pin, remove and prune, each callable from any thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuconsole.core.errors import NotFound
from gpuconsole.core.text import plain_line, size
from gpuconsole.images.reference import shorter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpuconsole.engine.model import ImageStep
    from gpuconsole.services.building import Built
    from gpuconsole.services.buildmeter import BuildState
    from gpuconsole.services.imagebuilds import ImageBuilds
    from gpuconsole.services.imageremoval import Keeper, Kept, Removal
    from gpuconsole.services.lockfile import LockFile
    from gpuconsole.services.pulling import PullState
    from gpuconsole.services.pullqueue import Holder, PullQueue
    from gpuconsole.services.runs import Runs
    from gpuconsole.services.session import Session


@dataclass(frozen=True, slots=True)
class PullBegun:
    """A pull that goes on in the background."""

    run_id: str
    reference: str
    """What is pulled, as the lock file has it."""
    fresh: bool
    """It was not being pulled already."""
    notes: tuple[str, ...] = ()
    """Sentences about what may not be expected."""


class ImageDesk:
    """The console's actions on images.

    Args:
        session: Whose engine.
        runs: Where pulls are shown.
        holder: Cancels them.
        refresh: Asks for the images anew, in the background.
        check: Checks an image of that name and id, in the background.
    """

    def __init__(
        self,
        session: Session,
        runs: Runs,
        *,
        holder: Holder,
        refresh: Callable[[], None],
        check: Callable[[str, str], object],
    ) -> None:
        self._session = session
        self._runs = runs
        self._holder = holder
        self._refresh = refresh
        self._check = check
        self._pulls: PullQueue | None = None
        self._builds: ImageBuilds | None = None

    # --- pulls ---

    @property
    def going(self) -> tuple[str, ...]:
        """What this console pulls and builds now, a phrase each; leaving ends it."""
        pulls = self._pulls.going if self._pulls is not None else ()
        builds = self._builds.going if self._builds is not None else ()
        return (*(f"pull of {shorter(name)}" for name in pulls), *(f"build of {name}" for name in builds))

    def pull_state(self, run_id: str) -> PullState | None:
        """How far a pull is; None of one that this console has not begun."""
        return self._pulls.state(run_id) if self._pulls is not None else None

    def pull(self, text: str) -> PullBegun:
        """Begin to pull what is written as ``text``, as the folder's lock file pins it.

        Raises:
            UsageError: It is no reference.
            NotFound: It is pinned by an id, which no registry knows.
            BadFile: The lock file has mistakes.
        """
        from gpuconsole.services.lockfile import lock_file
        from gpuconsole.services.pullqueue import PullQueue
        from gpuconsole.services.pullruns import read_reference
        from gpuconsole.services.pullwish import as_pinned
        from gpuconsole.services.tagadvice import latest_note

        lock = lock_file()
        wish = as_pinned(read_reference(text), lock, lock.pins())
        if self._pulls is None:
            self._pulls = PullQueue(
                self._session, self._runs, holder=self._holder, on_end=lambda pulled: self._refresh()
            )
        run_id, fresh = self._pulls.add(wish.reference)
        latest = latest_note(self._session, str(wish.reference)) if fresh else None
        return PullBegun(run_id, str(wish.reference), fresh, tuple(filter(None, (wish.note, lock.note, latest))))

    # --- builds ---

    @property
    def builds(self) -> ImageBuilds:
        """The builds; what is built is checked at once."""
        if self._builds is None:
            from gpuconsole.services.imagebuilds import ImageBuilds

            self._builds = ImageBuilds(self._session, self._runs, holder=self._holder, on_built=self._built)
        return self._builds

    def _built(self, built: Built) -> None:
        self._refresh()
        self._check(built.name, built.image.id)

    def build_state(self, name: str) -> BuildState | None:
        """How far the build of that name is; None when this console builds none."""
        return self._builds.state(name) if self._builds is not None else None

    # --- pins ---

    def pin(self, text: str) -> str:
        """Hold what is written as ``text`` in the folder's lock file; returns what is to be told.

        Raises:
            UsageError: It is no reference.
            ConsoleError: What it means cannot be told.
            BadFile: The lock file has mistakes, or cannot be written.
        """
        from gpuconsole.images.reference import short_digest
        from gpuconsole.services.lockfile import lock_file
        from gpuconsole.services.pins import Pinner
        from gpuconsole.services.pullobstacles import registries
        from gpuconsole.services.pullruns import read_reference

        reference, lock = read_reference(text), lock_file()
        pinner = Pinner(self._session, registries())
        resolved = pinner.meaning(reference)
        pin = resolved.pin
        lock.change(lambda pins: {**pins, pin.reference: pin})
        pinner.hold(pin)
        self._refresh()
        to = short_digest(pin.digest) if pin.digest else f"id {pin.content.removeprefix('sha256:')[:12]}"
        told = f"Pinned {pin.reference} to {to} in {_path(lock)}; launches from this folder start it."
        return " ".join((told, *resolved.notes))

    def unpin(self, reference: str) -> str:
        """Take a pin from the folder's lock file; returns what is to be told.

        Raises:
            NotFound: It is not pinned there.
            BadFile: The lock file has mistakes, or cannot be written.
        """
        from gpuconsole.services.lockfile import lock_file

        lock = lock_file()
        if reference not in lock.pins():
            raise NotFound(f"{_path(lock)} does not pin {reference} any more.", hint="There is nothing to do.")
        lock.change(lambda pins: {name: pin for name, pin in pins.items() if name != reference})
        self._refresh()
        return f"{reference} is pinned no more in {_path(lock)}."

    # --- removing ---

    def removal(self, image_id: str) -> Removal:
        """What removing an image takes.

        Raises:
            NotFound: It is gone already.
            Conflict: It is pinned, or a container was made from it.
        """
        from gpuconsole.services.imageremoval import removal

        return removal(self._session.engine, image_id, self._keeper())

    def prunable(self, *, everything: bool) -> tuple[tuple[Removal, ...], tuple[Kept, ...]]:
        """What a prune takes, and what it leaves although nothing else needs it.

        Raises:
            BadFile: It is not known what is pinned.
        """
        from gpuconsole.services.imageremoval import prunable

        return prunable(self._session.engine, self._keeper(), everything=everything)

    def remove(self, removals: Sequence[Removal]) -> str:
        """Remove them; returns what is to be told.

        Raises:
            ConsoleError: Something stays; the message names it.
        """
        from gpuconsole.services.imageremoval import freed_bytes, remove

        done = remove(self._session.engine, removals)
        self._refresh()
        gone = [each.removal for each in done if each.error is None]
        many = gone[0].name if len(gone) == 1 else f"{len(gone)} images"
        told = f"Removed {many}: {size(freed_bytes(gone))} at most." if gone else ""
        for each in done:
            if each.error is not None:
                message = f"{told} {each.removal.name} stays: {each.error.message}".strip()
                raise type(each.error)(message, hint=each.error.hint)
        return told

    def steps(self, image_id: str) -> tuple[ImageStep, ...]:
        """The steps an image was made in, the newest first.

        Raises:
            ConsoleError: The engine does not tell.
        """
        return self._session.engine.image_steps(image_id)

    def _keeper(self) -> Keeper:
        from gpuconsole.services.imageremoval import Keeper
        from gpuconsole.services.lockfile import all_pins

        return Keeper(self._session.engine, all_pins())


def _path(lock: LockFile) -> str:
    return plain_line(str(lock.path))
