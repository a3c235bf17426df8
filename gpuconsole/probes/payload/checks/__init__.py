"""The checks, one module each; ``plan`` lists them."""

from __future__ import annotations
