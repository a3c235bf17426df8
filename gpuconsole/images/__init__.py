"""Images: references and what is inside them."""

from __future__ import annotations
