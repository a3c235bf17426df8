"""Every failure a user can meet: one sentence of what happened, one of what to do, and an exit code."""

from __future__ import annotations

from gpuconsole.core.words import IntEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar


class ExitCode(IntEnum):
    """Exit codes of the command line; the table in the README is checked against this one."""

    OK = 0
    """All went well."""
    FAILED = 1
    """The command ran, and its answer is no: a check failed, a wait ended badly."""
    USAGE = 2
    """The command line itself is wrong."""
    NO_GPU = 3
    """No GPU driver, no GPU, or not the GPU that was asked for."""
    NO_ENGINE = 4
    """The container engine cannot be reached."""
    NOT_FOUND = 5
    """No such container, image, path or tool."""
    CONFLICT = 6
    """Something is in the way: a name or port is taken, or the container is in the wrong state."""
    REFUSED = 7
    """Not allowed: permission denied, read-only mode, or a question answered with no."""
    BAD_FILE = 8
    """A file is malformed or cannot be read."""
    ENGINE_ERROR = 9
    """The engine refused the request or failed at it."""
    TIMEOUT = 10
    """Something took too long."""
    INTERNAL = 70
    """A fault of gpuconsole itself."""
    INTERRUPTED = 130
    """Stopped by ctrl+c."""


class ConsoleError(Exception):
    """A failure a user can meet.

    Args:
        message: One sentence: what happened.
        hint: One sentence: what to do about it; empty only where nothing can be done.
        detail: The raw text behind it, already cleaned; shown with ``--debug`` or on request.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.FAILED

    def __init__(self, message: str, *, hint: str = "", detail: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.detail = detail


def tell_also(error: BaseException, told: str, *, hint: str) -> None:
    """Add to ``error``, which is raised again as what it is, what it has left behind and what to do about that."""
    if isinstance(error, ConsoleError):
        error.message, error.hint = f"{error.message} {told}", hint
        error.args = (error.message,)
    else:
        error.add_note(f"{told} {hint}")


class UsageError(ConsoleError):
    """The request cannot be understood."""

    exit_code = ExitCode.USAGE


class DriverMissing(ConsoleError):
    """NVML cannot be used: no driver, no library, or the two do not fit."""

    exit_code = ExitCode.NO_GPU


class GpuNotFound(ConsoleError):
    """The GPU that was asked for is not in this machine, or not wired into the engine."""

    exit_code = ExitCode.NO_GPU


class EngineUnavailable(ConsoleError):
    """No container engine answers at the endpoint."""

    exit_code = ExitCode.NO_ENGINE


class EngineRefused(ConsoleError):
    """The engine answered, and said no or failed."""

    exit_code = ExitCode.ENGINE_ERROR


class NotFound(ConsoleError):
    """The container, image, path or tool does not exist."""

    exit_code = ExitCode.NOT_FOUND


class Conflict(ConsoleError):
    """A name or port is taken, or the object is in a state that does not allow the action."""

    exit_code = ExitCode.CONFLICT


class Refused(ConsoleError):
    """Permission denied, read-only mode, or the user said no."""

    exit_code = ExitCode.REFUSED


class BadFile(ConsoleError):
    """A file people write is malformed."""

    exit_code = ExitCode.BAD_FILE


class TimedOut(ConsoleError):
    """An answer did not come in time."""

    exit_code = ExitCode.TIMEOUT
