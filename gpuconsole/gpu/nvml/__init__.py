"""The NVML adapter: the only package that imports pynvml."""

from __future__ import annotations
