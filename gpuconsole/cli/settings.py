"""The options before a command's name, and the session they lead to; without the parser of options."""

from __future__ import annotations

import os

from gpuconsole.core.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gpuconsole.services.session import Session

HOST_VARIABLE = "GPUCONSOLE_HOST"
_NO = frozenset({"", "0", "false", "no", "off"})


def debug_by_environment() -> bool:
    """Whether ``GPUCONSOLE_DEBUG`` asks for tracebacks; 0, false, no, off and nothing do not."""
    return os.environ.get("GPUCONSOLE_DEBUG", "").strip().lower() not in _NO


class Settings:
    """The options before the command's name, and the session opened on first use.

    Args:
        host: Address of the engine; None takes the one ``docker ps`` would use.
        debug: Show tracebacks.
        readonly: Refuse what changes something.
    """

    def __init__(self, host: str | None = None, debug: bool = False, readonly: bool = False) -> None:
        self.host = host
        self.debug = debug
        self.readonly = readonly
        self._session: Session | None = None

    def session(self, *, one_look: bool = False) -> Session:
        """The session; opened on first use, closed when the command ends.

        Args:
            one_look: The command looks at the GPUs once, and is over.
        """
        if self._session is None:
            from gpuconsole.services.session import Session

            self._session = Session(host=self.host, one_look=one_look)
        return self._session

    def may_change(self, what: str) -> None:
        """Let an action that changes something go on, unless ``--readonly`` was given.

        Args:
            what: The action as a phrase after "cannot": ``"stop a container"``.

        Raises:
            Refused: ``--readonly`` was given.
        """
        if self.readonly:
            raise Refused(f"--readonly was given, so gpuconsole does not {what}.", hint="Leave --readonly out.")

    def close(self) -> None:
        """Close the session if one was opened."""
        if self._session is not None:
            self._session.close()
            self._session = None
