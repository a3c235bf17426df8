"""From the domain to what is shown: pure functions, total for every value."""

from __future__ import annotations
