"""C15: ``/dev/shm`` is large enough for DataLoader workers, and one really passes a tensor through it."""

from __future__ import annotations

import os
from typing import Any

from gpuconsole.probes.payload import environment
from gpuconsole.probes.payload.outcome import FAIL, OK, WARN, Context, Outcome, first_line, size

SHM = "/dev/shm"  # noqa: S108
DOCKER_DEFAULT_BYTES = 64 << 20
COMFORT_BYTES = 1 << 30
_TENSOR_BYTES = 128 << 20
_TIMEOUT_S = 25
_FIX = "Launch it again with --shm-size 8g or --ipc host; a running container keeps the size it has."


class OneTensor:
    """A data set of one tensor of ``count`` bytes, made in the worker."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> Any:
        import torch

        # 251 is prime, so that no page looks like another.
        return torch.arange(251, dtype=torch.uint8).repeat(self._count // 251 + 1)[: self._count].clone()


def run(context: Context) -> Outcome:
    """Measure it, then pass a tensor from a worker process as a DataLoader does."""
    try:
        stat = os.statvfs(SHM)
    except OSError as error:
        return Outcome(FAIL, "there is no {}: {}".format(SHM, error.strerror), "Launch it without --ipc none.")
    total, free = stat.f_frsize * stat.f_blocks, stat.f_frsize * stat.f_bavail
    value: dict[str, Any] = {"shm_bytes": total, "free_bytes": free, "passed_bytes": None}
    problem = ""
    if context.torch is not None:
        count = tensor_bytes(free)
        context.report("a worker passes {}".format(size(count)))
        try:
            value["start_method"] = passes(context.torch, count)
            value["passed_bytes"] = count
        except Exception as error:
            # torch says "exited unexpectedly", and only the cause behind it says by which signal.
            problem = first_line(error.__cause__ or error)
            value["error"] = problem
    tried = context.torch is not None
    outcome = judge(total=total, free=free, problem=problem, wants_gpu=context.wants_gpu, tried=tried)
    outcome.value = value
    return outcome


def tensor_bytes(free: int) -> int:
    """How large a tensor is passed: half of what is free, and of the memory allowed, 128 MiB at most."""
    limit = environment.memory_limit()
    return max(4096, min(_TENSOR_BYTES, free // 2, (limit or _TENSOR_BYTES * 8) // 8))


def passes(torch: Any, count: int) -> str:
    """Have a DataLoader worker pass ``count`` bytes and compare them; returns how the worker was started.

    Raises:
        RuntimeError: The worker died, or what arrived is not what was sent.
    """
    import multiprocessing

    loader = torch.utils.data.DataLoader(OneTensor(count), batch_size=None, num_workers=1, timeout=_TIMEOUT_S)
    received = None
    for received in loader:
        pass
    if received is None or not torch.equal(received, OneTensor(count)[0]):
        raise RuntimeError("what a worker sent is not what arrived")
    return str(multiprocessing.get_start_method(allow_none=False))


def judge(*, total: int, free: int, problem: str, wants_gpu: bool, tried: bool = True) -> Outcome:
    """The outcome for its size, what is free of it, and the worker's words when passing failed or was not tried."""
    if problem:
        # Where it is full torch's worker either dies of SIGBUS, or tells nobody but its standard error and hangs.
        full = any(words in problem for words in ("Bus error", "shared memory", "timed out")) or free < COMFORT_BYTES
        fix = _FIX if full else "What it wrote last may tell why; num_workers=0 goes without workers."
        return Outcome(FAIL, "a DataLoader worker cannot pass a tensor: {}".format(problem), fix)
    if total <= DOCKER_DEFAULT_BYTES:
        why = "{} is {}, too small for DataLoader workers and NCCL".format(SHM, size(total))
        return Outcome(FAIL if wants_gpu else WARN, why, _FIX)
    if total < COMFORT_BYTES:
        return Outcome(WARN, "{} is {}, little for DataLoader workers".format(SHM, size(total)), _FIX)
    if free < total // 5:
        why = "{} of {} are free in {}".format(size(free), size(total), SHM)
        return Outcome(WARN, why, "Look what fills it: ls -l {}.".format(SHM))
    what = "a worker passes a tensor through it" if tried else "without torch no tensor was passed through it"
    return Outcome(OK, "{} is {}, {}".format(SHM, size(total), what))
