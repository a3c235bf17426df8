"""Checks and benchmarks that run inside a container and report back."""

from __future__ import annotations
