"""Names of GPUs, short enough for a row."""

from __future__ import annotations


def short_name(name: str | None) -> str:
    """``H200`` of ``NVIDIA H200``, ``RTX 4090`` of ``NVIDIA GeForce RTX 4090``; a dash where it is not known."""
    if not name:
        return "–"
    short = name.removeprefix("NVIDIA ").replace("GeForce ", "").removesuffix(" Generation")
    return short.strip() or name
