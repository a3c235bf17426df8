"""Names of GPUs, short enough for a row."""

from __future__ import annotations

import re

_BRAND = re.compile(r"^NVIDIA\s+|GeForce\s+|\s+Generation$")


def short_name(name: str | None) -> str:
    """``H200`` of ``NVIDIA H200``, ``RTX 4090`` of ``NVIDIA GeForce RTX 4090``; a dash where it is not known."""
    return _BRAND.sub("", name).strip() or name if name else "–"
