"""Which results may be compared: the same method on the same hardware, and how far the software may differ."""

from __future__ import annotations

import json
import re
from enum import StrEnum

from gpuconsole.core.document import jsonable
from gpuconsole.probes.benchrecords import BenchGpu, BenchRecord, BenchRun


class Likeness(StrEnum):
    """How far two results are alike."""

    STRICT = "strict"
    """Same method, hardware, torch minor version, CUDA version and driver branch."""
    HARDWARE = "hardware"
    """Same method and hardware; the software differs, or is not known."""
    LOOSE = "loose"
    """Same benchmark and parameters; anything else may differ."""


def place_key(record: BenchRecord) -> str:
    """What was measured, without how: the benchmark and its parameters."""
    return f"{record.id} {json.dumps(jsonable(record.params), sort_keys=True, separators=(',', ':'))}"


def method_key(record: BenchRecord) -> str:
    """What was measured and how."""
    return f"{place_key(record)} rev {record.rev}"


def hardware_key(record: BenchRecord, run: BenchRun) -> str | None:
    """On what it was measured: GPU names and number, MIG, ECC and power limit; of a CPU its model and the share of it.

    None when that is not known, and then nothing can be said to be the same.
    """
    if record.device != "cuda":
        environment = run.environment
        if run.machine.cpu is None:
            return None
        return f"cpu {run.machine.cpu} {environment.cpus} {environment.cpu_quota}"
    gpus = run.gpus_of(record)
    if not gpus or any(gpu.name is None for gpu in gpus):
        return None
    return f"{len(gpus)} {' '.join(sorted(map(_hardware, gpus)))}"


def _hardware(gpu: BenchGpu) -> str:
    limit = "?" if gpu.power_limit_w is None else f"{gpu.power_limit_w:.0f}"
    slice_of = f"mig {(gpu.memory_total_bytes or 0) >> 20} MiB" if gpu.mig else f"mig={gpu.mig}"
    return f"{gpu.name} {slice_of} ecc={gpu.ecc} {limit} W"


def software_key(run: BenchRun) -> str | None:
    """Torch's minor version, CUDA's, and the driver's branch; None when torch is not known."""
    environment = run.environment
    if environment.torch is None:
        return None
    driver = environment.driver or run.machine.driver
    return f"torch {_first(environment.torch, 2)} cuda {_first(environment.torch_cuda, 2)} driver {_first(driver, 1)}"


def _first(version: str | None, parts: int) -> str:
    """The first numbers of a version; ``–`` when there is none."""
    return ".".join(re.findall(r"\d+", (version or "").partition("+")[0])[:parts]) or "–"


def result_key(record: BenchRecord, run: BenchRun) -> str | None:
    """What a result shares with all it may be judged by; None when it can be judged by none."""
    hardware = hardware_key(record, run)
    return None if hardware is None else f"{method_key(record)} on {hardware}"


def owner_key(record: BenchRecord, run: BenchRun) -> str | None:
    """Whose result it is: the very GPUs, by UUID; of a CPU its model. None when it cannot be told."""
    if record.device != "cuda":
        return None if run.machine.cpu is None else f"cpu {run.machine.cpu}"
    uuids = [gpu.uuid for gpu in run.gpus_of(record)]
    return None if not uuids or None in uuids else " ".join(sorted(str(uuid) for uuid in uuids))


def likeness(one: BenchRecord, of_one: BenchRun, other: BenchRecord, of_other: BenchRun) -> Likeness | None:
    """How far two results are alike; None when they are of different things."""
    if place_key(one) != place_key(other) or one.unit != other.unit:
        return None
    key = result_key(one, of_one)
    if key is None or key != result_key(other, of_other):
        return Likeness.LOOSE
    software = software_key(of_one)
    return Likeness.STRICT if software is not None and software == software_key(of_other) else Likeness.HARDWARE
