"""From a launch spec to a running container."""

from __future__ import annotations
