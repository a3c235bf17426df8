"""The screens, one module each."""

from __future__ import annotations
