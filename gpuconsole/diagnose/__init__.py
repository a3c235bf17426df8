"""What a failure means on this machine, and what to do."""

from __future__ import annotations
