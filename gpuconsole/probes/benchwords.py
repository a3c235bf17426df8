"""How figures of benchmarks are told: what was measured in a few words, scores with the digits that mean something."""

from __future__ import annotations

import math

from gpuconsole.probes.benchrecords import BenchRecord

_FIRST = ("dtype", "precision", "what", "op", "case", "backend", "direction")
"""Parameters that say most, by their value alone."""


def words_of(record: BenchRecord) -> str:
    """What tells a result from the others of its benchmark, short: ``bf16 8192×8192×8192``."""
    params = dict(record.params)
    sides = [params.pop(side, None) for side in ("m", "n", "k")]
    words = [value for name in _FIRST if isinstance(value := params.pop(name, None), str)]
    if all(isinstance(side, int) for side in sides):
        words.append(f"{sides[0]}³" if len(set(sides)) == 1 else "×".join(str(side) for side in sides))
    for name, value in params.items():
        if isinstance(value, bool):
            words += [name] if value else []
        elif isinstance(value, str):
            words.append(value)
        elif isinstance(value, int | float):
            words.append(f"{name} {value:g}")
    if len(record.gpu) == 1 and record.gpu != (0,):
        words.append(f"GPU {record.gpu[0]}")
    return " ".join(words)


def figure(value: float | None) -> str:
    """A score with three digits that count, without an exponent: ``787``, ``55.1``, ``0.0123``; ``–`` when unknown."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{min(digits, 6)}f}".replace(",", " ")
    return text


def scored(record: BenchRecord) -> str:
    """A score with its unit; ``–`` when there is none."""
    unit = {"x": "×", "us": "µs"}.get(record.unit, record.unit)
    return f"{figure(record.score)} {unit}".strip() if record.score is not None else "–"


def percent(share: float | None) -> str:
    """A share in percent; empty when unknown."""
    return "" if share is None else f"{share * 100:.0f} %"
