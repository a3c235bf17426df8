"""How figures of benchmarks are told: what was measured in a few words, scores with the digits that mean something."""

from __future__ import annotations

import math

from gpuconsole.core.text import size
from gpuconsole.probes.benchrecords import BenchRecord

_FIRST = ("operation", "how", "dtype", "precision", "case", "backend", "direction", "memory", "test", "mode")
"""Parameters that say most, by their value alone."""
_UNSAID = {
    "data": "randn", "flush": None, "causal": None, "backward": None, "mode": "default", "pinned": None, "count": None,
    "width": None, "layers": None, "heads": None, "sequence": None, "vocabulary": None, "pixels": None,
    "sample_bytes": None, "b": None, "h": None, "s": None, "d": None,
}  # fmt: skip
"""Parameters that are the same in every run of a benchmark, or go with another: left out, where they have this value,
or any where that is None."""


def words_of(record: BenchRecord) -> str:
    """What tells a result from the others of its benchmark, short: ``bf16 8192³``."""
    params = {name: value for name, value in record.params.items() if not _unsaid(name, value)}
    sides = [params.pop(side, None) for side in ("m", "n", "k")]
    words = [value for name in _FIRST if isinstance(value := params.pop(name, None), str)]
    if all(isinstance(side, int) for side in sides):
        words.append(f"{sides[0]}³" if len(set(sides)) == 1 else "×".join(str(side) for side in sides))
    if "from" in params and "to" in params:
        words.append(f"{params.pop('from')}→{params.pop('to')}")
    words += [word for name, value in params.items() if (word := _worded(name, value))]
    if len(record.gpu) == 1 and record.gpu != (0,):
        words.append(f"GPU {record.gpu[0]}")
    return " ".join(words)


def _unsaid(name: str, value: object) -> bool:
    return name in _UNSAID and _UNSAID[name] in (None, value)


def _worded(name: str, value: object) -> str:
    if isinstance(value, bool):
        return name if value else ""
    if name == "bytes" and isinstance(value, int):
        return size(value)
    if isinstance(value, int | float):
        return f"{name} {value:g}"
    return f"{name} {value}" if isinstance(value, str) else ""


def named(slug: str, words: str) -> str:
    """A result's name, ``mm bf16 8192³``; what its parameters begin with anyway is not said twice."""
    name = slug.removeprefix("bench.")
    return words if words.split(" ")[0] == name else f"{name} {words}".rstrip()


def figure(value: float | None) -> str:
    """A score with three digits that count, without an exponent: ``787``, ``55.1``, ``0.0123``; ``–`` when unknown."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(digits, 6)}f}".replace(",", " ")


def scored(record: BenchRecord) -> str:
    """A score with its unit; ``–`` when there is none."""
    return f"{figure(record.score)} {unit_of(record.unit)}".strip() if record.score is not None else "–"


def unit_of(unit: str) -> str:
    """A unit as it is written for people: ``µs`` of ``us``, ``×`` of ``x``."""
    return {"x": "×", "us": "µs", "share": ""}.get(unit, unit)


def percent(share: float | None) -> str:
    """A share in percent; empty when unknown."""
    return "" if share is None else f"{share * 100:.0f} %"
