"""What everything stands on: errors, text, sizes, paths."""

from __future__ import annotations
