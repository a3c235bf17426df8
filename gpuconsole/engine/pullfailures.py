"""Why a pull failed, told apart so that the remedy can name the tag, the registry or the platform that would do."""

from __future__ import annotations

from gpuconsole.core.errors import EngineRefused, NotFound, Refused


class ImageUnknown(NotFound):
    """The registry has no image of this name and tag."""


class PlatformMissing(NotFound):
    """The image is not published for this processor."""


class LoginNeeded(Refused):
    """The registry does not give it out to who asked; or has none of this name, and does not say which."""


class RateLimited(EngineRefused):
    """The registry has been asked too often."""


class DownloadBroken(EngineRefused):
    """It did not arrive whole."""


class RegistryUnreached(EngineRefused):
    """The engine cannot reach the registry."""
