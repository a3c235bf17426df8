"""The container engine: what is asked of it, and what it answers."""

from __future__ import annotations
