"""Containers that were started while their command could not be: the same failure with and without the engine's init.

Without an init the engine refuses to start a container whose program is missing. With one, the container starts, and
the init writes a line and ends; so does the engine's own helper when only a script's interpreter is missing.
"""

from __future__ import annotations

import re

from gpuconsole.core.errors import ConsoleError, NotFound, Refused
from gpuconsole.core.text import plain_line
from gpuconsole.engine.model import Container
from gpuconsole.engine.request import CreateRequest
from gpuconsole.services.following import Ending

_LINE = re.compile(
    r"(?:\[FATAL tini \(\d+\)\] )?exec (?P<program>\S.*?)(?: failed)?: "
    r"(?:(?P<missing>no such file or directory|not a directory)|(?P<closed>permission denied|is a directory))",
    re.IGNORECASE,
)
_NOT_EXECUTABLE, _NOT_FOUND = 126, 127
_ATTEMPT_S = 10.0
_CODES = (1, _NOT_EXECUTABLE, _NOT_FOUND, 255)


def refuse_unstarted(ending: Ending | None, request: CreateRequest, *, followed: bool) -> None:
    """Raise what the engine raises by itself without an init, when the command of a container never ran.

    Args:
        ending: How it ended; None when it goes on.
        request: What the engine was told.
        followed: Its output was passed on, and its exit code is to be ours.

    Raises:
        NotFound: The program is missing.
        Refused: It is there and may not be run.
    """
    if ending is None or ending.exit_code not in _CODES or _has_worked(ending.container):
        return
    matches = [_LINE.fullmatch(line) for line in ending.last_lines]
    if matches and all(matches) and (match := matches[-1]) is not None:
        raise _missing(match["program"]) if match["missing"] else _closed(match["program"])
    if request.auto_remove and not ending.last_lines and not followed:
        _refuse_by_code(ending.exit_code, request)


def _has_worked(container: Container | None) -> bool:
    """It ran for longer than an attempt takes, so what it wrote is not to be thrown away, whatever its last words."""
    if container is None or container.started_at is None or container.finished_at is None:
        return False
    return container.finished_at - container.started_at > _ATTEMPT_S


def _refuse_by_code(code: int, request: CreateRequest) -> None:
    """Of a container that was removed at its end, with its output, the exit code alone can tell."""
    words = [word for word in (*(request.entrypoint or ()), *(request.command or ())) if word]
    program = plain_line(words[0]) if words else "of its image"
    hint = "Look at the command; --wait shows what it said."
    if code == _NOT_FOUND:
        raise NotFound(f"There is no program {program} in the container, or what it calls is not there.", hint=hint)
    if code == _NOT_EXECUTABLE:
        raise Refused(f"The program {program} in the container, or what it calls, may not be run.", hint=hint)


def _missing(program: str) -> ConsoleError:
    return NotFound(
        f"There is no program {program} in the container.",
        hint="Look at the command and the image's entrypoint; of a script, at its first line as well.",
    )


def _closed(program: str) -> ConsoleError:
    return Refused(f"The program {program} in the container may not be run.", hint="Its mode needs the x bit.")
