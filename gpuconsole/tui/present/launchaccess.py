"""How a container that was just launched is used through a browser: told once, for the token is kept in a file only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuconsole.core.text import plain_line
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.present.launchtext import wrapped

if TYPE_CHECKING:
    from gpuconsole.services.access import Access

Lines = list[tuple[Cell, ...]]


def access_lines(access: Access, name: str, width: int) -> Lines:
    """The address with its token, the line for another machine, and where the token is kept."""
    lines: Lines = [(Cell(f" {name} runs. {access.title}:", "strong"),), ()]
    lines += _unbroken(access.url, width, "accent")
    if access.tunnel:
        lines += [(), *wrapped("From another machine, run there first:", width, "dim")]
        lines += _unbroken(access.tunnel, width, "accent")
    if access.token_file:
        lines += [(), *wrapped("The token is not shown again; it is in", width, "dim")]
        lines += _unbroken(plain_line(access.token_file), width, "")
    return lines


def _unbroken(text: str, width: int, tone: str) -> Lines:
    """As it must be copied: cut only at the edge, without a blank put in."""
    room = max(20, width - 2)
    return [(Cell(f" {text[at : at + room]}", tone),) for at in range(0, len(text), room)]  # type: ignore[arg-type]


def access_words(access: Access) -> str:
    """The same in a sentence that may stay on a screen: without the token."""
    address = access.url.partition("?")[0]
    kept = f"; its token is in {plain_line(access.token_file)}" if access.token_file else ""
    return f"{access.title}: {address}{kept}."
