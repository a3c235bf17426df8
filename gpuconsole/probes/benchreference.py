"""What healthy machines measured: ``reference.toml``, asked for one result."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from gpuconsole.probes.benchrecords import BenchGpu, BenchRecord
from gpuconsole.probes.benchsheets import board_name


@dataclass(frozen=True, slots=True)
class Reference:
    """A row of the table."""

    bench: str
    low: float
    high: float
    unit: str
    source: tuple[str, ...]
    boards: tuple[str, ...] = ()
    link: str = ""
    gpus: int | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    otherwise: bool = False
    """It was measured in another way."""

    @property
    def value(self) -> float:
        """What a result is judged against."""
        return (self.low + self.high) / 2

    @property
    def words(self) -> str:
        """The figures, and where they are from."""
        figures = f"{self.low:g}" if self.low == self.high else f"{self.low:g}–{self.high:g}"
        told = f"{figures} {self.unit}" + (" measured in another way" if self.otherwise else "")
        return f"the reference {told} ({', '.join(self.source)})"


@cache
def references() -> tuple[Reference, ...]:
    """The whole table."""
    with (Path(__file__).parent / "reference.toml").open("rb") as file:
        table = tomllib.load(file)
    return tuple(
        Reference(
            bench=row["bench"],
            low=float(row["low"]),
            high=float(row["high"]),
            unit=row["unit"],
            source=tuple(row["source"]),
            boards=tuple(row.get("boards", ())),
            link=row.get("link", ""),
            gpus=row.get("gpus"),
            params=row["params"],
            otherwise=row.get("otherwise", False),
        )
        for row in table["reference"]
    )


@cache
def sources() -> Mapping[str, str]:
    """Short name of a source → where it is."""
    with (Path(__file__).parent / "reference.toml").open("rb") as file:
        table: Mapping[str, str] = tomllib.load(file)["sources"]
    return table


def reference_for(record: BenchRecord, gpus: Sequence[BenchGpu]) -> Reference | None:
    """The row for a result of these GPUs, one of our own way before others.

    None when nobody's figures are known, or the GPUs are slices of one.
    """
    if record.device != "cuda" or not gpus or any(gpu.mig for gpu in gpus):
        return None
    boards = {board_name(gpu.name) for gpu in gpus}
    links = {link_of(gpu) for gpu in gpus}
    for row in sorted(references(), key=lambda each: each.otherwise):
        if row.bench != record.id or row.unit != record.unit or row.gpus not in (None, len(gpus)):
            continue
        if any(record.params.get(name) != value for name, value in row.params.items()):
            continue
        if row.link and links == {row.link}:
            return row
        if not row.link and len(boards) == 1 and boards <= set(row.boards):
            return row
    return None


def link_of(gpu: BenchGpu) -> str:
    """``pcie-5x16``; empty when the link under load is not known."""
    if gpu.pcie_generation is None or gpu.pcie_width is None:
        return ""
    return f"pcie-{gpu.pcie_generation}x{gpu.pcie_width}"
