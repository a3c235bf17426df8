"""A module that is imported when something of it is first asked for."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Later:
    """Stands for a module by its name, of which a run that is to be quick mostly needs nothing.

    Args:
        name: Of the module, without dots.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        found = getattr(__import__(self._name), name)
        setattr(self, name, found)
        return found
