"""The console: the terminal program."""

from __future__ import annotations
