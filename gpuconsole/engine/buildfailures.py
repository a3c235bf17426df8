"""Why a build failed, as far as the engine tells; what a failed step wrote is read elsewhere."""

from __future__ import annotations

from gpuconsole.core.errors import EngineRefused


class StepFailed(EngineRefused):
    """A command of the build ended with an exit code that is not zero."""
