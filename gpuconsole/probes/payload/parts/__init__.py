"""What runs in a process of its own, each a module with ``main(config)``."""

from __future__ import annotations
