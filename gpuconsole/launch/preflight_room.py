"""Preflight of room: disk for the image, memory, shared memory, locked memory."""

from __future__ import annotations

from collections.abc import Iterator

from gpuconsole.core.text import size
from gpuconsole.launch.changes import Change
from gpuconsole.launch.preflight import Facts, Finding, Rule, Severity

_SMALL_SHM = 2**30
"""The smallest that holds a few batches of a DataLoader's workers beside NCCL's buffers."""
_ENGINES_SHM = 64 * 2**20
_MEMLOCK = "memlock"
_INFINIBAND = "/dev/infiniband"
_LITTLE_DISK = 2 * 2**30
"""A compile cache and a log fill that within hours."""


def disk(facts: Facts) -> Iterator[Finding]:
    """The image does not fit on the engine's disk, compressed and unpacked."""
    free, needed = facts.disk_free_bytes, facts.needed_bytes
    if free is not None and needed is not None and free < needed:
        yield Finding(
            "disk-space",
            Severity.REFUSE,
            "IMAGE",
            f"The pull takes about {size(needed)} of disk, and {size(free)} are free"
            f"{f' in {facts.info.root_dir}' if facts.info.root_dir else ''}.",
            "Make room with 'gpuconsole image prune', or choose a smaller image.",
            forceable=True,
        )
    elif free is not None and free < _LITTLE_DISK:
        yield Finding(
            "disk-low",
            Severity.WARN,
            "IMAGE",
            f"The engine's disk has only {size(free)} free: what the container writes beside its mounts soon fails.",
            "Make room: 'gpuconsole image prune' lists what can go.",
        )


def shared_memory(facts: Facts) -> Iterator[Finding]:
    """Too little of ``/dev/shm`` for DataLoader workers and NCCL."""
    shm, ipc = facts.request.shm_bytes, facts.spec.ipc_mode
    if ipc is not None and ipc not in ("private", "shareable"):
        if ipc == "none":
            yield Finding(
                "shm-size",
                Severity.WARN,
                "--ipc",
                "Without /dev/shm neither DataLoader workers nor NCCL can pass data between processes.",
                "Leave --ipc out.",
                Change("ipc", None),
            )
        return
    size_now = _ENGINES_SHM if shm is None else shm
    # Ours is smaller only where the memory is, and then more of it would be no help.
    ours = shm is not None and facts.spec.shm_bytes is None
    if size_now >= _SMALL_SHM or ours:
        return
    yield Finding(
        "shm-size",
        Severity.WARN,
        "--shm-size",
        f"{size(size_now)} of /dev/shm are soon full: DataLoader workers die of 'bus error', NCCL of 'No space left'.",
        "Leave --shm-size out: it is then 8g, or half of the memory, and costs nothing until it is used.",
        Change("shm_size", None),
    )


def locked_memory(facts: Facts) -> Iterator[Finding]:
    """Network cards read and write locked memory, and NCCL's rings between GPUs of a machine need some of it."""
    written = next((limit for limit in facts.request.ulimits if limit.name == _MEMLOCK), None)
    if written is not None and written.hard == -1:
        return
    by_network = (facts.spec.work.nodes or 1) > 1 or any(
        device.host_path.startswith(_INFINIBAND) for device in facts.request.devices
    )
    # GPUs of one machine come by with the engine's own limit; where less was written, they may not.
    if not facts.choice.units or not (by_network or (written is not None and len(facts.choice.units) > 1)):
        return
    limited = f"is limited to {size(written.hard)}" if written is not None else "is left to the engine's limit"
    yield Finding(
        "memlock",
        Severity.WARN,
        "--ulimit",
        f"NCCL locks the memory that {'the network' if by_network else 'several GPUs'} shares, which {limited}.",
        "Lift it: --ulimit memlock=-1.",
        _lifted(facts, known=written is not None),
    )


def _lifted(facts: Facts, *, known: bool) -> Change | None:
    """No limit, in place of the one that was written where it is known how."""
    item = facts.item("ulimits", _MEMLOCK)
    return Change("ulimits", f"{_MEMLOCK}=-1", add=not item, instead=item) if item or not known else None


def memory(facts: Facts) -> Iterator[Finding]:
    """Limits above what is there, shared memory above the limit, and a machine that is nearly full."""
    limit, machine, shm = facts.spec.memory_bytes, facts.info.memory_bytes, facts.request.shm_bytes
    if limit is not None and machine is not None and limit > machine:
        yield Finding(
            "memory-limit",
            Severity.HINT,
            "--memory",
            f"{size(limit)} is more than the machine's {size(machine)}: nothing is limited by it.",
            "Give less than the machine has, or leave --memory out.",
            Change("memory", None),
        )
    bound = min((each for each in (limit, machine) if each), default=None)
    if shm is not None and bound is not None and shm > bound and facts.spec.shm_bytes is not None:
        whose = "limit" if limit is not None and bound == limit else "machine's memory"
        yield Finding(
            "memory-limit",
            Severity.WARN,
            "--shm-size",
            f"{size(shm)} of /dev/shm count as memory, and the {whose} is {size(bound)}: a full one ends the work.",
            "Give it half of the memory at most, as it gets without --shm-size.",
            Change("shm_size", None),
        )
    free = facts.memory_available_bytes
    if free is not None and machine and free < machine // 20 and (limit is None or limit > free):
        yield Finding(
            "host-memory",
            Severity.WARN,
            "--memory",
            f"{size(free)} of the machine's {size(machine)} of memory are free: the kernel may end processes, also "
            "those of others.",
            "See who holds it, and end what is not needed.",
        )


RULES: tuple[Rule, ...] = (disk, shared_memory, locked_memory, memory)
"""In the order in which they are told."""
