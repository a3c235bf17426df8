"""The widgets: each writes to the terminal only what changed."""

from __future__ import annotations
