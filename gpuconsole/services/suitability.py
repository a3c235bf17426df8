"""A word of warning before a launch: an image of which it is known that it will not run on the chosen GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpuconsole.core.errors import ConsoleError, NotFound

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
    from gpuconsole.images.verdict import Word
    from gpuconsole.services.fitting import traits_of

    host = traits_of(session.gpus.snapshot(), gpus, path=path, architecture=info.architecture)
    try:
        verdict, instead = _verdict(session, image, host)
    except ConsoleError:
        return ()  # a warning that cannot be given holds up nothing
    if verdict is None or verdict.word is not Word.WILL_NOT_RUN:
        return ()
    would = f" {instead} would." if instead else ""
    return (f"{image} will not run here: {verdict.reasons[0].text}.{would}",)


def _verdict(session: Session, image: str, host: HostTraits) -> tuple[Verdict | None, str | None]:
    """The verdict on an image that is here, or in the catalog, and for the latter what would run instead."""
    from gpuconsole.images.facts import image_facts
    from gpuconsole.services.catalog import load_catalog, view_catalog
    from gpuconsole.services.images import judge_local

    try:
        found = session.engine.image(image)
        return judge_local(found, host, image_facts(found, session.engine.image_history(found.id))), None
    except NotFound:
        catalog = load_catalog()
    known = catalog.find(image)
    if known is None:
        return None, None
    view = next(view for view in view_catalog(catalog, host) if view.image.reference == known.reference)
    return view.verdict, view.instead.reference if view.instead else None
