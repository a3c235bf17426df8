"""Use cases that the command line and the console share."""

from __future__ import annotations
