"""GPUs: what is known of each, and where the readings come from."""

from __future__ import annotations
