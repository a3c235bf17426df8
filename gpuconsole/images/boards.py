"""What is known of a GPU from its product name alone: capability, kind of board, brand, memory it shares."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

from gpuconsole.images.versions import capability


class Segment(StrEnum):
    """What kind of board a GPU is; forward compatibility and the base images' demands depend on it."""

    DATACENTER = "datacenter"
    WORKSTATION = "workstation"
    GEFORCE = "geforce"
    JETSON = "jetson"
    SOC = "soc"
    """GPU and CPU in one package with one memory (GB10)."""


@dataclass(frozen=True, slots=True)
class Board:
    """One row of ``gpus.toml``, or what a name says without one."""

    name: str
    segment: Segment
    capability: tuple[int, int] | None = None

    @property
    def unified_memory(self) -> bool:
        """GPU and CPU share one memory."""
        return self.segment in (Segment.SOC, Segment.JETSON)


@dataclass(frozen=True, slots=True)
class _Row:
    match: tuple[str, ...]
    board: Board


_WORDS = re.compile(r"[a-z0-9]+")
# Names the table does not list say at least this much.
_SAYS: tuple[tuple[str, Segment], ...] = (
    (r"\bgeforce\b|\bgtx\b|\btitan\b", Segment.GEFORCE),
    (r"\bquadro\b|\brtx (?:pro|a)\s?\d|\brtx \d000\b", Segment.WORKSTATION),
    (r"\btesla\b", Segment.DATACENTER),
    (r"\bjetson\b", Segment.JETSON),
)


@cache
def _rows() -> tuple[_Row, ...]:
    with (Path(__file__).parent / "gpus.toml").open("rb") as file:
        table = tomllib.load(file)
    return tuple(
        _Row(
            match=tuple(row["match"]),
            board=Board(name=row["name"], segment=Segment(row["segment"]), capability=capability(row["cc"])),
        )
        for row in table["gpu"]
    )


def board(name: str) -> Board | None:
    """The board called ``name`` by NVML, ``nvidia-smi`` or a person; None when the name says nothing.

    The longest text of the table that stands in the name as whole words wins. A family's name alone (``V100``) is
    enough where the whole family agrees.
    """
    text = " ".join(name.lower().split())
    found: tuple[int, Board] | None = None
    for row in _rows():
        for match in row.match:
            if (found is None or len(match) > found[0]) and match in text and _stands_alone(match, text):
                found = len(match), row.board
    if found is not None:
        return found[1]
    return _family(text) or _by_words(text)


def _stands_alone(match: str, text: str) -> bool:
    return re.search(rf"\b{re.escape(match)}\b", text) is not None


def _family(text: str) -> Board | None:
    """The board of a family that shares capability and segment: ``V100`` stands for V100-SXM2 and V100-PCIe."""
    for word in _WORDS.findall(text):
        if not any(char.isdigit() for char in word) or word.isdigit():
            continue
        boards = [row.board for row in _rows() if any(_WORDS.findall(match)[0] == word for match in row.match)]
        if boards and len({(each.segment, each.capability) for each in boards}) == 1:
            return Board(name=word.upper(), segment=boards[0].segment, capability=boards[0].capability)
    return None


def _by_words(text: str) -> Board | None:
    segment = next((segment for pattern, segment in _SAYS if re.search(pattern, text)), None)
    return None if segment is None else Board(name=text, segment=segment)


def brands(name: str | None, segment: Segment | None) -> tuple[str, ...]:
    """The brands NVML may give for a board, as ``NVIDIA_REQUIRE_*`` writes them; empty when nothing is known.

    Drivers differ in how finely they tell brands apart, so there may be several.
    """
    text = (name or "").lower()
    if segment is Segment.GEFORCE:
        if "titan" in text:
            return ("titan", "titanrtx")
        return ("geforce", "geforcertx") if "rtx" in text else ("geforce",)
    if segment is Segment.WORKSTATION:
        return ("quadro", "quadrortx") if "quadro" in text else ("nvidiartx", "quadrortx", "quadro")
    if segment is Segment.DATACENTER:
        if text.startswith("tesla"):
            return ("tesla",)
        return ("nvidiartx", "nvidia") if "rtx" in text else ("tesla", "nvidia")
    if segment is None:
        return ()
    return ("nvidia",)


def names() -> tuple[str, ...]:
    """Every board of the table."""
    return tuple(row.board.name for row in _rows())
