"""Names of local images for a shell's completion."""

from __future__ import annotations

import threading

from gpuconsole.core.errors import ConsoleError

_COMPLETION_S = 1.0


def image_names_for_completion(host: str | None, incomplete: str) -> list[str]:
    """Tags of local images that begin with ``incomplete``; none without an engine that answers in a second."""
    found: list[str] = []

    def ask() -> None:
        from gpuconsole.services.session import Session

        session = Session(host=host)
        try:
            found.extend(tag for image in session.engine.images() for tag in image.tags)
        except ConsoleError:
            return
        finally:
            session.close()

    thread = threading.Thread(target=ask, name="completion", daemon=True)
    thread.start()
    thread.join(_COMPLETION_S)
    return sorted({tag for tag in tuple(found) if tag.startswith(incomplete)})
