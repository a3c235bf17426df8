"""The benchmarks, one module each, and what they share."""

from __future__ import annotations
