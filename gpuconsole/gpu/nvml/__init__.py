"""NVML, the NVIDIA driver's library of readings; nothing outside this package calls it.

From the ground up: ``codes`` (what a return code means), ``binding`` (the library's functions), ``gateway`` (the one
place that calls them),
``sheet`` and ``readings`` (single readings of a GPU), ``processes`` and ``mig``, ``reader`` (one snapshot), ``source``
(snapshots within a time limit).
"""

from __future__ import annotations
