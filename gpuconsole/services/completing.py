"""Names of containers and images for a shell's completion: quick, and silent without an engine that answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from gpuconsole.core.errors import ConsoleError

if TYPE_CHECKING:
    from gpuconsole.engine.protocol import Engine

_LIMIT_S = 1.0


def container_names(host: str | None, incomplete: str) -> list[str]:
    """Names of containers that begin with ``incomplete``; none without an engine that answers in a second."""
    return _asked(host, incomplete, lambda engine: (one.name for one in engine.containers()))


def image_names(host: str | None, incomplete: str) -> list[str]:
    """Tags of local images that begin with ``incomplete``; none without an engine that answers in a second."""
    return _asked(host, incomplete, lambda engine: (tag for image in engine.images() for tag in image.tags))


def reference_names(host: str | None, incomplete: str) -> list[str]:
    """Images of the catalog, and tags of local images, that begin with ``incomplete``."""
    from gpuconsole.services.catalog import load_catalog

    try:
        known = [image.reference for image in load_catalog().images if image.reference.startswith(incomplete)]
    except ConsoleError:
        known = []
    return sorted({*known, *image_names(host, incomplete)})


def pinned_names(host: str | None, incomplete: str) -> list[str]:
    """What the folder's lock file pins, the images of the catalog, and tags of local images."""
    from gpuconsole.services.lockfile import lock_file

    try:
        pinned = [name for name in lock_file().pins() if name.startswith(incomplete)]
    except ConsoleError:
        pinned = []
    return sorted({*pinned, *reference_names(host, incomplete)})


def profile_names(host: str | None, incomplete: str) -> list[str]:
    """Launch profiles of the project and the user."""
    from gpuconsole.services.profiles import profile_sources

    try:
        names = {name for source in profile_sources() for name in source.profiles}
    except ConsoleError:
        return []
    return sorted(name for name in names if name.startswith(incomplete))


def launch_names(host: str | None, incomplete: str) -> list[str]:
    """What can be launched: profiles, then tags of local images."""
    return [*profile_names(host, incomplete), *image_names(host, incomplete)]


def _asked(host: str | None, incomplete: str, ask: Callable[[Engine], Iterable[str]]) -> list[str]:
    found: list[str] = []

    def work() -> None:
        from gpuconsole.services.session import Session

        session = Session(host=host)
        try:
            found.extend(ask(session.engine))
        except ConsoleError:
            return
        finally:
            session.close()

    thread = threading.Thread(target=work, name="completion", daemon=True)
    thread.start()
    thread.join(_LIMIT_S)
    return sorted({name for name in tuple(found) if name.startswith(incomplete)})
