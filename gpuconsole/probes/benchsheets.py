"""What a GPU should reach by its datasheet, and at the clock it held: figures by its exact product name."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from gpuconsole import images

_FIGURES = ("fp32", "tf32", "fp16", "bf16", "fp8")
_WRITTEN = ("verified", "derived")
_NOT_FULL = ("laptop gpu", "max-q", "mobile", " mig ")
"""Boards of the same name with lower clocks and parts of a board, which the table's figures do not fit."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a datasheet."""

    value: float
    evidence: str
    """``datasheet`` or ``computed from SMs and boost clock``, and the short names of the sources."""
    source: tuple[str, ...] = ()
    """These names."""


@dataclass(frozen=True, slots=True)
class Datasheet:
    """What is written of one GPU. Rates are dense TFLOP/s, without sparsity."""

    name: str
    rates: Mapping[str, Figure]
    """By type: ``fp32``, ``tf32``, ``fp16``, ``bf16``, ``fp8``."""
    memory_gbs: Figure | None = None
    """Of the GPU's own memory, GB/s."""
    nvlink_gbs: Figure | None = None
    """Both directions together, GB/s."""


@cache
def _file() -> Mapping[str, Any]:
    with (Path(images.__file__).parent / "gpus.toml").open("rb") as file:
        return tomllib.load(file)


def sources() -> Mapping[str, str]:
    """Short name of a source → where it is."""
    found: Mapping[str, str] = _file()["sources"]
    return found


def datasheet(name: str | None) -> Datasheet | None:
    """The datasheet of the GPU that NVML or CUDA calls ``name``; None when there is none with evidence.

    A family's name is not enough, and a laptop's board is not the desktop's.
    """
    row = _row(name)
    if row is None or row.get("status") not in _WRITTEN or not row.get("has_peaks"):
        return None
    doubtful = set(row.get("unverified", ()))
    how = "datasheet" if row["status"] == "verified" else "computed from SMs and boost clock"
    source = tuple(row.get("source", ()))
    evidence = f"{how}; {', '.join(source)}"

    def figure(field: str) -> Figure | None:
        value = row.get(field)
        return None if value is None or field in doubtful else Figure(float(value), evidence, source)

    rates = {field: found for field in _FIGURES if (found := figure(field)) is not None}
    return Datasheet(row["name"], rates, memory_gbs=figure("bw_gbs"), nvlink_gbs=figure("nvlink_gbs"))


def board_name(name: str | None) -> str | None:
    """How the table of GPUs calls the board ``name``; None when it does not know it."""
    row = _row(name)
    return None if row is None else str(row["name"])


def _row(name: str | None) -> Mapping[str, Any] | None:
    """The row whose text stands in the name as whole words; the longest text wins."""
    text = " ".join((name or "").lower().split())
    found: tuple[str, Mapping[str, Any]] | None = None
    for row in _file()["gpu"]:
        for match in row["match"]:
            if re.search(rf"\b{re.escape(match)}\b", text) and (found is None or len(match) > len(found[0])):
                found = match, row
    if found is None or any(word in text and word not in found[0] for word in _NOT_FULL):
        return None
    return found[1]


@dataclass(frozen=True, slots=True)
class _Rate:
    """Dense multiply-adds a clock and multiprocessor."""

    boards: tuple[str, ...]
    bf16: int
    fp32: int


_RATES = (
    _Rate(("A100",), bf16=1024, fp32=64),
    _Rate(("H100", "H200", "GH200"), bf16=2048, fp32=128),
    _Rate(("L40S", "L40", "RTX A6000", "RTX 6000 Ada", "RTX PRO 6000"), bf16=512, fp32=128),
    _Rate(("RTX 3090", "RTX 4090", "RTX 5090"), bf16=256, fp32=128),
)
"""Derived from the datasheets for FP32 accumulation. The compute capability alone does not give it: L40S and RTX 4090
are both 8.9."""
_SHARE_OF_BF16 = {"bf16": 1.0, "fp16": 1.0, "tf32": 0.5, "fp8": 2.0}


def rate_at_clock(name: str | None, *, dtype: str, multiprocessors: int | None, mhz: float) -> float | None:
    """Dense TFLOP/s of a GPU at a clock: multiprocessors × multiply-adds × 2 × clock; None when that is not known.

    Args:
        name: As NVML or CUDA calls it.
        dtype: ``bf16``, ``fp16``, ``tf32``, ``fp32`` or ``fp8``.
        multiprocessors: As CUDA counts them.
        mhz: The clock held.
    """
    board = board_name(name)
    if board is None or not multiprocessors or mhz <= 0:
        return None
    sheet = datasheet(name)
    for rate in _RATES:
        if any(re.match(rf"{re.escape(each)}\b", board) for each in rate.boards):
            if sheet is None or dtype not in sheet.rates:
                return None
            per_clock = rate.fp32 if dtype == "fp32" else rate.bf16 * _SHARE_OF_BF16.get(dtype, 0.0)
            return multiprocessors * per_clock * 2 * mhz * 1e6 / 1e12 if per_clock else None
    return None
