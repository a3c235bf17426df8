"""NVML, the NVIDIA driver's library of readings; nothing outside this package knows nvidia-ml-py.

From the ground up: ``codes`` (what a return code means), ``gateway`` (the one place that calls the library, through
nvidia-ml-py or, for a single look, through ``direct``), ``sheet`` and ``readings`` (single readings of a GPU),
``processes`` and ``mig``, ``reader`` (one snapshot), ``source`` (snapshots within a time limit).
"""

from __future__ import annotations
