"""The Docker adapter: the only package that imports docker-py."""

from __future__ import annotations
