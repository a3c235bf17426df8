"""A word of warning before a launch: an image that will not run on the chosen GPUs, or that was never published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpuconsole.core.errors import ConsoleError, NotFound
from gpuconsole.launch.changes import Change
from gpuconsole.launch.preflight import Said

if TYPE_CHECKING:
    from gpuconsole.engine.model import EngineInfo, GpuPath
    from gpuconsole.gpu.model import Gpu
    from gpuconsole.images.verdict import HostTraits, Verdict
    from gpuconsole.services.session import Session


def unsuitable(
    session: Session, image: str, *, gpus: Sequence[Gpu], path: GpuPath, info: EngineInfo
) -> tuple[str, ...]:
    """A sentence when ``image`` will not run on ``gpus``, with what would; none when it runs or is not known.

    Args:
        session: Whose driver and engine.
        image: As the launch names it; it need not be here yet.
        gpus: The ones it is to get; without any nothing is said.
        path: The way they take.
        info: The engine; of one on another machine nothing is known.
    """
    if not gpus or not info.local:
        return ()
    from gpuconsole.services.fitting import traits_of

    host = traits_of(session.gpus.snapshot(), gpus, path=path, architecture=info.architecture)
    try:
        return _of_local(session, image, host)
    except NotFound:
        pass
    except ConsoleError:
        return ()  # a warning that cannot be given holds up nothing
    try:
        return _of_catalog(image, host)
    except ConsoleError:
        return ()


def unsuitable_advice(
    session: Session, image: str, *, gpus: Sequence[Gpu], path: GpuPath, info: EngineInfo
) -> Said | None:
    """The same in one, with the change to the image that would run, where the catalog has one; None when it runs."""
    from gpuconsole.services.fitting import traits_of

    told = unsuitable(session, image, gpus=gpus, path=path, info=info)
    if not told:
        return None
    host = traits_of(session.gpus.snapshot(), gpus, path=path, architecture=info.architecture)
    instead = _instead(image, host)
    return Said(" ".join(told), change=Change("image", instead) if instead else None)


def _instead(name: str, host: HostTraits) -> str | None:
    """The image of the catalog that is nearest to this one and runs; None when it is not of the catalog."""
    from gpuconsole.services.catalog import load_catalog, view_catalog

    try:
        catalog = load_catalog()
        known = catalog.find(name)
        if known is None:
            return None
        views = view_catalog(catalog, host)
    except ConsoleError:
        return None
    view = next(view for view in views if view.image.reference == known.reference)
    return view.instead.reference if view.instead else None


def unsuitable_by_catalog(session: Session, name: str) -> tuple[str, ...]:
    """A sentence when the catalog knows that an image will not run on this machine, with what would; else none."""
    from gpuconsole.services.fitting import engine_machine

    try:
        return _of_catalog(name, engine_machine(session).traits)
    except ConsoleError:
        return ()


def _of_local(session: Session, name: str, host: HostTraits) -> tuple[str, ...]:
    from gpuconsole.services.images import judge_local, known_facts
    from gpuconsole.services.seenimages import seen_images

    image = session.engine.image(name)
    facts = known_facts(image, session.engine.image_history(image.id), seen_images().get(image.id))
    return _sentence(name, judge_local(image, host, facts))


def _of_catalog(name: str, host: HostTraits) -> tuple[str, ...]:
    from gpuconsole.images.verdict import Word
    from gpuconsole.services.catalog import judge_entry, load_catalog, never_published, view_catalog

    catalog = load_catalog()
    known = catalog.find(name)
    if known is None:
        sentence = never_published(catalog, name)
        return (sentence,) if sentence else ()
    verdict = judge_entry(known, host)
    if verdict.word is not Word.WILL_NOT_RUN:
        return ()
    view = next(view for view in view_catalog(catalog, host) if view.image.reference == known.reference)
    return _sentence(name, verdict, view.instead.reference if view.instead else None)


def _sentence(name: str, verdict: Verdict, instead: str | None = None) -> tuple[str, ...]:
    from gpuconsole.images.verdict import Word

    if verdict.word is not Word.WILL_NOT_RUN:
        return ()
    would = f" {instead} would." if instead else ""
    return (f"{name} will not run here: {verdict.reasons[0].text}.{would}",)
