"""The newest lines of a recording, as many as fit, and those before that must be known to understand them."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

LOOKS = ("sample", "host")
"""Kinds of lines that are a look at the machine."""
_LASTING = ("containers", "images", "engine", "link", "runs", "facts")
"""Kinds of lines that stay true until the next one of their kind."""


class Line(NamedTuple):
    """A line of a recording."""

    number: int
    """In the file."""
    kind: str
    text: bytes


class Newest:
    """The last lines that fit, and what of those before must be known to understand them.

    Args:
        limit: Bytes.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = self._held_size = 0
        self.kept: deque[Line] = deque()
        self.known: dict[str, Line] = {}
        """Of the lines that were left out: the last of each container, and of each lasting kind."""
        self.left = False
        """Something was left out."""

    def add(self, line: Line) -> None:
        """The next line of the file."""
        self.kept.append(line)
        self._size += len(line.text)
        while self._size > self._limit and self.kept:
            self._leave_out()

    def hold(self, line: Line) -> None:
        """A line that is needed by those that follow, if it is of such a kind."""
        key = line.kind
        if key == "container":
            container = json.loads(line.text).get("container")
            key = f"container {container.get('id') if isinstance(container, dict) else None}"
        elif key not in _LASTING:
            return
        self._held_size += len(line.text) - (len(self.known[key].text) if key in self.known else 0)
        self.known[key] = line

    def _leave_out(self) -> None:
        line = self.kept.popleft()
        self._size -= len(line.text)
        self.left = True
        self.hold(line)

    def settle(self) -> None:
        """At the end: make room for what must be known, and begin with a look at the machine."""
        self._forget_containers()
        while self.left and self.kept and not self._is_settled():
            self._leave_out()

    def _is_settled(self) -> bool:
        return self._size + self._held_size <= self._limit and self.kept[0].kind in LOOKS

    def _forget_containers(self) -> None:
        """Those that were gone before."""
        lists = [each for each in (*self.known.values(), *self.kept) if each.kind == "containers"]
        listed: set[str] = set()
        for each in lists:
            views = json.loads(each.text).get("views")
            views = views if isinstance(views, list) else []
            listed |= {f"container {view.get('id')}" for view in views if isinstance(view, dict)}
        self.known = {key: each for key, each in self.known.items() if each.kind != "container" or key in listed}
        self._held_size = sum(len(each.text) for each in self.known.values())

    def held(self) -> list[Line]:
        """What must be known: containers first, since the others name them."""
        return sorted(self.known.values(), key=lambda each: (each.kind != "container", each.number))

    def lines(self) -> list[Line]:
        """All of them in an order in which they can be understood."""
        return [*self.held(), *self.kept]


def text_of(line: Mapping[str, Any]) -> bytes:
    """A line as it stands in a file, its end with it."""
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode("utf-8", errors="replace") + b"\n"
