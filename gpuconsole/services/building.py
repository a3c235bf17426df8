"""Building an image with PyTorch from our Dockerfile: base, build, and nothing half made when it ends early."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpuconsole.core.errors import Conflict, ConsoleError, EngineRefused, NotFound, tell_also
from gpuconsole.core.text import plain_line, size
from gpuconsole.images.dockerfile import Recipe, dockerfile
from gpuconsole.images.facts import image_facts
from gpuconsole.images.reference import parse
from gpuconsole.images.verdict import HostTraits
from gpuconsole.launch.spec import PullPolicy
from gpuconsole.services.buildfailures import PackagesUnreached, explained
from gpuconsole.services.buildmeter import BuildMeter, BuildState
from gpuconsole.services.buildorders import BuildOrder, Chosen, choose
from gpuconsole.services.cancelling import Cancellation, Cancelled
from gpuconsole.services.fitting import engine_machine
from gpuconsole.services.imagenames import digest_in, local_image
from gpuconsole.services.pullruns import Puller
from gpuconsole.services.session import Session

if TYPE_CHECKING:
    from gpuconsole.engine.model import EngineInfo, Image
    from gpuconsole.engine.protocol import Engine
    from gpuconsole.services.pulling import PullState

__all__ = ["BuildOrder", "BuildState", "Built", "build_image", "chosen_for", "pinned_base"]

OnState = Callable[[BuildState], None]
_NEWS_S = 0.1
_TIDY_S = 15.0
NEEDED_BYTES = 12 << 30
"""Packages as they are downloaded, and installed: what a build of torch takes of the engine's disk at the most."""


@dataclass(frozen=True, slots=True)
class Built:
    """An image that was built."""

    name: str
    image: Image
    recipe: Recipe
    dockerfile: str
    log: tuple[str, ...] = ()
    """The last lines of the build."""
    replaced_id: str | None = None
    """The image that had the name before, which stays without it."""
    seconds: float = 0.0


def chosen_for(session: Session, order: BuildOrder) -> Chosen:
    """What ``order`` comes to for the machine of the session's engine.

    Raises:
        UsageError: PyTorch was never published in that combination; the hint names those there are.
        EngineUnavailable: Nothing answers there.
    """
    if order.torch is not None or order.cuda is not None:
        choose(order, HostTraits())  # what there never was is refused whether an engine answers or not
    host = engine_machine(session).traits
    return choose(order, host, architecture=host.architecture or "amd64")


def build_image(
    session: Session, order: BuildOrder, *, cancel: Cancellation, on_state: OnState, chosen: Chosen | None = None
) -> Built:
    """Build what is ordered; returns when it is there.

    Args:
        session: Whose engine.
        order: What to build.
        cancel: Ends it, also in the engine; nothing half made is left.
        on_state: Told how far it is, on the thread of the caller, some times a second.
        chosen: What the order comes to, where it was asked for before.

    Raises:
        UsageError: PyTorch was never published in that combination; the hint names those there are.
        Conflict: The engine's disk has no room for it.
        Cancelled: ``cancel`` was used.
        ConsoleError: The base cannot be had, or the build failed, with the reason and the remedy.
    """
    began = time.monotonic()
    chosen = chosen or chosen_for(session, order)
    engine = session.engine
    if order.index_url is None and not order.force:
        _refuse_full_disk(engine.info(), chosen.name)
    news = _News(BuildMeter(chosen.name, chosen.recipe), on_state)
    recipe = _on_base(chosen.recipe, _base(session, chosen, order, cancel=cancel, on_pull=news.pull))
    text = dockerfile(recipe)
    before = local_image(engine, chosen.name)
    image = _Build(engine, recipe, chosen.name, news, cancel).run(text, order)
    return Built(
        name=chosen.name,
        image=image,
        recipe=recipe,
        dockerfile=text,
        log=news.meter.lines,
        replaced_id=before.id if before is not None and before.id != image.id else None,
        seconds=time.monotonic() - began,
    )


class _News:
    """Tells the state now and then, and whenever a step begins."""

    def __init__(self, meter: BuildMeter, on_state: OnState) -> None:
        self.meter = meter
        self._on_state = on_state
        self._told_at = 0.0
        self._step = -1

    def pull(self, state: PullState) -> None:
        self.tell(self.meter.pulls(state))

    def tell(self, state: BuildState) -> None:
        now = time.monotonic()
        if state.step == self._step and now - self._told_at < _NEWS_S:
            return
        self._step, self._told_at = state.step, now
        self._on_state(state)


class _Build:
    """One build in an engine, with what it leaves on the way."""

    def __init__(self, engine: Engine, recipe: Recipe, name: str, news: _News, cancel: Cancellation) -> None:
        self._engine = engine
        self._recipe = recipe
        self._name = name
        self._news = news
        self._cancel = cancel
        self._made: list[str] = []
        self._containers: list[str] = []
        self._whole = ""

    def run(self, text: str, order: BuildOrder) -> Image:
        try:
            self._carry_out(text, order)
            image = local_image(self._engine, self._name) if self._whole else None
            if image is None or not image.id.endswith(self._whole):
                raise self._interrupted() if self._cancel.requested else _broken_off()
            return image  # also where the wish to stop came too late
        except ConsoleError as error:
            failure = (
                self._interrupted()
                if self._cancel.requested
                else explained(error, self._news.meter.lines, self._recipe)
            )
            if not isinstance(failure, PackagesUnreached):
                self._tidy(failure)
            if failure is error:
                raise
            raise failure from error

    def _carry_out(self, text: str, order: BuildOrder) -> None:
        stream = self._engine.build(text, tag=self._name, network=order.network, fresh=order.fresh)
        with self._cancel.closing(stream):
            for told in stream:
                if told.image_id.startswith("sha256:"):
                    self._whole = told.image_id.removeprefix("sha256:")
                elif told.image_id and not told.cached and self._news.meter.state.step > 1:
                    self._made.append(told.image_id)
                if told.container_id:
                    self._containers.append(told.container_id)
                self._news.tell(self._news.meter.add(told))

    def _interrupted(self) -> Cancelled:
        return Cancelled(
            f"Interrupted: {self._name} was not built, and what was here before is as it was.",
            hint="The base stays where it was pulled whole; the rest is built anew next time.",
        )

    def _tidy(self, failure: ConsoleError) -> None:
        """Remove what the finished steps left. The engine may still be ending the last one."""
        until = time.monotonic() + _TIDY_S
        for container in self._containers[-1:]:
            with contextlib.suppress(ConsoleError):
                self._engine.remove(container, force=True, volumes=True)
        left = [image for image in reversed(self._made) if not self._removed(image, until)]
        if left:
            tell_also(
                failure, "Images of its finished steps are left.", hint="Remove them by 'gpuconsole image prune'."
            )

    def _removed(self, image: str, until: float) -> bool:
        while True:
            try:
                found = self._engine.image(image)
                if not found.tags:  # with a name it is somebody's: an earlier build had the same steps
                    self._engine.remove_image(found.id)
                return True
            except NotFound:
                return True
            except Conflict as error:
                # An earlier build may have gone on from here; else the container of the last step is about to go.
                if "made from it" in error.message and "Another image" in error.message:
                    return True
                if time.monotonic() >= until:
                    return False
            except ConsoleError:
                return False
            time.sleep(0.1)


def _broken_off() -> ConsoleError:
    return EngineRefused(
        "The engine ended the build without saying how it went.",
        hint="Look at 'journalctl -u docker -n 20', then build again.",
    )


def _base(
    session: Session, chosen: Chosen, order: BuildOrder, *, cancel: Cancellation, on_pull: Callable[[PullState], None]
) -> Image:
    """The base, pulled where that is wanted."""
    written = chosen.recipe.base
    image = None if order.pull is PullPolicy.ALWAYS else local_image(session.engine, written)
    if image is None and order.pull is PullPolicy.NEVER:
        raise NotFound(
            f"The base {written} is not here, and --pull never forbids to fetch it.",
            hint="Leave --pull never out, or name one of 'gpuconsole images' by --base.",
        )
    if image is None:
        try:
            image = Puller(session, force=order.force).pull(parse(written), cancel=cancel, on_state=on_pull).image
        except Cancelled as error:
            raise Cancelled(
                f"Interrupted while pulling the base {written}: nothing was built.",
                hint="Layers that were complete are kept; build again to go on from them.",
            ) from error
    return image


def _on_base(recipe: Recipe, image: Image) -> Recipe:
    """The recipe with the base's digest; and of a base that is not ours, with what it says of itself."""
    facts = image_facts(image)
    return replace(
        recipe,
        base=_with_digest(recipe.base, image),
        python=recipe.python or (facts.python.value if facts.python else None),
        system=recipe.system or (facts.system.value if facts.system else None),
    )


def _with_digest(written: str, image: Image) -> str:
    reference = parse(written)
    digest = reference.digest or digest_in(image, reference)
    return written if digest is None or reference.digest else f"{written}@{digest}"


def pinned_base(session: Session, chosen: Chosen) -> tuple[str, str]:
    """The base with its digest, from the engine or its registry, without pulling it; and why it has none, if so."""
    from gpuconsole.services.pullobstacles import ask_in_time, registries

    written = chosen.recipe.base
    reference = parse(written)
    if reference.digest is not None:
        return written, ""
    with contextlib.suppress(ConsoleError):
        image = local_image(session.engine, written)
        if image is not None:
            found = _with_digest(written, image)
            return found, "" if found != written else "no registry knows it"
    manifest = ask_in_time(lambda: registries().describe(reference))
    if manifest is None:
        return written, f"{reference.registry} was asked for its digest and gave none"
    return f"{written}@{manifest.digest}", ""


def _refuse_full_disk(info: EngineInfo, name: str) -> None:
    from gpuconsole.services.pullobstacles import room

    space = room(info, 0)
    if space is not None and space.free_bytes < NEEDED_BYTES:
        raise Conflict(
            f"Building {name} takes up to {size(NEEDED_BYTES)}, and the engine's disk ({plain_line(space.folder)}) has "
            f"{size(space.free_bytes)} free.",
            hint="Make room with 'gpuconsole image prune'; to build all the same: --force",
        )
