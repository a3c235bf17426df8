"""This machine: facts about it, and who holds its GPUs."""

from __future__ import annotations
