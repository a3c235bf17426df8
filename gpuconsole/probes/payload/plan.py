"""The checks, in the order they run: each with its name, its code and how long it may take."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Callable

from gpuconsole.probes.payload.outcome import Context

_HOME = "gpuconsole.probes.payload.checks."
_STUCK = (
    "something is stuck",
    "Restart the container; if it stays so, look at the driver and the disk of the host.",
)
_DRIVER_STUCK = (
    "the driver does not answer",
    "Look at gpuconsole doctor and at the kernel log; the host may have to be restarted.",
)
_DISK_STUCK = (
    "the disk does not answer",
    "Look at the disk under the folder: a network mount may have lost its server.",
)
_IMPORT_STUCK = ("the import does not come to its end", "Look at the disk under the image, and at what it wrote last.")


class Check:
    """One check.

    Args:
        slug: Its name, ``check.shm``.
        code: Its code in the suite, ``C15``.
        title: What it asks, as the end of "whether …".
        where: ``module:function`` under ``checks``; imported when it runs.
        deadline_s: After so many seconds it is ended and has failed.
        needs: ``torch`` (it can be imported), ``cuda`` (it works); the check is skipped without them.
        stuck: What it means, with a remedy, when it does not end.
        early: ``module:function`` that begins it in a process of its own before its turn, because it is slow.
        beside: The check with which it is begun.
    """

    def __init__(
        self,
        slug: str,
        *,
        code: str,
        title: str,
        where: str,
        deadline_s: float,
        needs: str = "",
        stuck: tuple[str, str] = _STUCK,
        early: str = "",
        beside: str = "",
    ) -> None:
        self.slug = slug
        self.code = code
        self.title = title
        self.where = where
        self.deadline_s = deadline_s
        self.needs = tuple(needs.split())
        self.stuck = stuck
        self.early = early
        self.beside = beside

    @property
    def process(self) -> str:
        """Its process, for a sentence."""
        return "the process that looked whether {}".format(self.title)

    def load(self, where: str = "") -> Callable[[Context], Any]:
        """The function that runs it, or the one at ``where``."""
        module, _, function = (where or self.where).partition(":")
        loaded: Callable[[Context], Any] = getattr(import_module(_HOME + module), function)
        return loaded


CHECKS = (
    Check(
        "check.torch",
        code="C01",
        title="torch can be imported",
        where="torch_build:run",
        deadline_s=90.0,
        stuck=_IMPORT_STUCK,
    ),
    Check(
        "check.cuda-available",
        code="C02",
        title="CUDA starts",
        where="available:run",
        deadline_s=45.0,
        needs="torch",
        stuck=_DRIVER_STUCK,
    ),
    Check(
        "check.devices",
        code="C02",
        title="GPUs seen are those given",
        where="devices:run",
        deadline_s=20.0,
        needs="torch",
    ),
    Check(
        "check.driver",
        code="C03",
        title="the driver fits the CUDA of torch",
        where="driver:run",
        deadline_s=20.0,
        needs="torch",
    ),
    Check(
        "check.gpu-memory",
        code="C17",
        title="GPU memory is free",
        where="gpu_memory:run",
        deadline_s=30.0,
        needs="torch cuda",
        stuck=_DRIVER_STUCK,
    ),
    Check(
        "check.kernel",
        code="C04",
        title="kernels run on every GPU",
        where="kernel:run",
        deadline_s=45.0,
        needs="torch cuda",
        stuck=_DRIVER_STUCK,
    ),
    Check(
        "check.numerics",
        code="C05",
        title="results are right",
        where="numerics:run",
        deadline_s=60.0,
        needs="torch",
    ),
    Check(
        "check.gpu-pattern",
        code="C18",
        title="GPU memory gives back what is written",
        where="gpu_pattern:run",
        deadline_s=45.0,
        needs="torch cuda",
        stuck=_DRIVER_STUCK,
    ),
    Check(
        "check.cudnn",
        code="C06",
        title="convolutions are right",
        where="convolution:run",
        deadline_s=60.0,
        needs="torch",
        stuck=_DRIVER_STUCK,
    ),
    Check(
        "check.attention",
        code="C07",
        title="the back ends of attention agree",
        where="attention:run",
        deadline_s=60.0,
        needs="torch",
        stuck=_DRIVER_STUCK,
    ),
    Check(
        "check.amp",
        code="C08",
        title="mixed precision works",
        where="amp:run",
        deadline_s=45.0,
        needs="torch",
        stuck=_DRIVER_STUCK,
    ),
    Check(
        "check.bf16",
        code="C09",
        title="bfloat16 is the hardware's own",
        where="bf16:run",
        deadline_s=30.0,
        needs="torch",
    ),
    Check(
        "check.optimizer",
        code="C10",
        title="the fused optimizer is right",
        where="optimizer:run",
        deadline_s=45.0,
        needs="torch",
        stuck=_DRIVER_STUCK,
    ),
    Check(
        "check.determinism",
        code="C12",
        title="runs can be repeated bit by bit",
        where="determinism:run",
        deadline_s=45.0,
        needs="torch",
        stuck=_DRIVER_STUCK,
    ),
    Check(
        "check.p2p",
        code="C14",
        title="GPUs reach each other",
        where="peers:run",
        deadline_s=60.0,
        needs="torch cuda",
        stuck=_DRIVER_STUCK,
    ),
    Check(
        "check.shm",
        code="C15",
        title="shared memory is large enough",
        where="shm:run",
        deadline_s=60.0,
    ),
    Check(
        "check.limits",
        code="C16",
        title="limits leave room",
        where="limits:run",
        deadline_s=30.0,
        stuck=_DRIVER_STUCK,
    ),
    Check(
        "check.host-memory",
        code="C19",
        title="the host's memory suffices",
        where="host_memory:run",
        deadline_s=20.0,
    ),
    Check(
        "check.workspace",
        code="C20",
        title="work can be saved",
        where="workspace:run",
        deadline_s=30.0,
        stuck=_DISK_STUCK,
    ),
    Check(
        "check.cpu",
        code="C21",
        title="processors suffice",
        where="cpu:run",
        deadline_s=20.0,
    ),
    Check(
        "check.clock",
        code="C22",
        title="the clock is right",
        where="clock:run",
        deadline_s=10.0,
    ),
    Check(
        "check.environment",
        code="C25",
        title="no variable sets a trap",
        where="traps:run",
        deadline_s=10.0,
    ),
    Check(
        "check.compile",
        code="C11",
        title="torch.compile works",
        where="compiling:run",
        deadline_s=75.0,
        needs="torch",
        early="compiling:begin",
        beside="check.cudnn",
    ),
    Check(
        "check.all-reduce",
        code="C13",
        title="GPUs compute a sum together",
        where="collective:run",
        deadline_s=110.0,
        needs="torch",
        early="collective:begin",
        beside="check.shm",
    ),
)
BY_SLUG = {check.slug: check for check in CHECKS}
