"""The benchmarks, one module each, and what they share: timing, data, ranks, models."""

from __future__ import annotations
