"""Logins that ``docker login`` left: in Docker's configuration, or with the helper that it names."""

from __future__ import annotations

from docker.auth import INDEX_NAME, load_config
from docker.errors import DockerException

from gpuconsole.core.errors import Refused
from gpuconsole.core.text import plain_line


class DockerLogins:
    """Docker's own configuration, read when first asked; may be asked by several threads."""

    def __init__(self) -> None:
        self._config = load_config()

    def __call__(self, registry: str) -> tuple[str, str] | None:
        """User and password for a registry (``docker.io``, ``nvcr.io``); None without a login.

        Raises:
            Refused: The helper that keeps it gives no answer.
        """
        try:
            entry = self._config.resolve_authconfig(INDEX_NAME if registry == "docker.io" else registry)
        except (DockerException, OSError) as error:
            raise Refused(
                f"The login for {plain_line(registry)} cannot be read: {plain_line(str(error))}.",
                hint="A credential helper may need a desktop; 'docker login' without it writes Docker's configuration.",
            ) from error
        if not entry:
            return None
        user, password = entry.get("Username", entry.get("username")), entry.get("Password", entry.get("password"))
        return (user, password) if user and password else None
